"""`/v1/approvals`: what waits for a person, and how it ended. Reading only.

There is no way to decide here: a decision takes a person in a browser (SEC-2).
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field

from app.api.problem_docs import PROBLEMS
from app.api.strict import Strict
from app.api.wire import Wire
from app.commands import approval_reading, approvals
from app.commands.approval_models import Approval
from app.commands.approval_reading import Wanted
from app.identity import bearer
from app.identity.deps import Caller
from app.identity.doors import Door
from app.identity.principal import Scope
from app.kernel import db, ids
from app.kernel.errors import NotFound

router = APIRouter(prefix="/v1", tags=["approvals"], route_class=Strict)

State = Literal[
    "open", "approved", "consumed", "failed", "denied", "expired", "superseded", "cancelled"
]


class ApprovalSummary(Wire):
    """One approval, as it stands."""

    approval_id: str
    approval_url: str = Field(description="Where a person decides, in a browser.")
    state: State
    cmd_code: str
    version: int
    risk_level: str
    arguments: dict[str, Any] = Field(description="What will run; secrets are marks.")
    digest: str
    target_record_id: str | None
    target_label: str | None
    user_id: str
    agent_id: str | None
    call_id: str = Field(description="The call that asked.")
    run_id: str | None
    opened_at: datetime
    expires_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    reason: str | None = Field(description="What was said with a denial, word for word.")
    changed_by: str | None = Field(description="The person who changed the arguments.")
    superseded_by: str | None
    failed_stage: str | None
    consumed_by_call: str | None

    @classmethod
    def of(cls, row: Approval) -> "ApprovalSummary":
        """As the wire has it."""
        return cls.model_validate(
            {
                **{name: getattr(row, name) for name in _SAME},
                "approval_id": row.id,
                "approval_url": approvals.url_of(row.id),
                "cmd_code": row.command,
                "risk_level": row.risk,
                "target_record_id": row.target_id,
            }
        )


_SAME = (
    *("state", "version", "arguments", "digest", "target_label", "user_id", "agent_id", "call_id"),
    *("run_id", "opened_at", "expires_at", "decided_by", "decided_at", "reason", "changed_by"),
    *("superseded_by", "failed_stage", "consumed_by_call"),
)


class ApprovalShown(ApprovalSummary):
    """One approval with what its call would change and send."""

    preview: dict[str, Any]

    @classmethod
    def of(cls, row: Approval) -> "ApprovalShown":
        """As the wire has it."""
        plain = ApprovalSummary.of(row).model_dump()
        return cls(**plain, preview=dict(row.preview))


class ApprovalPage(Wire):
    """A page; `next` and `previous` are values of `cursor`."""

    approvals: list[ApprovalSummary]
    total: int
    next: str | None
    previous: str | None


@router.get("/approvals", responses=PROBLEMS)
async def index(
    caller: Caller,
    state: Literal["open", "decided", "requested", "all"] = "all",
    cursor: Annotated[str, Query(max_length=2_000)] = "",
) -> ApprovalPage:
    """The approvals the caller may see: an agent those of its own calls, a person more."""
    bearer.require(caller, Scope.COMMANDS_READ, Door.V1)
    page = await db.read(approval_reading.listed, caller, Wanted(which=state), cursor or None)
    return ApprovalPage(
        approvals=[ApprovalSummary.of(each.row) for each in page.rows],
        total=page.total,
        next=page.next,
        previous=page.previous,
    )


@router.get("/approvals/{approvalId}", responses=PROBLEMS)
async def one(
    caller: Caller, approval_id: Annotated[str, Path(alias="approvalId")]
) -> ApprovalShown:
    """One approval; another's is not found."""
    bearer.require(caller, Scope.COMMANDS_READ, Door.V1)
    if not ids.is_ulid(approval_id):
        raise NotFound
    shown = await db.read(approval_reading.one_for, caller, approval_id)
    return ApprovalShown.of(shown.row)
