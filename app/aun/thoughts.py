"""Thoughts: what one party lets one other see, under a heading; display only, never a message.

A heading is (sender, peer or group, context). Old items and old headings make room for new ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, delete, select

from app.aun.events import ThoughtAppended
from app.aun.models import Thought, ThoughtHead
from app.kernel import clock, ids
from app.kernel.db import Work

HEADS, ITEMS = 100, 200  # of one sender for one peer, and of one heading
LONGEST = 64 << 10  # bytes of an item as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """Whose thoughts for whom, about what."""

    tenant_id: str
    sender_aid: str
    peer: str  # an AID or a group's id
    context_type: str
    context_id: str


@dataclass(frozen=True, slots=True)
class Appended:
    """How many items a heading holds now."""

    count: int
    updated_at: datetime


def append(
    work: Work,
    heading: Heading,
    thought_id: str,
    payload: dict[str, Any],
    *,
    is_encrypted: bool = False,
) -> Appended:
    """Add an item; one of the same id is there already and stays as it is."""
    head = _head(work.session, heading, lock=True) or _new(work, heading)
    if _has(work.session, head, thought_id):
        return Appended(min(head.count, ITEMS), head.updated_at)
    head.count += 1
    head.updated_at = clock.now()
    work.session.add(head)
    work.session.add(
        Thought(
            tenant_id=head.tenant_id,
            head_id=head.id,
            number=head.count,
            thought_id=thought_id,
            payload=payload,
            is_encrypted=is_encrypted,
            created_ms=int(head.updated_at.timestamp() * 1000),
        )
    )
    work.session.flush()
    _make_room(work.session, head)
    work.announce(
        ThoughtAppended(
            tenant_id=head.tenant_id,
            head_id=head.id,
            number=head.count,
            sender_aid=head.sender_aid,
            peer=head.peer,
        )
    )
    return Appended(min(head.count, ITEMS), head.updated_at)


def under(session: Session, heading: Heading) -> tuple[ThoughtHead, Sequence[Thought]] | None:
    """A heading with its items in order; None where nothing was ever thought."""
    head = _head(session, heading)
    if head is None:
        return None
    query = (
        select(Thought)
        .where(Thought.tenant_id == head.tenant_id, Thought.head_id == head.id)
        .order_by(col(Thought.number))
    )
    return head, session.exec(query).all()


def _head(session: Session, heading: Heading, *, lock: bool = False) -> ThoughtHead | None:
    query = select(ThoughtHead).where(
        ThoughtHead.tenant_id == heading.tenant_id,
        ThoughtHead.sender_aid == heading.sender_aid,
        ThoughtHead.peer == heading.peer,
        ThoughtHead.context_type == heading.context_type,
        ThoughtHead.context_id == heading.context_id,
    )
    return session.exec(query.with_for_update() if lock else query).first()


def _new(work: Work, heading: Heading) -> ThoughtHead:
    """A heading nobody used; whoever is faster makes this unit run again."""
    made = ThoughtHead(
        id=ids.ulid(),
        tenant_id=heading.tenant_id,
        sender_aid=heading.sender_aid,
        peer=heading.peer,
        context_type=heading.context_type,
        context_id=heading.context_id,
        updated_at=clock.now(),
    )
    work.session.add(made)
    work.session.flush()
    return made


def _has(session: Session, head: ThoughtHead, thought_id: str) -> bool:
    query = select(Thought.number).where(
        Thought.tenant_id == head.tenant_id,
        Thought.head_id == head.id,
        Thought.thought_id == thought_id,
    )
    return session.exec(query).first() is not None


def _make_room(session: Session, head: ThoughtHead) -> None:
    if head.count > ITEMS:
        session.exec(
            delete(Thought).where(
                col(Thought.tenant_id) == head.tenant_id,
                col(Thought.head_id) == head.id,
                col(Thought.number) <= head.count - ITEMS,
            )
        )
    if head.count > 1:  # only a new heading pushes an old one out
        return
    old = (
        select(ThoughtHead.id)
        .where(
            ThoughtHead.tenant_id == head.tenant_id,
            ThoughtHead.sender_aid == head.sender_aid,
            ThoughtHead.peer == head.peer,
        )
        .order_by(col(ThoughtHead.updated_at).desc(), col(ThoughtHead.id).desc())
        .offset(HEADS)
    )
    for gone in session.exec(old).all():
        for model, key in ((Thought, Thought.head_id), (ThoughtHead, ThoughtHead.id)):
            session.exec(
                delete(model).where(col(model.tenant_id) == head.tenant_id, col(key) == gone)
            )
