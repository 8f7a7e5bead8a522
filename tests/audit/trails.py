"""Tenants with a trail, for the tests of this folder."""

from pathlib import Path
from typing import Any

import pytest

from app.audit import trail, verify
from app.audit.trail import NewEntry
from app.audit.verify import TenantReport
from app.identity.models import Tenant
from app.kernel import clock, db, ids
from app.kernel.db import Work


def tenant(slug: str = "acme") -> str:
    """A new tenant without a trail; its id."""

    def make(work: Work) -> str:
        id_ = ids.ulid()
        work.session.add(Tenant(id=id_, slug=slug, name=slug, created_at=clock.now()))
        return id_

    return db.transact_now(make)


def entry(tenant_id: str, **more: Any) -> NewEntry:
    """An entry with something in it."""
    given: dict[str, Any] = {
        "call_id": ids.ulid(),
        "command": "expense.report.submit",
        "outcome": "done",
        "channel": "console",
        "user_id": "U1",
        "input_redacted": {"amount_minor": 1200, "note": "Zürich 出差", "nested": [1, None, True]},
        "changes": [{"field": "status", "before": None, "after": "submitted"}],
    }
    return NewEntry(tenant_id=tenant_id, **{**given, **more})


def fill(tenant_id: str, count: int) -> None:
    """Append so many entries."""

    def append(work: Work) -> None:
        for number in range(count):
            trail.append(work, entry(tenant_id, target_id=str(number), idempotent=number % 2 == 0))

    db.transact_now(append)


def checked(url: str, folder: Path, **more: Any) -> TenantReport:
    """What the verifier says of the only tenant."""
    (report,) = verify.verify(url, folder, **more).tenants
    return report


def unlocked(url: str, *statements: str) -> None:
    """Do to the database what only its operator can: the triggers are off meanwhile."""
    engine = db.engine_for(url)
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET session_replication_role = replica")
        else:
            for name in ("audit_entry_no_update", "audit_entry_no_delete"):
                connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}")
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def refuses(call: Any) -> str:
    """The message of the database that refused `call`."""
    with pytest.raises(Exception, match="never changed") as caught:
        call()
    return str(caught.value)
