"""Hearing: each message of a conversation becomes one input row of each hosted agent in it.

Cursor and rows are one commit, in the order of the event log, so nothing is heard twice or missed
(RUN-1, RUN-8, RUN-56). What the channel keeps back is archived with the reason, neither lost nor
read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from sqlmodel import Session

from app.aun import channel
from app.aun import delivery as messages
from app.aun.models import IdentityKind
from app.kernel import clock, db, ids, json
from app.kernel.db import Work
from app.kernel.due import Due, is_away
from app.runs import authority, lanes, participation, rows, told
from app.runs.authority import Chain
from app.runs.lanes import Party
from app.runs.participation import Verdict
from app.runs.release import Content
from app.runs.states import Hold, InputState, Mode, SenderKind

log = structlog.get_logger(__name__)

PAGE = 100  # messages heard in one transaction
HEARERS = 200  # agents and conversations looked up at once
DISPLAY_TYPES = frozenset({"status", "event", "thought", "tool_call", "tool_result"})
DISPLAY_ONLY, UNREADABLE, DELETED = "display_only", "unreadable", "deleted"
CHAIN_TOO_LONG = "chain_too_long"
_HEARERS = Due("hearer")
_KINDS = {IdentityKind.USER: SenderKind.PERSON, IdentityKind.AGENT: SenderKind.AGENT}


@dataclass(frozen=True, slots=True)
class Hearer:
    """An agent in a conversation that it has not heard to the end."""

    tenant_id: str
    agent_id: str
    aid: str
    conversation_id: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from the others."""
        return (self.tenant_id, self.agent_id, self.conversation_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of a message: queued in a lane, or put away with a reason."""

    state: InputState = InputState.QUEUED
    reason: str | None = None
    hold: Hold | None = None
    judge_after: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who wrote, by what the server knows of the AID; never by what a payload says."""

    kind: SenderKind
    party: Party | None = None
    user_id: str | None = None  # of ours: hears what became of their message
    chain: Chain | None = None


async def hear_all() -> int:
    """Deliver everything that is behind; returns how many messages there were."""
    heard, goes_on = 0, True
    while goes_on:
        behind = await db.read(_behind, _HEARERS.resting)
        heard_now = await _hear_all(behind)
        heard += heard_now
        goes_on = heard_now > 0 and len(behind) >= HEARERS
    return heard


async def sweep(known: Mapping[str, int]) -> dict[str, int]:
    """Deliver what was said since a sweep, and how far the logs are; at first everything.

    It finds what a lost hint left behind, and reads no conversation that has nothing new, but those
    in which something could not be delivered.
    """
    heads = await db.read(_heads)
    if not known:
        await hear_all()
        return heads
    for tenant_id, _, conversation_id in _HEARERS.again():
        await hear_in(tenant_id, conversation_id)
    for tenant_id, seq in heads.items():
        since = known.get(tenant_id, 0)
        if seq > since:
            for conversation_id in await db.read(_said_since, tenant_id, since):
                await hear_in(tenant_id, conversation_id)
    return heads


async def hear_in(tenant_id: str, conversation_id: str) -> int:
    """Deliver what is new in one conversation."""
    return await _hear_all(await db.read(_behind_in, tenant_id, conversation_id))


async def _hear_all(behind: Sequence[Hearer]) -> int:
    heard = 0
    for hearer in behind:
        if not _HEARERS.rests(hearer.key):
            with _HEARERS.trying(hearer.key):
                heard += await _hear(hearer)
    return heard


async def _hear(hearer: Hearer) -> int:
    heard = 0
    if _HEARERS.is_hopeless(hearer.key):
        heard += await _hear_past(hearer)
    while number := await db.transaction(deliver, hearer):
        heard += number
        if number < PAGE:
            break
    return heard


async def _hear_past(hearer: Hearer) -> int:
    """Hear one after the other up to the one that nobody can deliver; that one is put away."""
    heard = 0
    while heard < PAGE:
        try:
            number = await db.transaction(deliver, hearer, 1)
        except Exception as fault:
            if is_away(fault):
                raise
            log.exception("message_put_away", row_id=hearer.conversation_id, exc_info=fault)
            await db.transaction(put_away, hearer)
            return heard + 1
        if number == 0:
            break
        heard += number
    return heard


def deliver(work: Work, hearer: Hearer, at_once: int = PAGE) -> int:
    """Let an agent hear the next messages of a conversation; returns how many there were."""
    found, last_seq = _next(work, hearer, at_once)
    for message in found:
        _take(work, hearer, message)
    # numbers stand in the order of commits: below `last_seq` nothing comes any more
    heard = found[-1].log_seq if len(found) == at_once else max(last_seq, *_seqs(found))
    _heard(work, hearer, heard)
    return len(found)


def put_away(work: Work, hearer: Hearer) -> None:
    """Archive the next message, which nobody can deliver, with the reason."""
    found, _ = _next(work, hearer, 1)
    for message in found:
        nobody, unread = Sender(kind=SenderKind.SYSTEM), message._replace(payload=None)
        fate = Fate(state=InputState.ARCHIVED, reason=UNREADABLE)
        _arrive(work, hearer, unread, nobody, fate, None)
        _heard(work, hearer, message.log_seq)


def _next(work: Work, hearer: Hearer, limit: int) -> tuple[Sequence[Any], int]:
    """The next messages, and how far the conversation is; the cursor is held until the commit."""
    key = _key(hearer)
    cursor = rows.HEAR.run_with(work.connection, key).one().log_seq
    joined = rows.JOINED.run_with(work.connection, key | {"aid": hearer.aid}).first()
    if joined is None:
        return (), 0
    after = max(cursor, joined.from_seq)
    found = rows.MESSAGES.run_with(work.connection, key | {"after": after, "limit": limit}).all()
    return found, joined.last_seq


def _heard(work: Work, hearer: Hearer, log_seq: int) -> None:
    rows.HEARD.run_with(work.connection, _key(hearer) | {"log_seq": log_seq})


def _key(hearer: Hearer) -> dict[str, Any]:
    return {
        "tenant_id": hearer.tenant_id,
        "agent_id": hearer.agent_id,
        "conversation_id": hearer.conversation_id,
    }


def _seqs(found: Sequence[Any]) -> tuple[int, ...]:
    return (0, *(message.log_seq for message in found[-1:]))


def _take(work: Work, hearer: Hearer, message: Any) -> None:
    sender = _sender(work, hearer, message)
    fate = _fate(work, hearer, message, sender)
    if message.sender_aid != hearer.aid:
        _stir(work, hearer, sender)
    lane_id = None
    if fate.state == InputState.QUEUED and sender.party is not None:
        lane_id = lanes.find_or_make(
            work,
            hearer.tenant_id,
            hearer.agent_id,
            sender.party,
            hearer.conversation_id,
            message.thread_id or "",
        )
    _arrive(work, hearer, message, sender, fate, lane_id)


def _sender(work: Work, hearer: Hearer, message: Any) -> Sender:
    kind = _KINDS.get(message.identity_kind)
    if message.sender_aid == hearer.aid:
        return Sender(kind=SenderKind.AGENT)
    if kind == SenderKind.PERSON or message.linked_to is not None:
        user_id = message.linked_to or message.owner_id
        return Sender(kind=SenderKind.PERSON, party=Party(user_id), user_id=user_id)
    if kind == SenderKind.AGENT:
        chain = authority.chain_of(
            work.connection, hearer.tenant_id, message.id, message.sender_aid
        )
        return Sender(kind=kind, party=chain.party, chain=chain)
    if message.identity_kind == IdentityKind.OUTSIDE:
        return Sender(kind=SenderKind.PEER, party=Party(peer_aid=message.sender_aid))
    return Sender(kind=SenderKind.SYSTEM)


def _fate(work: Work, hearer: Hearer, message: Any, sender: Sender) -> Fate:
    payload: dict[str, Any] | None = json.of_column(message.payload)
    if message.sender_aid == hearer.aid:
        return Fate(state=InputState.ARCHIVED, reason=DISPLAY_ONLY)
    if message.recalled_at is not None:
        return Fate(state=InputState.DROPPED, reason=DELETED)
    if payload is None:
        is_gone = not message.is_sealed and message.unreadable is None  # its time was over
        state = InputState.DROPPED if is_gone else InputState.ARCHIVED
        return Fate(state=state, reason=DELETED if is_gone else UNREADABLE)
    if not channel.passes(message.mention_mode, payload, hearer.aid):
        return Fate(state=InputState.ARCHIVED, reason=channel.NOT_MENTIONED)
    if sender.party is None or {payload.get("type"), message.type} & DISPLAY_TYPES:
        return Fate(state=InputState.ARCHIVED, reason=DISPLAY_ONLY)
    if sender.chain is not None and sender.chain.is_too_long:
        return Fate(state=InputState.ARCHIVED, reason=CHAIN_TOO_LONG)
    return _judged(work, hearer, message, payload, sender)


def _judged(
    work: Work, hearer: Hearer, message: Any, payload: dict[str, Any], sender: Sender
) -> Fate:
    if message.group_id is None or _answers(work, hearer, message):
        return Fate()
    policy = _policy(work, hearer) if sender.kind != SenderKind.PERSON else ""
    match participation.judge(payload, sender.kind, hearer.aid, policy):
        case Verdict.SILENT:
            return Fate(state=InputState.ARCHIVED, reason=participation.NOT_FOR_ME)
        case Verdict.WAIT:
            return Fate(hold=Hold.WAIT, judge_after=clock.now())
    return Fate()


def _answers(work: Work, hearer: Hearer, message: Any) -> bool:
    """Whether it replies to a message of this agent, or quotes one."""
    quote = (json.of_column(message.payload) or {}).get("quote")
    quoted = quote.get("message_id") if isinstance(quote, dict) else None
    for message_id in (message.in_reply_to, quoted):
        if isinstance(message_id, str) and _said(work, hearer, message_id):
            return True
    return False


def _said(work: Work, hearer: Hearer, message_id: str) -> bool:
    found = rows.SAID_BY.run(
        work.connection,
        tenant_id=hearer.tenant_id,
        aid=hearer.aid,
        message_id=message_id,
        conversation_id=hearer.conversation_id,
    )
    return found.first() is not None


def _policy(work: Work, hearer: Hearer) -> str:
    key = {"tenant_id": hearer.tenant_id, "agent_id": hearer.agent_id}
    content = json.of_column(rows.POLICY.run_with(work.connection, key).scalar())
    return Content.of(content or {}).participation


def _stir(work: Work, hearer: Hearer, sender: Sender) -> None:
    """What any message does to those before it: waiting ones are judged again; a person frees."""
    key = _key(hearer)
    rows.JUDGE_AGAIN.run_with(work.connection, key | {"moment": clock.now()})
    if sender.kind != SenderKind.PERSON:
        return
    for freed in rows.END_STREAK.run_with(work.connection, key):
        lanes.release(work, hearer.tenant_id, freed.id, Hold.QUOTA, freed.user_id)


def _arrive(
    work: Work, hearer: Hearer, message: Any, sender: Sender, fate: Fate, lane_id: str | None
) -> None:
    mode, source = _mode(message, sender)
    now = clock.now()
    row = {
        "tenant_id": hearer.tenant_id,
        "id": ids.ulid(),
        "agent_id": hearer.agent_id,
        "message_id": message.id,
        "log_seq": message.log_seq,
        "lane_id": lane_id,
        "sender_aid": message.sender_aid,
        "sender_kind": sender.kind.value,
        "mode": mode.value,
        "mode_source": source,
        "state": fate.state.value,
        "hold": fate.hold.value if fate.hold else None,
        "reason": fate.reason,
        "judged": 0,
        "judge_after": fate.judge_after,
        "run_id": None,
        "arrived_at": now,
        "settled_at": None if fate.state == InputState.QUEUED else now,
    }
    is_new = rows.ARRIVE.run_with(work.connection, row).rowcount == 1
    if is_new and message.sender_aid != hearer.aid:
        _tell(work, hearer, row, sender)


def _tell(work: Work, hearer: Hearer, row: dict[str, Any], sender: Sender) -> None:
    watcher_id = sender.party.user_id if sender.party and row["lane_id"] else None
    arrived: Any = rows.Told(**{name: row[name] for name in rows.Told._fields})
    told.input(
        work,
        arrived,
        hearer.conversation_id,
        watcher_id=watcher_id,
        sender_id=sender.user_id,
    )


def _mode(message: Any, sender: Sender) -> tuple[Mode, str]:
    """When it is to be taken: as the sender said, or by who they are; no right (RUN-9)."""
    chosen = (json.of_column(message.payload) or {}).get("input_mode")
    if isinstance(chosen, str) and chosen in {each.value for each in Mode}:
        return Mode(chosen), "sender"
    return Mode.STEERING if sender.kind == SenderKind.PERSON else Mode.FOLLOW_UP, "default"


def _heads(session: Session) -> dict[str, int]:
    return {row.tenant_id: row.seq for row in rows.HEADS.run(session.connection())}


def _said_since(session: Session, tenant_id: str, seq: int) -> list[str]:
    found = rows.SAID_SINCE.run(
        session.connection(), tenant_id=tenant_id, seq=seq, kind=messages.STORED
    )
    return [row.subject for row in found]


def _behind(session: Session, more: int = 0) -> list[Hearer]:
    found = rows.BEHIND.run(session.connection(), limit=HEARERS + more)
    return [Hearer(*row) for row in found]


def _behind_in(session: Session, tenant_id: str, conversation_id: str) -> list[Hearer]:
    found = rows.BEHIND_IN.run(
        session.connection(), tenant_id=tenant_id, conversation_id=conversation_id
    )
    return [Hearer(*row) for row in found]
