"""Which tools a turn has: the catalogue of this moment, and the framework's own (RUN-93, RUN-94).

There is no other list of commands than the principal's catalogue. Up to 40 of it are tools of their
own; above that a search, one tool that runs any, and the best few for what was just asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from app.commands.catalogue import Catalogue
from app.commands.descriptors import Descriptor
from app.kernel import db
from app.runs import command_tool, outside_tools, toolbox
from app.runs.authority import DEEPEST
from app.runs.models.protocol import Offered
from app.runs.session import RunSession
from app.runs.tool import Tool

ALL_UP_TO = 40  # commands that are tools of their own
BEST = 12  # of more: those that fit the current input best
SEARCH, RUN_ANY = "search_commands", "run_command"
OF_COMMANDS = frozenset({SEARCH, RUN_ANY})


async def tools_of(run: RunSession) -> dict[str, Tool]:
    """The tools of the turn that begins now, by name."""
    found = run.catalogue
    if found is None or not found.is_recent:
        found = run.catalogue = await db.read(command_tool.catalogue_of, run.principal)
    asked = run.asked_for if _are_many(found) else ""
    sources = (found, asked, run.content, run.facts, run.principal)
    ours = run.kit.of(partial(_ours, run, found, asked), *sources)
    outside = await outside_tools.tools_of(run.outside, run.facts.locale)
    # no outside tool takes a name of ours
    return {**{tool.name: tool for tool in outside}, **ours} if outside else ours


def _ours(run: RunSession, found: Catalogue | None, asked: str) -> dict[str, Tool]:
    tools = (*_commands(run, found, asked), *_framework(run, found))
    return {tool.name: tool for tool in tools}


def offered(tools: Mapping[str, Tool]) -> list[Offered]:
    """The tools as a model sees them."""
    return [
        Offered(
            name=tool.name,
            description=tool.description,
            schema=tool.schema,
            waits=tool.waits,
            descriptor=tool.descriptor,
        )
        for tool in tools.values()
    ]


def _commands(run: RunSession, found: Catalogue | None, asked: str) -> list[Tool]:
    entries: Sequence[Descriptor] = found.entries if found is not None else ()
    language = run.facts.locale
    if _are_many(found):
        entries = command_tool.best(asked, entries, language)[:BEST]
    return [command_tool.tool_for(each, language) for each in entries]


def _are_many(found: Catalogue | None) -> bool:
    return found is not None and len(found.entries) > ALL_UP_TO


def _framework(run: RunSession, found: Catalogue | None) -> list[Tool]:
    tools = []
    for tool in toolbox.discover().values():
        if tool.name in OF_COMMANDS and not _are_many(found):
            continue
        if not _makes_sense(run, found, tool.name):
            continue
        is_any = tool.name == RUN_ANY and found is not None
        tools.append(replace(tool, reaches=partial(_reached, found)) if is_any else tool)
    return tools


def _makes_sense(run: RunSession, found: Catalogue | None, name: str) -> bool:
    """Whether a tool could do anything here; each checks for itself when it is called (RUN-37)."""
    match name:
        case "read_record":
            return found is not None and bool(found.records)
        case "delegate":
            return found is not None and bool(run.content.contacts) and run.facts.depth < DEEPEST
        case "await_approval" | "task_list" | "task_update":
            return run.principal is not None
    return True


def _reached(found: Catalogue | None, arguments: Mapping[str, Any]) -> Descriptor | None:
    code = arguments.get("code")
    return found.find(code) if found is not None and isinstance(code, str) else None
