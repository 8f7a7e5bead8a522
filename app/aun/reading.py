"""What a party sees of its conversations: lists, pages of messages, who else is there.

Everything is read for one AID, which takes part now: what it may not see is not there (UI-26). An
unanswered message is like any other; no state here follows from silence (UI-1).
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Any

from sqlmodel import Session, col, func, or_, select

from app.aun import channel, identities, presence
from app.aun.group_models import Group, Member
from app.aun.identities import Named
from app.aun.markdown import words_of
from app.aun.models import (
    Conversation,
    ConversationKind,
    Identity,
    IdentityKind,
    IdentityStatus,
    InboxEntry,
    InboxPeer,
    Message,
    Participant,
)
from app.identity import search
from app.identity.models import Agent, User
from app.kernel import json

PAGE = 50
MOST_UNREAD = 100  # beyond it "99+" is shown
LONGEST_PREVIEW = 140
LONGEST_PAGE = 500  # messages on one page
NEIGHBOURS = timedelta(minutes=5)  # what one sender says within it shares a header
FOUND = 30  # parties a search shows
HOSTED = frozenset({IdentityKind.USER, IdentityKind.AGENT, IdentityKind.SYSTEM})


class State(StrEnum):
    """How far a message of one's own has come; neutral, and only ever forward (UI-1)."""

    SENT = "sent"
    DELIVERED = "delivered"
    SEEN = "seen"


@dataclass(frozen=True, slots=True)
class Line:
    """A conversation in the list.

    Attributes:
        seq: of its newest message in the event log: its place in the list.
        other: the AID at the other end, None for a group.
        unread: 100 stands for more than 99.
        is_offered: an agent began it, and the reader has not written anything.
    """

    id: str
    kind: ConversationKind
    title: str
    seq: int
    other: str | None
    other_kind: IdentityKind | None
    group_id: str | None
    unread: int
    preview: str
    preview_by: str | None
    last_at: datetime | None
    is_online: bool
    is_offered: bool
    is_active: bool = True


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that another one replies to."""

    id: str
    author: str
    preview: str


@dataclass(frozen=True, slots=True)
class Before:
    """The message above another one."""

    sender: str
    sent_at: datetime
    message_id: str
    replied: str | None


@dataclass(frozen=True, slots=True)
class Reported:
    """A tool call or result that a sender tells of; never one of ours (UI-6).

    Attributes:
        id: the sender's own; empty where it gave none.
        has_other: whether the other half, the call or the result, is in the conversation.
        is_ok: of a result.
        details: arguments or result as JSON.
    """

    is_call: bool
    id: str
    name: str
    is_ok: bool
    details: str
    has_other: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as one party sees it.

    Attributes:
        before: the message above it, None for the first.
        html: rendered text, None where there is none to show.
        is_sealed: neither party's key is here, so nobody here can read it.
        kept_from: names of the agents whose models a group's filter kept it from (UI-7).
        replied: the `message_id` of the message it replies to.
    """

    id: str
    conversation_id: str
    seq: int
    message_id: str
    sender: str
    author: Named
    is_own: bool
    sent_at: datetime
    version: int
    kind: str
    text: str
    html: str | None
    data: str
    links: tuple[tuple[str, str], ...]
    state: State | None
    is_recalled: bool
    is_sealed: bool
    unreadable: str | None
    is_encrypted: bool
    quoted: Quoted | None
    replies: tuple[str, ...] = ()
    kept_from: tuple[str, ...] = ()
    reported: Reported | None = None
    mentions_reader: bool = False
    replied: str | None = None
    before: Before | None = None

    @property
    def continues(self) -> bool:
        """Whether it goes on after a message of the same sender, under one header."""
        before = self.before
        is_near = before is not None and self.sent_at - before.sent_at < NEIGHBOURS
        return before is not None and is_near and before.sender == self.sender

    @property
    def joins(self) -> bool:
        """Whether it follows another reply to the same message (UI-3)."""
        before = self.before
        return self.replied is not None and before is not None and before.replied == self.replied

    @property
    def needs_quote(self) -> bool:
        """Whether what it replies to does not stand right above it."""
        is_next = self.before is not None and self.before.message_id == self.replied
        return self.quoted is not None and not is_next and not self.joins


@dataclass(frozen=True, slots=True)
class Page:
    """Messages in their order, and whether older ones exist."""

    messages: list[Shown]
    has_older: bool
    read_seq: int  # the reader has read up to here


@dataclass(frozen=True, slots=True)
class Opened:
    """One conversation and who is in it."""

    line: Line
    parties: dict[str, Named]
    online: frozenset[str]
    read_seq: int
    group: Group | None = None
    roles: dict[str, str] = field(default_factory=dict)


def listed(
    session: Session, tenant_id: str, aid: str, before: int | None = None, limit: int = PAGE
) -> tuple[list[Line], int | None]:
    """The conversations of an AID, the newest first; and where the next page begins, if any."""
    query = (
        select(Conversation, Participant)
        .join(
            Participant,
            (col(Participant.tenant_id) == Conversation.tenant_id)
            & (col(Participant.conversation_id) == Conversation.id),
        )
        .where(
            Participant.tenant_id == tenant_id,
            Participant.aid == aid,
            col(Participant.left_at).is_(None),
        )
        .order_by(col(Conversation.last_seq).desc(), col(Conversation.id).desc())
        .limit(limit + 1)
    )
    if before is not None:
        query = query.where(Conversation.last_seq < before)
    found = session.exec(query).all()
    more = found[limit - 1][0].last_seq if len(found) > limit else None
    return _lines(session, tenant_id, aid, found[:limit]), more


def line(session: Session, tenant_id: str, aid: str, conversation_id: str) -> Line | None:
    """One conversation as the list shows it to `aid`; None where it takes no part."""
    found = _mine(session, tenant_id, aid, conversation_id)
    return _lines(session, tenant_id, aid, [found])[0] if found else None


def opened(session: Session, tenant_id: str, aid: str, conversation_id: str) -> Opened | None:
    """One conversation with everybody in it; None where `aid` takes no part."""
    found = _mine(session, tenant_id, aid, conversation_id)
    if found is None:
        return None
    conversation, participant = found
    group, roles = None, {}
    if conversation.group_id is not None:
        group = session.get(Group, (tenant_id, conversation.group_id))
        roles = _roles(session, tenant_id, conversation.group_id)
    aids = set(roles) or {aid, *filter(None, (conversation.first_aid, conversation.second_aid))}
    return Opened(
        line=_lines(session, tenant_id, aid, [found])[0],
        parties=identities.display_names(session, tenant_id, aids),
        online=frozenset(presence.online(session, tenant_id, aids)),
        read_seq=participant.read_seq,
        group=group,
        roles=roles,
    )


def unread(session: Session, tenant_id: str, aid: str) -> int:
    """How many conversations have something `aid` has not read."""
    query = (
        select(func.count())
        .select_from(Participant)
        .join(
            Conversation,
            (col(Conversation.tenant_id) == Participant.tenant_id)
            & (col(Conversation.id) == Participant.conversation_id),
        )
        .where(
            Participant.tenant_id == tenant_id,
            Participant.aid == aid,
            col(Participant.left_at).is_(None),
            col(Conversation.last_seq) > Participant.read_seq,
            select(Message.id)
            .where(
                Message.tenant_id == tenant_id,
                Message.conversation_id == Conversation.id,
                col(Message.log_seq) > Participant.read_seq,
                col(Message.log_seq) > Participant.from_seq,
                Message.sender_aid != aid,
            )
            .exists(),
        )
    )
    return session.exec(query).one()


def page(
    session: Session,
    tenant_id: str,
    aid: str,
    conversation_id: str,
    *,
    before: int | None = None,
    since: int | None = None,
    limit: int = PAGE,
) -> Page | None:
    """Messages in their order: the newest, those before a number, or all since one.

    None where `aid` takes no part.
    """
    found = _mine(session, tenant_id, aid, conversation_id)
    if found is None:
        return None
    conversation, participant = found
    query = (
        select(Message)
        .where(
            Message.tenant_id == tenant_id,
            Message.conversation_id == conversation_id,
            Message.log_seq > participant.from_seq,
        )
        .order_by(col(Message.log_seq).desc())
        .limit(limit + 1)
    )
    if before is not None:
        query = query.where(Message.log_seq < before)
    if since is not None:
        query = query.where(Message.log_seq >= since)
    rows = session.exec(query).all()
    shown = _shown(session, conversation, aid, list(reversed(rows[:limit])), participant.from_seq)
    return Page(shown, has_older=len(rows) > limit, read_seq=participant.read_seq)


def message(session: Session, tenant_id: str, aid: str, row_id: str) -> Shown | None:
    """One message as `aid` sees it; None where it may not, or there is none."""
    row = session.get(Message, (tenant_id, row_id))
    found = _mine(session, tenant_id, aid, row.conversation_id) if row else None
    if row is None or found is None or row.log_seq <= found[1].from_seq:
        return None
    return _shown(session, found[0], aid, [row], found[1].from_seq)[0]


def author(session: Session, tenant_id: str, aid: str, row_id: str) -> Named | None:
    """Who wrote a message to `aid`; None where it is its own, may not be seen, or is none."""
    row = session.get(Message, (tenant_id, row_id))
    if row is None or row.sender_aid == aid:
        return None
    found = _mine(session, tenant_id, aid, row.conversation_id)
    if found is None or row.log_seq <= found[1].from_seq:
        return None
    return _named(identities.display_names(session, tenant_id, [row.sender_aid]), row.sender_aid)


def told(session: Session, tenant_id: str, aid: str, row_id: str) -> Shown | None:
    """One message for all who take part, as `aid` sees it: what some may not see is left out.

    Somebody who came later sees nothing of what was said before, not even as a quote.
    """
    row = session.get(Message, (tenant_id, row_id))
    conversation = session.get(Conversation, (tenant_id, row.conversation_id)) if row else None
    if row is None or conversation is None:
        return None
    query = select(func.max(Participant.from_seq)).where(
        Participant.tenant_id == tenant_id,
        Participant.conversation_id == conversation.id,
        col(Participant.left_at).is_(None),
        Participant.from_seq < row.log_seq,
    )
    return _shown(session, conversation, aid, [row], session.exec(query).one() or 0)[0]


def own_states(
    session: Session, tenant_id: str, aid: str, conversation_id: str, limit: int = PAGE
) -> dict[str, State]:
    """How far the newest of one's own messages have come, by row."""
    conversation = session.get(Conversation, (tenant_id, conversation_id))
    query = (
        select(Message)
        .where(
            Message.tenant_id == tenant_id,
            Message.conversation_id == conversation_id,
            Message.sender_aid == aid,
        )
        .order_by(col(Message.log_seq).desc())
        .limit(limit)
    )
    return _states(session, conversation, aid, session.exec(query).all()) if conversation else {}


@dataclass(frozen=True, slots=True)
class Party:
    """Somebody one can write to."""

    aid: str
    named: Named
    is_online: bool


def parties(
    session: Session, tenant_id: str, own_aid: str, q: str = "", limit: int = FOUND
) -> list[Party]:
    """People, agents and outside clients that can be written to: names or AIDs with `q` in them.

    Names are found as every search finds them, by what rows keep for it. That holds more than
    names, so what is only there, a mail address, does not count.
    """
    wanted = (IdentityKind.USER, IdentityKind.AGENT, IdentityKind.OUTSIDE)
    terms = search.terms(q)
    query = (
        select(Identity.aid, func.coalesce(Agent.name, User.display_name, ""))
        .outerjoin(User, (col(User.tenant_id) == Identity.tenant_id) & _is_owner(User.id))
        .outerjoin(Agent, (col(Agent.tenant_id) == Identity.tenant_id) & _is_owner(Agent.id))
        .where(
            Identity.tenant_id == tenant_id,
            col(Identity.kind).in_(wanted),
            Identity.status == IdentityStatus.ACTIVE,
            Identity.aid != own_aid,
        )
        .order_by(Identity.kind, func.coalesce(Agent.name, User.display_name, Identity.aid))
    )
    if not terms:
        query = query.limit(limit)
    for term in terms:
        kept = (User.search, Agent.search, Identity.aid)
        query = query.where(or_(*(col(each).contains(term, autoescape=True) for each in kept)))
    named = (
        aid
        for aid, name in session.exec(query)
        if all(term in search.folded(name, aid) for term in terms)
    )
    aids = list(islice(named, limit))
    names = identities.display_names(session, tenant_id, aids)
    online = presence.online(session, tenant_id, aids)
    return [Party(aid, names[aid], aid in online) for aid in aids]


def party(session: Session, tenant_id: str, aid: str) -> Party | None:
    """One of them; None where the AID is not known here, is a group or shut out."""
    found = identities.display_names(session, tenant_id, [aid]).get(aid)
    if found is None or found.kind == IdentityKind.GROUP:
        return None
    return Party(aid, found, aid in presence.online(session, tenant_id, [aid]))


def last(session: Session, tenant_id: str, aid: str) -> str | None:
    """The conversation in which something was said last."""
    found, _ = listed(session, tenant_id, aid, limit=1)
    return found[0].id if found else None


def _is_owner(column: Any) -> Any:
    return col(column) == Identity.owner_id


def row_of(
    session: Session, tenant_id: str, sender_aid: str, message_id: str
) -> tuple[str, str] | None:
    """The ids of the row and the conversation of a message, by its sender's id."""
    query = select(Message.id, Message.conversation_id).where(
        Message.tenant_id == tenant_id,
        Message.sender_aid == sender_aid,
        Message.message_id == message_id,
    )
    found = session.exec(query).first()
    return (found[0], found[1]) if found else None


def text_of(payload: dict[str, Any]) -> str:
    """What a payload says in words; empty where it says nothing (aun.md, 7.3)."""
    for name in ("text", "fallback_text", "title", "content"):
        if isinstance(value := payload.get(name), str) and value.strip():
            return value
    return ""


def _mine(
    session: Session, tenant_id: str, aid: str, conversation_id: str
) -> tuple[Conversation, Participant] | None:
    participant = session.get(Participant, (tenant_id, conversation_id, aid))
    conversation = session.get(Conversation, (tenant_id, conversation_id))
    if participant is None or conversation is None or participant.left_at is not None:
        return None
    return conversation, participant


def _lines(
    session: Session,
    tenant_id: str,
    aid: str,
    found: Sequence[tuple[Conversation, Participant]],
) -> list[Line]:
    others = {conversation.id: _other(conversation, aid) for conversation, _ in found}
    last = _by_id(session, tenant_id, [each.last_message_id for each, _ in found])
    authors = {row.sender_aid for row in last.values()}
    names = identities.display_names(session, tenant_id, {*filter(None, others.values()), *authors})
    groups = _groups(session, tenant_id, [each.group_id for each, _ in found])
    online = presence.online(session, tenant_id, [each for each in others.values() if each])
    counts = _unread(session, tenant_id, aid, found)
    wrote = _wrote(session, tenant_id, aid, [each.id for each, _ in found])
    lines = []
    for conversation, participant in found:
        other, row = others[conversation.id], last.get(conversation.last_message_id or "")
        is_visible = row is not None and row.log_seq > participant.from_seq
        named = names.get(other) if other else None
        starter = names.get(conversation.started_by)
        is_by_agent = starter is not None and starter.kind == IdentityKind.AGENT
        author = names.get(row.sender_aid) if row else None
        lines.append(
            Line(
                id=conversation.id,
                kind=ConversationKind(conversation.kind),
                title=participant.title or _title(conversation, named, groups),
                seq=conversation.last_seq,
                other=other,
                other_kind=named.kind if named else None,
                group_id=conversation.group_id,
                unread=counts.get(conversation.id, 0),
                preview=_preview(row) if row and is_visible else "",
                preview_by=author.name if author and row and row.sender_aid != aid else None,
                last_at=row.sent_at if row and is_visible else conversation.created_at,
                is_online=other in online,
                is_offered=is_by_agent and conversation.id not in wrote,
                is_active=named.is_active if named else True,
            )
        )
    return lines


def _other(conversation: Conversation, aid: str) -> str | None:
    if conversation.kind == ConversationKind.GROUP:
        return None
    is_first = conversation.first_aid == aid
    return conversation.second_aid if is_first else conversation.first_aid


def _title(conversation: Conversation, other: Named | None, groups: dict[str, Group]) -> str:
    if conversation.group_id is not None:
        group = groups.get(conversation.group_id)
        return group.name if group else conversation.group_id
    return other.name if other else ""


def _by_id(session: Session, tenant_id: str, row_ids: Collection[str | None]) -> dict[str, Message]:
    query = select(Message).where(
        Message.tenant_id == tenant_id, col(Message.id).in_(sorted(filter(None, row_ids)))
    )
    return {row.id: row for row in session.exec(query)}


def _groups(
    session: Session, tenant_id: str, group_ids: Collection[str | None]
) -> dict[str, Group]:
    wanted = sorted(filter(None, group_ids))
    if not wanted:
        return {}
    query = select(Group).where(Group.tenant_id == tenant_id, col(Group.id).in_(wanted))
    return {group.id: group for group in session.exec(query)}


def _roles(session: Session, tenant_id: str, group_id: str) -> dict[str, str]:
    query = select(Member.aid, Member.role).where(
        Member.tenant_id == tenant_id, Member.group_id == group_id
    )
    return dict(session.exec(query).all())


def _unread(
    session: Session,
    tenant_id: str,
    aid: str,
    found: Sequence[tuple[Conversation, Participant]],
) -> dict[str, int]:
    counts = {}
    for conversation, participant in found:
        seen = max(participant.read_seq, participant.from_seq)
        if conversation.last_seq <= seen:
            continue
        some = (
            select(Message.id)
            .where(
                Message.tenant_id == tenant_id,
                Message.conversation_id == conversation.id,
                Message.log_seq > seen,
                Message.sender_aid != aid,
            )
            .limit(MOST_UNREAD)
            .subquery()
        )
        counts[conversation.id] = session.exec(select(func.count()).select_from(some)).one()
    return counts


def _wrote(
    session: Session, tenant_id: str, aid: str, conversation_ids: Collection[str]
) -> set[str]:
    query = (
        select(Message.conversation_id)
        .where(
            Message.tenant_id == tenant_id,
            Message.sender_aid == aid,
            col(Message.conversation_id).in_(conversation_ids),
        )
        .distinct()
    )
    return set(session.exec(query))


def _preview(row: Message) -> str:
    if row.payload is None or row.recalled_at is not None:
        return ""
    text = words_of(row.html) if row.html else " ".join(text_of(row.payload).split())
    return text if len(text) <= LONGEST_PREVIEW else text[: LONGEST_PREVIEW - 1] + "…"


def _shown(
    session: Session,
    conversation: Conversation,
    aid: str,
    rows: list[Message],
    from_seq: int,
) -> list[Shown]:
    tenant_id = conversation.tenant_id
    quoted = _quoted(session, conversation, rows, from_seq)
    authors = {row.sender_aid for row in [*rows, *quoted.values()]}
    names = identities.display_names(session, tenant_id, authors)
    replies = _replies(session, conversation, rows)
    states = _states(session, conversation, aid, [row for row in rows if row.sender_aid == aid])
    kept = _kept_from(session, conversation, rows)
    befores = _befores(session, conversation, rows, from_seq)
    reported = _reported(session, conversation, rows)
    shown = [
        _one(row, aid, names, quoted, replies.get(row.message_id, ()), states, kept) for row in rows
    ]
    return [
        replace(each, before=before, reported=reported.get(each.id))
        for each, before in zip(shown, befores, strict=True)
    ]


def _one(
    row: Message,
    aid: str,
    names: dict[str, Named],
    quoted: dict[str, Message],
    replies: tuple[str, ...],
    states: dict[str, State],
    kept: dict[str, tuple[str, ...]],
) -> Shown:
    payload = row.payload or {}
    kind = payload.get("type") if isinstance(payload.get("type"), str) else "text"
    original = quoted.get(row.in_reply_to or "")
    text = text_of(payload)
    return Shown(
        id=row.id,
        conversation_id=row.conversation_id,
        seq=row.log_seq,
        message_id=row.message_id,
        sender=row.sender_aid,
        author=_named(names, row.sender_aid),
        is_own=row.sender_aid == aid,
        sent_at=row.sent_at,
        version=row.version,
        kind=str(kind),
        text=text,
        html=row.html if text else None,
        data="" if text or not payload else json.dumps(payload).decode(),
        links=_links(payload),
        state=states.get(row.id),
        is_recalled=row.recalled_at is not None,
        is_sealed=row.payload is None and row.envelope is not None and row.unreadable is None,
        unreadable=row.unreadable,
        is_encrypted=row.envelope is not None,
        quoted=_quote(original, names) if original else None,
        replies=replies,
        kept_from=kept.get(row.id, ()),
        mentions_reader=_mentions(payload, aid),
        replied=row.in_reply_to if original else None,
    )


def _named(names: dict[str, Named], aid: str) -> Named:
    return names.get(aid) or Named(aid.partition(".")[0], IdentityKind.OUTSIDE)


def _quote(original: Message, names: dict[str, Named]) -> Quoted:
    return Quoted(original.id, _named(names, original.sender_aid).name, _preview(original))


def _mentions(payload: dict[str, Any], aid: str) -> bool:
    mentions = payload.get("mentions")
    return isinstance(mentions, list) and any(
        isinstance(each, dict) and (each.get("aid") == aid or each.get("scope") == "all")
        for each in mentions
    )


def _links(payload: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names and addresses of attachments; nothing here fetches them (aun.md, 16)."""
    found = payload.get("attachments")
    links = []
    for each in found if isinstance(found, list) else ():
        url = each.get("url") if isinstance(each, dict) else None
        if isinstance(url, str) and url.startswith(("https://", "http://")):
            name = each.get("filename")
            links.append((name if isinstance(name, str) and name else url, url))
    return tuple(links[:20])


def _befores(
    session: Session, conversation: Conversation, rows: Sequence[Message], from_seq: int
) -> list[Before | None]:
    """The message above each of `rows`, which follow each other."""
    if not rows:
        return []
    query = (
        select(Message)
        .where(
            Message.tenant_id == conversation.tenant_id,
            Message.conversation_id == conversation.id,
            Message.log_seq < rows[0].log_seq,
            Message.log_seq > from_seq,
        )
        .order_by(col(Message.log_seq).desc())
        .limit(1)
    )
    above = [session.exec(query).first(), *rows[:-1]]
    return [
        Before(row.sender_aid, row.sent_at, row.message_id, row.in_reply_to) if row else None
        for row in above
    ]


def _reported(
    session: Session, conversation: Conversation, rows: Sequence[Message]
) -> dict[str, Reported]:
    """What senders tell of their tools, and whether call and result are both there."""
    found = {row.id: row.payload for row in rows if row.payload and _is_tool(row.payload)}
    if not found:
        return {}
    nearby = select(Message).where(
        Message.tenant_id == conversation.tenant_id,
        Message.conversation_id == conversation.id,
        col(Message.sender_aid).in_({row.sender_aid for row in rows}),
    )
    latest = nearby.order_by(col(Message.log_seq).desc()).limit(LONGEST_PAGE)
    calls: dict[tuple[str, str, bool], str] = {}
    for row in session.exec(latest):
        if row.payload and _is_tool(row.payload) and (call_id := _call_id(row.payload)):
            key = (row.sender_aid, call_id, row.payload["type"] == "tool_call")
            calls[key] = str(row.payload.get("name") or "")
    senders = {row.id: row.sender_aid for row in rows}
    return {
        row_id: _as_reported(senders[row_id], payload, calls) for row_id, payload in found.items()
    }


def _as_reported(
    sender: str, payload: dict[str, Any], calls: dict[tuple[str, str, bool], str]
) -> Reported:
    is_call, call_id = payload["type"] == "tool_call", _call_id(payload)
    is_ok = payload.get("ok") is not False
    part = "arguments" if is_call else ("result" if is_ok else "error")
    details = payload.get(part)
    other = calls.get((sender, call_id, not is_call))
    name = payload.get("name") if is_call else other
    return Reported(
        is_call=is_call,
        id=call_id,
        name=str(name or ""),
        is_ok=is_ok,
        details="" if details is None else json.dumps(details).decode(),
        has_other=other is not None,
    )


def _is_tool(payload: dict[str, Any]) -> bool:
    return payload.get("type") in {"tool_call", "tool_result"}


def _call_id(payload: dict[str, Any]) -> str:
    found = payload.get("call_id")
    return found if isinstance(found, str) else ""


def _quoted(
    session: Session, conversation: Conversation, rows: Sequence[Message], from_seq: int
) -> dict[str, Message]:
    wanted = {row.in_reply_to for row in rows if row.in_reply_to}
    if not wanted:
        return {}
    query = select(Message).where(
        Message.tenant_id == conversation.tenant_id,
        Message.conversation_id == conversation.id,
        col(Message.message_id).in_(sorted(wanted)),
        Message.log_seq > from_seq,
    )
    return {row.message_id: row for row in session.exec(query)}


def _replies(
    session: Session, conversation: Conversation, rows: Sequence[Message]
) -> dict[str, tuple[str, ...]]:
    query = (
        select(Message.in_reply_to, Message.id)
        .where(
            Message.tenant_id == conversation.tenant_id,
            Message.conversation_id == conversation.id,
            col(Message.in_reply_to).in_(sorted({row.message_id for row in rows})),
        )
        .order_by(col(Message.log_seq))
    )
    found: dict[str, list[str]] = defaultdict(list)
    for replied_to, row_id in session.exec(query):
        found[replied_to or ""].append(row_id)
    return {message_id: tuple(row_ids) for message_id, row_ids in found.items()}


def _states(
    session: Session, conversation: Conversation, aid: str, own: Sequence[Message]
) -> dict[str, State]:
    if not own:
        return {}
    others = list(
        session.exec(
            select(Participant).where(
                Participant.tenant_id == conversation.tenant_id,
                Participant.conversation_id == conversation.id,
                Participant.aid != aid,
                col(Participant.left_at).is_(None),
            )
        )
    )
    is_direct = conversation.kind == ConversationKind.DIRECT  # in a group reading is one's own
    seen_seq = max((each.read_seq for each in others), default=0) if is_direct else 0
    delivered = _delivered(session, conversation, [each.aid for each in others], own)
    return {
        row.id: State.SEEN
        if row.log_seq <= seen_seq
        else State.DELIVERED
        if row.id in delivered
        else State.SENT
        for row in own
    }


def _delivered(
    session: Session, conversation: Conversation, others: Sequence[str], own: Sequence[Message]
) -> set[str]:
    """Those of one's own messages that somebody hosted here has, or a device elsewhere."""
    hosted = select(Identity.aid).where(
        Identity.tenant_id == conversation.tenant_id,
        col(Identity.aid).in_(others),
        col(Identity.kind).in_(HOSTED),
    )
    if session.exec(hosted).first() is not None or not others:
        return {row.id for row in own}
    query = (
        select(InboxEntry.message)
        .join(
            InboxPeer,
            (col(InboxPeer.tenant_id) == InboxEntry.tenant_id)
            & (col(InboxPeer.aid) == InboxEntry.aid)
            & (col(InboxPeer.sender_aid) == InboxEntry.sender_aid),
        )
        .where(
            InboxEntry.tenant_id == conversation.tenant_id,
            col(InboxEntry.aid).in_(others),
            col(InboxEntry.message).in_([row.id for row in own]),
            col(InboxEntry.seq) <= InboxPeer.delivered_seq,
        )
    )
    return set(session.exec(query))


def _kept_from(
    session: Session, conversation: Conversation, rows: Sequence[Message]
) -> dict[str, tuple[str, ...]]:
    """The agents that the filter kept a group's message from, by the label it was sent with."""
    if conversation.group_id is None or not any(row.mention_mode == "mention-only" for row in rows):
        return {}
    tenant_id = conversation.tenant_id
    aids = _roles(session, tenant_id, conversation.group_id)
    names = identities.display_names(session, tenant_id, aids)
    agents = {aid: each.name for aid, each in names.items() if each.kind == IdentityKind.AGENT}
    return {
        row.id: tuple(
            name
            for aid, name in agents.items()
            if aid != row.sender_aid
            and not channel.passes(row.mention_mode, row.payload or {}, aid)
        )
        for row in rows
    }
