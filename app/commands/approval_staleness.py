"""Whether what a person is asked about still stands as it was when they were asked (UI-81)."""

from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from app.commands import registry
from app.commands.approval_models import Approval
from app.commands.rows import table_of


@dataclass(frozen=True, slots=True)
class ChangedTarget:
    """A record that changed after the request: who did it, and when; all None: it is gone."""

    label: str
    by: str | None = None
    at: datetime | None = None


def changed_targets(session: Session, row: Approval) -> list[ChangedTarget]:
    """The target records that are no longer of the version the approval is bound to."""
    model = registry.record_types().get(row.target_type or "")
    if model is None:
        return []
    table, connection = table_of(model), session.connection()
    changed = []
    for id, version in row.target_versions.items():
        found = table.by_id(False).run(connection, tenant_id=row.tenant_id, id=id).first()
        now = table.made(table.read(connection, found)) if found else None
        if now is None:
            changed.append(ChangedTarget(row.target_label or id))
        elif now.version != version:
            changed.append(ChangedTarget(now.label, now.updated_by, now.updated_at))
    return changed
