"""`search_commands`: the commands that fit some words, out of a catalogue too large to list."""

from collections.abc import Mapping
from typing import Any

from app.commands.descriptors import Descriptor
from app.kernel import db
from app.runs import command_tool
from app.runs.outcome import Done
from app.runs.session import RunSession
from app.runs.tool import Prepared, Tool

USUAL = MOST = 10
SHOWN = (
    *("displayName", "riskLevel", "record", "operation", "idempotent", "reversible"),
    *("undoCommand", "inputSchema", "exampleInput"),
)
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["query"],
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 400},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST},
    },
}


async def run(session: RunSession, prepared: Prepared) -> Done:
    """Those of the principal's catalogue of this moment, the best first."""
    found = await db.read(command_tool.catalogue_of, session.principal)
    language, given = session.facts.locale, prepared.given
    entries = found.entries if found is not None else ()
    best = command_tool.best(given["query"], entries, language)[: given.get("limit", USUAL)]
    return Done(result={"commands": [_told(each, language) for each in best]})


def _told(each: Descriptor, language: str) -> Mapping[str, Any]:
    said = each.data(language)
    return {
        "code": each.code,
        "description": command_tool.described(each, language),
        **{name: said[name] for name in SHOWN},
    }


TOOL = Tool(
    name="search_commands",
    description=(
        "Find commands by what they do, in any words. Each comes with its code, its description "
        "and the schema of its arguments; run it with run_command."
    ),
    schema=SCHEMA,
    run=run,
    parallel_safe=True,
)
