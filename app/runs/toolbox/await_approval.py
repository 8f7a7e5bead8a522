"""`await_approval`: pause until a person decided a request of the same principal (RUN-94).

One that a sub-run or an earlier run of the lane opened; waiting for it executes nothing.
"""

from sqlmodel import Session

from app.commands.approval_models import Approval
from app.kernel import db
from app.kernel.errors import NotFound
from app.runs.outcome import Suspended
from app.runs.run_models import Run
from app.runs.session import RunSession
from app.runs.states import WaitKind
from app.runs.tool import Prepared, Tool

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["approval_id"],
    "properties": {"approval_id": {"type": "string", "minLength": 26, "maxLength": 26}},
}


async def run(session: RunSession, prepared: Prepared) -> Suspended:
    """Wait; one that is decided already is told of at once.

    Raises:
        NotFound: there is none, or it is none of this lane's.
    """
    row = await db.read(_found, session, prepared.given["approval_id"])
    return Suspended(
        kind=WaitKind.APPROVAL,
        call_id=prepared.call.id,
        ref=row.id,
        due_at=row.expires_at,
        result={"result": {"waiting": "approval", "approval_id": row.id}},
    )


def _found(session: Session, run: RunSession, approval_id: str) -> Approval:
    facts = run.facts
    row = session.get(Approval, (facts.tenant_id, approval_id))
    asker = session.get(Run, (facts.tenant_id, row.run_id)) if row and row.run_id else None
    if row is None or asker is None or facts.user_id is None or row.user_id != facts.user_id:
        raise NotFound
    is_of_lane = facts.lane_id is not None and asker.lane_id == facts.lane_id
    if not (is_of_lane or asker.root_run_id == facts.root_run_id):
        raise NotFound
    return row


TOOL = Tool(
    name="await_approval",
    description=(
        "Pause until a person decided a request that a sub-run or an earlier run of yours opened. "
        "A note tells you the outcome; nothing is executed by it. Call it alone."
    ),
    schema=SCHEMA,
    run=run,
    waits=True,
)
