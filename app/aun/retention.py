"""What goes with time: content past its hour, old messages, and the numbers nobody can ask for."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session, select

from app.aun import rows, volatile
from app.identity.models import Tenant
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.prepared import Prepared

OUTSIDE_DAYS = 30  # messages between two parties elsewhere
SETTING = "retention_messages_days"  # of a tenant, for everything a hosted party takes part in
AT_ONCE = 1_000

_DUE = Due("message_retention")


def expire() -> None:
    """Delete the content of messages whose time is over; waits for the database."""
    while db.transact_now(_expire):
        pass


def trim() -> int:
    """Delete old messages, and raise the floors of inboxes; returns how many went."""
    gone = 0
    for tenant_id, chosen in db.read_now(_tenants):
        if not _DUE.rests((tenant_id,)):
            with _DUE.trying((tenant_id,)):
                gone += _trim_tenant(tenant_id, _days(chosen))
    return gone


def _expire(work: Work) -> bool:
    now = clock.now()
    volatile.expire(work.connection)
    return rows.EXPIRE.run(work.connection, now=now, limit=AT_ONCE).rowcount == AT_ONCE


def _tenants(session: Session) -> Sequence[tuple[str, Mapping[str, Any]]]:
    return session.exec(select(Tenant.id, Tenant.settings).order_by(Tenant.id)).all()


def _days(settings: Mapping[str, Any]) -> int | None:
    said = settings.get(SETTING)
    return said if isinstance(said, int) and said > 0 else None


def _trim_tenant(tenant_id: str, hosted_days: int | None) -> int:
    now = clock.now()
    gone = 0
    due = [(rows.OLD_OUTSIDE, now - timedelta(days=OUTSIDE_DAYS))]
    if hosted_days is not None:
        due.append((rows.OLD_HOSTED, now - timedelta(days=hosted_days)))
    for select_old, before in due:
        while went := db.transact_now(_trim, tenant_id, select_old, before):
            gone += went
    return gone


def _trim(work: Work, tenant_id: str, select_old: Prepared, before: datetime) -> int:
    """A bounded number of messages at once, so that nobody's writers wait for all of them."""
    found = select_old.run(work.connection, tenant_id=tenant_id, before=before, limit=AT_ONCE)
    for message in found:
        key = {"tenant_id": tenant_id, "id": message.id}
        for entry in rows.ENTRIES.run_with(work.connection, key):
            rows.RAISE_FLOOR.run(work.connection, tenant_id=tenant_id, **entry._asdict())
        rows.FORGET_ENTRIES.run_with(work.connection, key)
        rows.FORGET_LAST.run(
            work.connection,
            tenant_id=tenant_id,
            conversation_id=message.conversation_id,
            message=message.id,
        )
        rows.FORGET.run_with(work.connection, key)
    return len(found.all())
