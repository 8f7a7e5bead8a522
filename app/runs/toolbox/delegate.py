"""`delegate`: hand a task to another agent, and wait for how it ends (RUN-94)."""

from functools import partial

from app.kernel.db import Work
from app.runs import delegating
from app.runs.delegating import Errand
from app.runs.outcome import InCommit, Suspended
from app.runs.session import RunSession
from app.runs.states import CallKind, WaitKind
from app.runs.tool import Prepared, Tool

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["agent", "task"],
    "properties": {
        "agent": {"type": "string", "minLength": 1, "maxLength": 200},
        "task": {"type": "string", "minLength": 1, "maxLength": 4_000},
        "step_cap": {"type": "integer", "minimum": 1, "maximum": 500},
    },
}


async def run(session: RunSession, prepared: Prepared) -> InCommit:
    """The child is queued with the record of this call, which stays open until it ended."""
    errand = Errand(**prepared.given)
    return InCommit(partial(_delegate, session=session, errand=errand, call_id=prepared.call.id))


def _delegate(work: Work, session: RunSession, errand: Errand, call_id: str) -> Suspended:
    child = delegating.delegate(work, session, errand, call_id)
    return Suspended(kind=WaitKind.RUN, call_id=call_id, ref=child.id, is_open=True)


TOOL = Tool(
    name="delegate",
    description=(
        "Hand a task to another agent (its code or AID) that works for the same person, with a "
        "context of its own: say in `task` all it has to know. You get its outcome and closing "
        "text. `step_cap` bounds how many of your steps it may use."
    ),
    schema=SCHEMA,
    run=run,
    kind=CallKind.DELEGATE,
    effect="local",
)
