"""What a person found out about a call nobody knew the outcome of: it happened, or it did not.

The call stays unknown, and is never repeated; the finding stands beside it, is on record, and is
told to the lane's next run (RUN-51, RUN-113).
"""

from typing import Any

from sqlmodel import Session, col, func, select

from app.access import scope
from app.commands import resolution
from app.commands.resolution import Finding
from app.identity import facts
from app.identity.principal import Principal
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.errors import Conflict, NotFound
from app.kernel.i18n import N_
from app.runs import rows, told
from app.runs.run_models import Run, ToolCall
from app.runs.states import CallState

ACTION = "run.call.resolve"
HAPPENED = "A person looked: your call of {tool} did take effect. Do not repeat it."
DID_NOT = "A person looked: your call of {tool} did not take effect."


class ResolvedAlready(Conflict):
    """Somebody said before what happened."""

    reason = "call_resolved"
    says = N_("Somebody has said already what happened.")


def resolve(work: Work, person: Principal, call_id: str, finding: Finding) -> ToolCall:
    """Put on record what a person found out.

    Raises:
        NotFound: it is no unknown call that is theirs, or theirs to look after.
        ResolvedAlready: somebody was faster.
    """
    call, run = unknown(work.session, person, call_id)
    settled = rows.RESOLVE.run(
        work.connection,
        tenant_id=call.tenant_id,
        id=call.id,
        finding=finding,
        by=person.user_id,
        now=clock.now(),
    )
    if settled.rowcount != 1:
        raise ResolvedAlready
    facts.record(
        work,
        ACTION,
        person,
        target=("tool_call", call.id),
        details={"run": run.id, "tool": call.tool, "finding": finding},
    )
    pipeline_call = f"{call.id}.{call.attempt}"
    if resolution.is_open_to(work.session, person, pipeline_call):
        resolution.resolve(work, person, pipeline_call, finding)
    found = work.session.get_one(ToolCall, (call.tenant_id, call.id), populate_existing=True)
    told.call(work, run, found)
    return found


def unknown(session: Session, person: Principal, call_id: str) -> tuple[ToolCall, Run]:
    """An unknown call, and its run, as far as a person may say what became of it.

    Raises:
        NotFound: it is none.
    """
    call = session.get(ToolCall, (person.tenant_id, call_id), populate_existing=True)
    run = session.get(Run, (person.tenant_id, call.run_id)) if call is not None else None
    if call is None or run is None or call.state != CallState.UNKNOWN or not person.is_person:
        raise NotFound
    is_own = run.user_id == person.user_id
    if not is_own and not scope.tenant_wide(session, person, resolution.MANAGE):
        raise NotFound
    return call, run


def news(session: Session, run: Run) -> list[dict[str, Any]]:
    """Notes for a run that begins: what people found out since the lane's last run began."""
    if run.lane_id is None:
        return []
    earlier = (Run.tenant_id == run.tenant_id, Run.lane_id == run.lane_id, Run.id != run.id)
    last = session.exec(select(func.max(Run.started_at)).where(*earlier)).first()
    if last is None:
        return []
    query = (
        select(ToolCall)
        .join(Run, (col(Run.tenant_id) == ToolCall.tenant_id) & (col(Run.id) == ToolCall.run_id))
        .where(*earlier, col(ToolCall.resolved_at) > last)
        .order_by(col(ToolCall.resolved_at))
    )
    return [_note(call) for call in session.exec(query)]


def _note(call: ToolCall) -> dict[str, Any]:
    words = HAPPENED if call.resolved_as == "happened" else DID_NOT
    return {"kind": "resolved", "text": words.format(tool=call.tool), "call_id": call.id}
