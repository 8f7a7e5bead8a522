"""`task_update`: report how an assigned task stands (RUN-94)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from app.kernel.db import Work
from app.runs import ledger
from app.runs.outcome import Done, InCommit
from app.runs.session import RunSession
from app.runs.states import TaskState
from app.runs.tool import Prepared, Tool

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["task_id", "state", "report"],
    "properties": {
        "task_id": {"type": "string", "minLength": 26, "maxLength": 26},
        "state": {"type": "string", "enum": ["working", "done", "failed"]},
        "report": {"type": "string", "minLength": 1, "maxLength": 4_000},
    },
}


async def run(session: RunSession, prepared: Prepared) -> InCommit:
    """The ledger changes with the record of this call."""
    return InCommit(partial(_update, session=session, given=prepared.given))


def _update(work: Work, session: RunSession, given: Mapping[str, Any]) -> Done:
    state = TaskState(given["state"])
    task = ledger.update(work, session, given["task_id"], state, given["report"])
    return Done(result=ledger.told(task))


TOOL = Tool(
    name="task_update",
    description=(
        "Report how one of your assigned tasks stands: working, done or failed, and in `report` "
        "what came of it. A task is open until you report it."
    ),
    schema=SCHEMA,
    run=run,
    effect="local",
)
