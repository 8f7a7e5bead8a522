"""What people and programs may read of runs: which ones, how they stand, what became of inputs.

Runs are for their principal's user, for auditors and for administrators; thoughts for the first two
alone (UI-12). What is not a reader's does not exist (UI-26).
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, true
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.access import scope
from app.access.standing import AUDIT_READ
from app.aun.models import Message
from app.identity import paging
from app.identity.models import Agent, AgentRelease, User
from app.identity.paging import Order, Page
from app.identity.principal import Principal
from app.identity.principal import Scope as TokenScope
from app.kernel.errors import NotFound
from app.runs.run_models import Lane, Run, RunInput, RunWait, SentMessage
from app.runs.states import LIVE_RUNS, Hold, InputState, RunState, WaitKind

ADMINISTER = "identity.agent.manage"
SHOWN_CHIPS = frozenset(InputState) - {InputState.ARCHIVED}  # silence is nothing to remark on


@dataclass(frozen=True, slots=True)
class Sight:
    """What one reader may do with a run they may see."""

    is_own: bool
    sees_thoughts: bool
    may_stop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A run as its strip and its line in lists tell it.

    Attributes:
        waits: kinds of what a suspended run waits for.
        due_at: when the next of these is over.
        is_silent: it is completed, and said nothing since it heard the last input (UI-5).
        stopped_by: the name of the person who stopped it.
    """

    run: Run
    agent_name: str
    user_name: str
    release: int | None
    waits: tuple[WaitKind, ...] = ()
    due_at: datetime | None = None
    is_silent: bool = False
    stopped_by: str = ""

    @property
    def is_live(self) -> bool:
        """Whether it has not ended."""
        return self.run.state in LIVE_RUNS

    @property
    def is_stopping(self) -> bool:
        """Whether it was asked to stop, and has not yet (UI-10)."""
        return self.is_live and self.run.cancel_requested_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to list; what is empty narrows nothing."""

    agent_id: str = ""
    state: str = ""
    is_own: bool = False
    conversation_id: str = ""


@dataclass(frozen=True, slots=True)
class Chip:
    """What became of a message for one agent (UI-9).

    Attributes:
        behind: the run whose request for a decision it waits behind (UI-69).
    """

    row: RunInput
    agent_name: str
    run: Run | None
    behind: str | None = None

    @property
    def rank(self) -> int:
        """How far it has come: what is drawn never goes back."""
        return {InputState.QUEUED: 1, InputState.ACCEPTED: 2}.get(InputState(self.row.state), 3)


def sight(session: Session, reader: Principal, run: Run) -> Sight | None:
    """What `reader` may do with a run; None where it does not exist for them."""
    is_own = run.user_id is not None and run.user_id == reader.user_id
    if is_own and reader.is_person and run.tenant_id == reader.tenant_id:
        return Sight(is_own=True, sees_thoughts=True, may_stop=True)
    audits = scope.tenant_wide(session, reader, AUDIT_READ) and (
        reader.is_person or reader.has_scope(TokenScope.AUDIT_READ)
    )
    administers = reader.is_person and scope.tenant_wide(session, reader, ADMINISTER)
    if run.tenant_id != reader.tenant_id or not (is_own or audits or administers):
        return None
    return Sight(
        is_own=is_own,
        sees_thoughts=audits,
        may_stop=is_own or administers,
    )


def one(session: Session, reader: Principal, run_id: str) -> tuple[Run, Sight]:
    """A run and what its reader may do with it.

    Raises:
        NotFound: there is none, or it is not theirs to see.
    """
    run = session.get(Run, (reader.tenant_id, run_id))
    seen = sight(session, reader, run) if run else None
    if run is None or seen is None:
        raise NotFound
    return run, seen


def listed(
    session: Session, reader: Principal, wanted: Wanted, cursor: str | None
) -> Page[Standing]:
    """A page of the runs a reader may see, the newest first."""
    conditions = list(visible(session, reader, wanted))
    query = sql_select(Run).where(*conditions)
    order = Order(Run.queued_at, Run.id, is_descending=True)
    page = paging.page(session, query, order, cursor, lambda row: row[0])
    total = sql_select(func.count()).select_from(Run).where(*conditions)
    return Page(
        rows=standings(session, reader.tenant_id, page.rows),
        previous=page.previous,
        next=page.next,
        total=int(session.execute(total).scalar_one()),
    )


def live_in(session: Session, tenant_id: str, user_id: str, conversation_id: str) -> list[Standing]:
    """The runs of a user that go on in a conversation, the oldest first."""
    query = (
        select(Run)
        .where(
            Run.tenant_id == tenant_id,
            Run.conversation_id == conversation_id,
            Run.user_id == user_id,
            col(Run.state).in_(LIVE_RUNS),
        )
        .order_by(col(Run.queued_at), col(Run.id))
        .limit(20)
    )
    return standings(session, tenant_id, session.exec(query).all())


def standings(session: Session, tenant_id: str, runs: Sequence[Run]) -> list[Standing]:
    """Runs with the names in them and what they wait for."""
    agents = _names(session, Agent, Agent.name, tenant_id, {run.agent_id for run in runs})
    people = {id for run in runs for id in (run.user_id, run.cancel_requested_by) if id}
    users = _names(session, User, User.display_name, tenant_id, people)
    waits = _waits(session, tenant_id, runs)
    releases = _releases(session, tenant_id, {run.release_id for run in runs if run.release_id})
    return [
        Standing(
            run=run,
            agent_name=agents.get(run.agent_id, run.agent_id),
            user_name=users.get(run.user_id or "", ""),
            release=releases.get(run.release_id or ""),
            waits=tuple(WaitKind(wait.kind) for wait in waits[run.id]),
            due_at=min((wait.due_at for wait in waits[run.id] if wait.due_at), default=None),
            is_silent=run.state == RunState.COMPLETED and not _spoke(session, run),
            stopped_by=users.get(run.cancel_requested_by or "", ""),
        )
        for run in runs
    ]


def chips(
    session: Session, tenant_id: str, message_ids: Collection[str]
) -> dict[str, tuple[Chip, ...]]:
    """What became of messages for agents, by the id of the message's row."""
    if not message_ids:
        return {}
    query = (
        select(RunInput, Agent.name, Run)
        .join(
            Agent,
            (col(Agent.tenant_id) == RunInput.tenant_id) & (col(Agent.id) == RunInput.agent_id),
        )
        .outerjoin(
            Run, (col(Run.tenant_id) == RunInput.tenant_id) & (col(Run.id) == RunInput.run_id)
        )
        .where(
            RunInput.tenant_id == tenant_id,
            col(RunInput.message_id).in_(sorted(message_ids)),
            col(RunInput.state).in_(SHOWN_CHIPS),
        )
        .order_by(Agent.name, RunInput.id)
    )
    rows = session.exec(query).all()
    behind = _deciding(session, tenant_id, [row for row, _, _ in rows])
    found: dict[str, list[Chip]] = defaultdict(list)
    for row, name, run in rows:
        found[row.message_id].append(Chip(row, name, run, behind.get(row.id)))
    return {message_id: tuple(each) for message_id, each in found.items()}


def lanes(
    session: Session, tenant_id: str, user_id: str, conversation_id: str
) -> list[tuple[Lane, str]]:
    """The lanes of a user in a conversation, each with its agent's name."""
    query = (
        select(Lane, Agent.name)
        .join(Agent, (col(Agent.tenant_id) == Lane.tenant_id) & (col(Agent.id) == Lane.agent_id))
        .where(
            Lane.tenant_id == tenant_id,
            Lane.conversation_id == conversation_id,
            Lane.user_id == user_id,
        )
        .order_by(Agent.name, Lane.discussion)
        .limit(20)
    )
    return list(session.exec(query).all())


def message_before(
    session: Session, tenant_id: str, conversation_id: str, moment: datetime
) -> tuple[int, datetime] | None:
    """Number and time of the newest message of a conversation that was there at a moment."""
    query = (
        select(Message.log_seq, Message.sent_at)
        .where(
            Message.tenant_id == tenant_id,
            Message.conversation_id == conversation_id,
            Message.sent_at <= moment,
        )
        .order_by(col(Message.log_seq).desc())
        .limit(1)
    )
    return session.exec(query).first()


def sent_at(session: Session, tenant_id: str, conversation_id: str, seq: int) -> datetime | None:
    """When the message with a number of the event log, or the next after it, was sent."""
    query = (
        select(Message.sent_at)
        .where(
            Message.tenant_id == tenant_id,
            Message.conversation_id == conversation_id,
            Message.log_seq >= seq,
        )
        .order_by(col(Message.log_seq))
        .limit(1)
    )
    return session.exec(query).first()


def visible(session: Session, reader: Principal, wanted: Wanted) -> Sequence[ColumnElement[bool]]:
    """What holds of the runs that a reader may see and wants to."""
    own = col(Run.user_id) == reader.user_id
    sees_all = scope.tenant_wide(session, reader, AUDIT_READ) and (
        reader.is_person or reader.has_scope(TokenScope.AUDIT_READ)
    )
    sees_all = sees_all or (reader.is_person and scope.tenant_wide(session, reader, ADMINISTER))
    return [
        col(Run.tenant_id) == reader.tenant_id,
        own if wanted.is_own else or_(own, true() if sees_all else own),
        *([col(Run.agent_id) == wanted.agent_id] if wanted.agent_id else []),
        *([col(Run.state) == wanted.state] if wanted.state else []),
        *([col(Run.conversation_id) == wanted.conversation_id] if wanted.conversation_id else []),
    ]


def _deciding(session: Session, tenant_id: str, inputs: Sequence[RunInput]) -> dict[str, str]:
    """The runs that inputs wait behind while a person is asked, by input."""
    held = {row.id: row.lane_id for row in inputs if row.hold == Hold.APPROVAL and row.lane_id}
    if not held:
        return {}
    query = select(Run.lane_id, Run.id).where(
        Run.tenant_id == tenant_id,
        col(Run.lane_id).in_(sorted(set(held.values()))),
        Run.state == RunState.SUSPENDED,
    )
    runs = dict(session.exec(query).all())
    return {input_id: runs[lane_id] for input_id, lane_id in held.items() if lane_id in runs}


def _spoke(session: Session, run: Run) -> bool:
    """Whether a run said something since it heard its last input."""
    heard = (
        select(func.max(RunInput.accepted_at))
        .where(RunInput.tenant_id == run.tenant_id, RunInput.run_id == run.id)
        .scalar_subquery()
    )
    query = select(SentMessage.message_id).where(
        SentMessage.tenant_id == run.tenant_id,
        SentMessage.run_id == run.id,
        or_(heard.is_(None), and_(heard.is_not(None), col(SentMessage.at) >= heard)),
    )
    return session.exec(query).first() is not None


def _waits(session: Session, tenant_id: str, runs: Sequence[Run]) -> dict[str, list[RunWait]]:
    found: dict[str, list[RunWait]] = defaultdict(list)
    suspended = [run.id for run in runs if run.state == RunState.SUSPENDED]
    if suspended:
        query = select(RunWait).where(
            RunWait.tenant_id == tenant_id,
            col(RunWait.run_id).in_(suspended),
            col(RunWait.satisfied_at).is_(None),
        )
        for wait in session.exec(query.order_by(col(RunWait.opened_at))):
            found[wait.run_id].append(wait)
    return found


def _names(
    session: Session,
    model: Any,
    name: Any,
    tenant_id: str,
    ids: Collection[str],
) -> dict[str, str]:
    if not ids:
        return {}
    query = sql_select(col(model.id), name).where(
        col(model.tenant_id) == tenant_id, col(model.id).in_(sorted(ids))
    )
    return {id: str(called) for id, called in session.execute(query)}


def _releases(session: Session, tenant_id: str, ids: Collection[str]) -> dict[str, int]:
    if not ids:
        return {}
    query = select(AgentRelease.id, AgentRelease.number).where(
        AgentRelease.tenant_id == tenant_id, col(AgentRelease.id).in_(sorted(ids))
    )
    return dict(session.exec(query).all())
