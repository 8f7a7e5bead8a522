"""Who may keep a call from starting; each can narrow, none can allow what another refuses.

The first to answer decides. Asking a person is not decided here: the pipeline alone asks (RUN-85).
"""

import json as loose_json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

import jsonschema_rs

from app.commands import schema_errors
from app.commands.definition import Risk
from app.kernel import db, i18n, json
from app.runs import records
from app.runs.errors import RunFailed
from app.runs.outcome import NotStarted, Refused, Result
from app.runs.session import RunSession
from app.runs.tool import Prepared

ECHO = 200  # characters of what the model sent, in what it gets back
REPEATS, GIVES_UP = 3, 6
BRIEF_FIRST = "Tell the user in one or two sentences what will change, then call again."
REPEATED = (
    "This very call had the same outcome three times in a row. Do something else, or say that you "
    "cannot go on."
)


async def arguments(run: RunSession, call: Prepared) -> Result | None:
    """They are one JSON object, as the tool's schema wants it; nothing is guessed (RUN-84)."""
    if call.arguments is None:
        return _unfit(call.fault, _echo(call))
    validator = _validator(json.dumps(dict(call.tool.schema)).decode())
    if validator.is_valid(dict(call.arguments)):
        return None
    with i18n.speaking(run.facts.locale):
        fields = [
            {"field": each.pointer, "problem": i18n.gettext(each.says) % each.facts, **each.facts}
            for each in schema_errors.of(validator, dict(call.arguments))
        ]
    return _unfit("The arguments do not fit the tool.", _echo(call), fields=fields)


async def release(run: RunSession, call: Prepared) -> Result | None:
    """The release takes the tool; a command is known by its code as well."""
    names = {call.call.tool}
    if call.descriptor is not None:
        names.add(call.descriptor.code)
    policy = run.content.tools
    if _any(names, policy.allow) and not _any(names, policy.deny):
        return None
    return Refused(
        reason="tool_not_allowed",
        advice="do_not_retry",
        detail="This agent's release does not allow that tool.",
    )


async def brief(run: RunSession, call: Prepared) -> Result | None:
    """The user knows what an L2 command is about to do: this scope told them since the input."""
    conversation_id = run.facts.conversation_id
    if call.descriptor is None or call.descriptor.definition.risk != Risk.L2:
        return None
    if conversation_id is None:
        return None
    if await db.read(records.brief, run.claim, run.scope, conversation_id):
        return None
    return Refused(reason="brief_first", advice="fix_arguments", detail=BRIEF_FIRST)


async def breaker(run: RunSession, call: Prepared) -> Result | None:
    """The same call with the same outcome, over and over, is stopped, and then the run (RUN-85).

    Raises:
        RunFailed: six times in a row.
    """
    count = run.repeats_of(call.call.tool, call.sha256)
    if count >= GIVES_UP - 1:
        raise RunFailed("repeating", "The same call was made again and again.")
    return NotStarted(REPEATED) if count >= REPEATS else None


POLICIES = (arguments, release, brief, breaker)


@lru_cache(maxsize=2_000)
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for(schema)


def _echo(call: Prepared) -> str:
    """What was sent, as the record may keep it: without what a command calls secret."""
    if call.arguments is not None:
        return json.dumps(dict(call.redacted)).decode()
    return "" if call.may_hold_secrets else call.call.arguments


def _unfit(detail: str, echo: str, **facts: Any) -> Refused:
    shown = echo if len(echo) <= ECHO else f"{echo[:ECHO]}…"
    return Refused(
        reason="invalid_arguments",
        advice="fix_arguments",
        detail=detail,
        facts={"received": shown, **facts},
    )


def _any(names: set[str], patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def read(arguments: str, schema: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str]:
    """The arguments a model wrote, or None and what is wrong with them."""
    if not arguments.strip() and not schema.get("properties"):
        return {}, ""
    try:
        found = json.loads(arguments.encode("utf-8", "surrogatepass"))
    except json.BadJSON as fault:
        return (
            None,
            f"The arguments are not JSON that can be taken. {fault.rule}{_where(arguments)}",
        )
    if not isinstance(found, dict):
        return None, "The arguments have to be one JSON object."
    return found, ""


def _where(arguments: str) -> str:
    try:
        loose_json.loads(arguments[: json.MAX_BYTES])
    except loose_json.JSONDecodeError as fault:
        return f" ({fault.msg} at line {fault.lineno}, column {fault.colno})"
    except (ValueError, RecursionError):
        pass
    return ""
