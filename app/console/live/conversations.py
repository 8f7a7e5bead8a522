"""Conversations, live: messages and what becomes of them, the list, the badge, who is there."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from sqlmodel import Session, col, select

from app.aun import reading
from app.aun.conversations import READ
from app.aun.delivery import STORED
from app.aun.events import PresenceChanged
from app.aun.groups.changes import CHANGED, LISTED
from app.aun.models import Participant
from app.aun.reading import LONGEST_PAGE, PAGE, Line, Shown
from app.aun.shapes import RECALLED
from app.console import input_chips, marks, transcript
from app.console.input_chips import InputChip
from app.console.live.rendering import (
    Asked,
    Badges,
    Hearer,
    Partial,
    Pass,
    Passes,
    Regions,
    Render,
    Renders,
    badge,
    each_user,
    html_of,
    notice,
    partial,
)
from app.identity.models import User
from app.identity.principal import Principal
from app.kernel.i18n import gettext as _
from app.kernel.models import LoggedEvent

DELIVERED = "message.delivered"
LIST, MESSAGES = "#conversations", "#messages"


def appended(session: Session, tenant_id: str, aid: str, row_id: str) -> Iterator[Partial]:
    """A new message at the end of its conversation, and the count at what it replies to."""
    message = reading.told(session, tenant_id, aid, row_id)
    if message is None:
        return
    target = f"[data-region='conversation:{message.conversation_id}']"
    if day := transcript.begins(message):
        yield partial(target, "beforeend", "conversations/_day.html", day=day, seq=message.seq)
    chips = input_chips.of(session, tenant_id, aid, [row_id] if message.is_own else [])
    yield _message(target, "beforeend", message, chips.get(row_id, ()))
    if message.quoted is not None:
        replied = reading.told(session, tenant_id, aid, message.quoted.id)
        if replied is not None:
            yield _leaf(replied, "replies")


def _stored(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    yield from appended(session, event.tenant_id, hearer.aid or "", event.data["message"])


def _recalled(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    message = reading.told(session, event.tenant_id, hearer.aid or "", event.data["message"])
    if message is not None:
        own = [message.id] if message.is_own else []
        chips = input_chips.of(session, event.tenant_id, hearer.aid or "", own)
        target = f"#message-{message.id}"
        yield _message(target, "outerMorph", message, chips.get(message.id, ()))


def _message(target: str, swap: str, message: Shown, chips: Sequence[InputChip] = ()) -> Partial:
    return partial(
        target,
        swap,
        "conversations/_message.html",
        message=message,
        is_continued=transcript.continues(message),
        chips=chips,
    )


def _leaf(message: Shown, name: str) -> Partial:
    target = f"#message-{message.id}-{name}"
    return partial(target, "outerHTML", f"conversations/_{name}.html", message=message)


def _of_sender(event: LoggedEvent, hearer: Hearer) -> str:
    return "sender" if event.data.get("by") == hearer.aid else "member"


def _listed(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    """The row in the list, where it stands now, and how much is unread."""
    aid = hearer.aid or ""
    line = reading.line(session, event.tenant_id, aid, event.subject)
    yield _row(line) if line else Partial(f"#conversation-{event.subject}-row", "delete")
    if line is None:
        gone = html_of("conversations/_gone.html")
        yield Partial(f"#conversation-{event.subject}-note", "innerHTML", gone)
    yield badge("unread", reading.unread(session, event.tenant_id, aid))


def _row(line: Line) -> Partial:
    return partial(LIST, "beforeend", "conversations/_row.html", line=line, here="")


def _spoken(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    """Said once to whoever did not write it."""
    author = reading.author(session, event.tenant_id, hearer.aid or "", event.data["message"])
    if author is None:
        return
    name = {"name": author.name}
    yield notice(
        _("New message from %(name)s.") % name,
        f"conversation-{event.subject}",
        f"/conversations/{event.subject}",
        many=_("%(name)s: {} messages.") % name,
        desktop=_("A new message."),
    )


def _read(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    """The reader's own count; and between two, "seen" for the other."""
    if event.data["aid"] == hearer.aid:
        yield from _listed(session, event, hearer)
    else:
        yield from _states(session, event, hearer)


def _sender(event: LoggedEvent, hearer: Hearer) -> str:
    return "receiver" if event.data.get("aid") == hearer.aid else hearer.user_id


def _delivered(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    if _sender(event, hearer) != "receiver":
        yield from _states(session, event, hearer)


def _states(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    """How far the hearer's own messages have come; a page that shows later ones drops this."""
    found = reading.own_states(session, event.tenant_id, hearer.aid or "", event.subject)
    for row_id, state in found.items():
        target = f"#message-{row_id}-delivery"
        shown = {"row_id": row_id, "state": state}
        yield partial(target, "outerHTML", "conversations/_delivery.html", **shown)


def _group(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    opened = reading.opened(session, event.tenant_id, hearer.aid or "", event.subject)
    if opened is None:
        return
    context = {"opened": opened, "conversation_id": event.subject}
    head = f"#conversation-{event.subject}-title"
    yield partial(head, "outerMorph", "conversations/_title.html", **context)
    aside = f"#conversation-{event.subject}-members"
    yield partial(aside, "outerMorph", "conversations/_members.html", **context)


def _came_or_went(session: Session, event: PresenceChanged, hearer: Hearer) -> Iterable[Partial]:
    target = f"[data-presence='{marks.of_presence(event.aid)}']"
    context = {"aid": event.aid, "is_online": event.is_online}
    yield partial(target, "outerHTML", "conversations/_presence.html", **context)


def _who_sees(session: Session, event: PresenceChanged) -> Collection[str]:
    """The users who are in a conversation with whoever came or went."""
    shared = select(Participant.conversation_id).where(
        Participant.tenant_id == event.tenant_id,
        Participant.aid == event.aid,
        col(Participant.left_at).is_(None),
    )
    query = (
        select(User.id)
        .join(
            Participant,
            (col(Participant.tenant_id) == User.tenant_id) & (col(Participant.aid) == User.aid),
        )
        .where(
            User.tenant_id == event.tenant_id,
            col(Participant.conversation_id).in_(shared),
            col(Participant.left_at).is_(None),
        )
    )
    return set(session.exec(query))


def _list(session: Session, asked: Asked) -> str | None:
    aid = _aid(session, asked.person)
    lines, _more = reading.listed(session, asked.person.tenant_id, aid)
    return html_of("conversations/_rows.html", lines=lines, here="")


def _transcript(session: Session, asked: Asked) -> str | None:
    aid, tenant_id = _aid(session, asked.person), asked.person.tenant_id
    since, limit = asked.oldest, LONGEST_PAGE if asked.oldest else PAGE
    page = reading.page(session, tenant_id, aid, asked.key, since=since, limit=limit)
    if page is None:
        return html_of("conversations/_gone.html")
    if len(page.messages) == LONGEST_PAGE and page.has_older:
        page = reading.page(session, tenant_id, aid, asked.key)
        assert page is not None  # noqa: S101 - it was there just now
    pieces, view = transcript.whole(
        session, asked.person, asked.key, page, is_cut=since is not None
    )
    return html_of(
        "conversations/_messages.html",
        conversation_id=asked.key,
        page=page,
        transcript=pieces,
        view=view,
    )


def _unread(session: Session, person: Principal) -> int:
    aid = _aid(session, person)
    return reading.unread(session, person.tenant_id, aid) if aid else 0


def _aid(session: Session, person: Principal) -> str:
    user = session.get(User, (person.tenant_id, person.user_id))
    return user.aid or "" if user else ""


RENDERS: Renders = {
    STORED: [
        Render(_stored, _of_sender, is_apart=True),
        Render(_listed, each_user, is_apart=True),
        Render(_spoken, each_user, is_apart=True),
    ],
    RECALLED: [Render(_recalled, each_user), Render(_listed, each_user)],
    READ: [Render(_read, each_user)],
    DELIVERED: [Render(_delivered, _sender)],
    LISTED: [Render(_listed, each_user, is_standing=True, is_apart=True)],
    CHANGED: [Render(_group, each_user), Render(_listed, each_user)],
}
PASSES: Passes = {PresenceChanged: Pass(_came_or_went, hears=_who_sees)}
REGIONS: Regions = {"conversations": _list, "conversation": _transcript}
BADGES: Badges = {"unread": _unread}
