"""What of groups does not stay: old messages nobody here takes part in, invitations that ran out.

Messages of a group with a hosted member are the tenant's own and stay as long as it keeps them.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlmodel import Session, col, delete, select

from app.aun.group_models import Group, Member
from app.aun.groups import invites
from app.aun.models import Identity, Message
from app.aun.queries import HOSTED
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.due import Due

KEPT = timedelta(days=30)
AT_ONCE = 500  # messages forgotten in one unit

_DUE = Due("group_retention")


def sweep() -> int:
    """Forget what has had its time, in every tenant; returns how many messages went.

    It waits for the database: for threads, not for a unit or the event loop.
    """
    invites.sweep()
    before = clock.now() - KEPT
    gone = 0
    for key in _DUE.ready(db.read_now(_outside_only, before)):
        with _DUE.trying(key):
            while forgotten := db.transact_now(_forget, *key, before):
                gone += forgotten
    return gone


def _outside_only(session: Session, before: datetime) -> Sequence[tuple[str, str]]:
    """The groups without a hosted member that have messages from before then."""
    hosted = (
        select(Member.aid)
        .join(
            Identity,
            (col(Identity.tenant_id) == Member.tenant_id) & (col(Identity.aid) == Member.aid),
        )
        .where(
            Member.tenant_id == Group.tenant_id,
            Member.group_id == Group.id,
            col(Identity.kind).in_(HOSTED),
        )
    )
    old = select(Message.id).where(
        Message.tenant_id == Group.tenant_id,
        Message.group_id == Group.id,
        Message.sent_at < before,
    )
    query = select(Group.tenant_id, Group.id).where(~hosted.exists(), old.exists())
    return session.exec(query.order_by(col(Group.tenant_id), col(Group.id))).all()


def _forget(work: Work, tenant_id: str, group_id: str, before: datetime) -> int:
    """The oldest first, so that what is left has no hole before it."""
    query = (
        select(Message.id, Message.sent_at)
        .where(Message.tenant_id == tenant_id, Message.group_id == group_id)
        .order_by(col(Message.seq))
        .limit(AT_ONCE)
    )
    going = []
    for message_id, sent_at in work.session.exec(query):
        if sent_at >= before:
            break
        going.append(message_id)
    if going:
        work.session.exec(
            delete(Message).where(col(Message.tenant_id) == tenant_id, col(Message.id).in_(going))
        )
    return len(going)
