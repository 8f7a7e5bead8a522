"""A run of messages as a page shows it: where a day begins, and where the unread ones do.

Between them stand the thoughts and the calls of the reader's own runs, each where it began; what
has no number of the event log gets a part of one, so that it stays there whatever comes (UI-5).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlmodel import Session

from app.aun.reading import Page, Shown
from app.console import input_chips, markup, run_view
from app.console.input_chips import InputChip
from app.console.run_view import RunView
from app.identity.models import User
from app.identity.principal import Principal
from app.runs import reading, timeline
from app.runs.reading import Standing
from app.runs.states import RunState
from app.runs.timeline import Turn

ROOM = 0.49  # below the dividers, which stand half a number above a message


@dataclass(frozen=True, slots=True)
class Entry:
    """One message, what stands above it, and what became of it for agents."""

    message: Shown
    day: date | None
    is_first_unread: bool = False
    chips: tuple[InputChip, ...] = ()

    @property
    def place(self) -> float:
        """Its number in the event log."""
        return self.message.seq


@dataclass(frozen=True, slots=True)
class Worked:
    """A turn of a run, with its thought and its calls."""

    place: float
    turn: Turn


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended, where that is worth a line: words it said speak for themselves."""

    place: float
    run: Standing


@dataclass(frozen=True, slots=True)
class Work:
    """What the reader's own runs did in a stretch of a conversation."""

    pieces: tuple[Worked | Ended, ...]
    view: RunView


def entries(
    page: Page, is_marked: bool = True, chips: Mapping[str, tuple[InputChip, ...]] | None = None
) -> Iterator[Entry]:
    """The messages of a page; with `is_marked` the first one that the reader has not read is."""
    is_open = is_marked
    for message in page.messages:
        is_unread = is_open and message.seq > page.read_seq and not message.is_own
        is_open = is_open and not is_unread
        yield Entry(message, begins(message), is_unread, (chips or {}).get(message.id, ()))


def whole(
    session: Session,
    person: Principal,
    conversation_id: str,
    page: Page,
    *,
    before: int | None = None,
    is_marked: bool = True,
    is_cut: bool = False,
) -> tuple[list[Entry | Worked | Ended], RunView]:
    """A page of messages with the work of the reader's own runs between them, in order.

    It stops at the message with the number `before`; `is_cut` says that it begins in the middle,
    whether or not the page itself does.
    """
    own = [message.id for message in page.messages if message.is_own]
    user = session.get(User, (person.tenant_id, person.user_id))
    chips = input_chips.of(session, person.tenant_id, (user and user.aid) or "", own)
    messages = list(entries(page, is_marked, chips))
    begins_later = (page.has_older or is_cut) and page.messages
    work = _work(
        session,
        person,
        conversation_id,
        page.messages,
        page.messages[0].sent_at if begins_later else None,
        reading.sent_at(session, person.tenant_id, conversation_id, before) if before else None,
    )
    return sorted([*messages, *work.pieces], key=lambda each: each.place), work.view


def place(session: Session, tenant_id: str, conversation_id: str, moment: datetime) -> float:
    """Where in a conversation something stands that began at a moment."""
    above = reading.message_before(session, tenant_id, conversation_id, moment)
    return _place(*above, moment) if above else _place(0, None, moment)


def is_worth_a_line(each: Standing) -> bool:
    """Whether the end of a run says something that its messages do not."""
    return each.is_silent or each.run.state != RunState.COMPLETED


def begins(message: Shown) -> date | None:
    """The day that begins with a message; None where the one above is of the same."""
    day = markup.local_day(message.sent_at)
    above = message.before
    return None if above and markup.local_day(above.sent_at) == day else day


def continues(message: Shown) -> bool:
    """Whether a message shares the header of the one above it."""
    return message.continues and begins(message) is None


def _work(
    session: Session,
    person: Principal,
    conversation_id: str,
    messages: Sequence[Shown],
    since: datetime | None,
    until: datetime | None,
) -> Work:
    tenant_id = person.tenant_id
    turns, ended = timeline.in_conversation(
        session, tenant_id, person.user_id, conversation_id, since, until
    )
    view = run_view.of(session, person, turns, is_own=True)

    def among(moment: datetime) -> float:
        above = [message for message in messages if message.sent_at <= moment]
        if above:
            return _place(above[-1].seq, above[-1].sent_at, moment)
        return place(session, tenant_id, conversation_id, moment)

    worked = [Worked(among(turn.stands_at), turn) for turn in turns]
    ends = [
        Ended(among(each.run.ended_at), each)
        for each in reading.standings(session, tenant_id, ended)
        if each.run.ended_at and is_worth_a_line(each)
    ]
    return Work((*worked, *ends), view)


def _place(seq: int, since: datetime | None, moment: datetime) -> float:
    """A part of a number that grows with the time that went by, and never reaches the next."""
    if since is None:
        return seq + ROOM / 2
    passed = max(0.0, (moment - since).total_seconds())
    return round(seq + ROOM * (passed + 0.001) / (passed + 60), 9)
