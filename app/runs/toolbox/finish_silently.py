"""`finish_silently`: end the round and say nothing; the reason stays a thought (RUN-94)."""

from app.runs.outcome import Done
from app.runs.session import RunSession
from app.runs.tool import Prepared, Tool

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"reason": {"type": "string", "maxLength": 1_000}},
}


async def run(_session: RunSession, _prepared: Prepared) -> Done:
    """Done; the loop ends the round."""
    return Done(result={"finished": True})


TOOL = Tool(
    name="finish_silently",
    description=(
        "End your work on this without saying anything more. Silence is a way to end well: nobody "
        "waits for an answer. The reason is kept as your thought."
    ),
    schema=SCHEMA,
    run=run,
    waits=True,
)
