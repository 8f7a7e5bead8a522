"""News of approvals, after the commit that makes them true; a stream draws cards by them.

The head of the event log is the last that a call locks, after its records and the head of the
trail: whoever took it earlier would wait for others who wait for it.
"""

from dataclasses import dataclass
from typing import Any

from sqlmodel import select

from app.commands import registry
from app.commands.approval_models import Approval
from app.kernel import event_log
from app.kernel.db import Work
from app.kernel.events import Broadcast

CHANGED, ENDING = "approval.changed", "approval.ending"  # the kinds in the event log


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalChanged(Broadcast):
    """An approval was opened, decided, used or closed; `state` is how it stands now.

    Attributes:
        rev: of the row; what is drawn from an older one never replaces it.
        user_id: who asked, whose own it may be to decide.
        approver_permission: who else may decide holds it; None: nobody else.
    """

    approval_id: str
    rev: int
    state: str
    user_id: str
    approver_permission: str | None
    command: str
    run_id: str | None = None


def tell(work: Work, row: Approval, *, state: str | None = None, rev: int | None = None) -> None:
    """Announce how an approval stands; `state` and `rev` where the row in hand is older."""
    work.announce(
        ApprovalChanged(
            tenant_id=row.tenant_id,
            approval_id=row.id,
            rev=rev or row.rev,
            state=str(state or row.state),
            user_id=row.user_id,
            approver_permission=row.approver_permission,
            command=row.command,
            run_id=row.run_id,
        )
    )
    _log(work, row, CHANGED, {"rev": rev or row.rev, "state": str(state or row.state)})


def tell_ending(work: Work, row: Approval) -> None:
    """Announce that an approval will soon be over, as it stands."""
    _log(work, row, ENDING, {"rev": row.rev, "state": row.state})


def _log(work: Work, row: Approval, kind: str, how: dict[str, Any]) -> None:
    """For whoever asked, and for whoever may decide and reaches what it is about."""
    data = {"command": row.command, **how}
    for user_id in row.requesters.split() or [row.user_id]:
        event_log.append(work, row.tenant_id, kind, row.id, data, user_id=user_id)
    if row.approver_permission is not None:
        org_id, owner_id = _whose(work, row)
        event_log.append(
            work,
            row.tenant_id,
            kind,
            row.id,
            data,
            permission=row.approver_permission,
            org_id=org_id,
            owner_id=owner_id,
        )


def _whose(work: Work, row: Approval) -> tuple[str, str]:
    """Organisation and owner of the record, else of the request, as who decides reaches them."""
    model: Any = registry.record_types().get(row.target_type or "")
    if model is not None and hasattr(model, "org_id") and hasattr(model, "owner_id"):
        query = select(model.org_id, model.owner_id).where(
            model.tenant_id == row.tenant_id, model.id == row.target_id
        )
        if found := work.session.exec(query).first():
            return found[0], found[1]
    return row.org_id, row.user_id
