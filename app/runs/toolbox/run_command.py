"""`run_command`: any command of the catalogue by its code; the same call as its own tool makes."""

from app.commands.errors import Rejected
from app.commands.refused import Refused as CommandRefused
from app.runs import command_tool, faults
from app.runs.outcome import Result, Suspended
from app.runs.session import RunSession
from app.runs.states import CallKind
from app.runs.tool import Prepared, Tool

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["code", "arguments"],
    "properties": {
        "code": {"type": "string", "minLength": 1, "maxLength": 128},
        "arguments": {"type": "object"},
    },
}


async def run(session: RunSession, prepared: Prepared) -> Result | Suspended:
    """Make the call; what is not in the catalogue looks like what does not exist."""
    given = prepared.given
    if prepared.descriptor is None and not prepared.has_waited:
        unknown = CommandRefused(
            "load",
            Rejected("unknown_command"),
            call_id=prepared.command_call_id,
            code=given["code"],
        )
        return faults.refusal_of(session, unknown)
    return await command_tool.run_command(session, prepared, given["code"], given["arguments"])


TOOL = Tool(
    name="run_command",
    description="Run a command by its code, with the arguments that its schema asks for.",
    schema=SCHEMA,
    run=run,
    kind=CallKind.COMMAND,
    effect="local",
)
