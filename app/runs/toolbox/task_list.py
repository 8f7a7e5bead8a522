"""`task_list`: the work that was assigned to this agent for its principal, and is not over."""

from app.kernel import db
from app.runs import ledger
from app.runs.outcome import Done
from app.runs.session import RunSession
from app.runs.tool import Prepared, Tool

SCHEMA = {"type": "object", "additionalProperties": False, "properties": {}}


async def run(session: RunSession, _prepared: Prepared) -> Done:
    """Only its own."""
    tasks = await db.read(ledger.own, session)
    return Done(result={"tasks": [ledger.told(each) for each in tasks]})


TOOL = Tool(
    name="task_list",
    description="List the tasks that were assigned to you and are not over, the oldest first.",
    schema=SCHEMA,
    run=run,
    parallel_safe=True,
)
