"""Asking the user once before an L2 call, where a client can: it informs, and decides nothing else.

An approval is a person's word in the console; a form of a client is none (SEC-64).
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from sqlmodel import Session

from app.commands import catalogue, pipeline, refusals
from app.commands.call import Call
from app.commands.changes import RowChange
from app.commands.descriptors import Descriptor
from app.commands.errors import Rejected
from app.commands.outcome import Preview
from app.commands.refused import REPORT, Refused
from app.identity.principal import Principal
from app.kernel import db, i18n, json
from app.kernel.errors import AppError, TooMany
from app.kernel.i18n import N_
from app.mcp import clients, entered, tools
from app.mcp.clients import Context

STATE, REQUEST, FIELD = "brief", "brief", "proceed"
DECLINED, ASSERTED = "brief_declined", "agent_asserted"
PATIENCE_S = 300.0  # for an answer inside one request
QUESTIONS = 4  # of one agent that wait for its user inside requests
LONGEST, MOST = 300, 12  # characters of a value, lines of effects
HIDDEN, NOTHING = "••••", "-"

TITLE = N_("%(name)s (%(code)s) is about to run.")
WITH = N_("With: %(arguments)s")
CHANGES = N_("It changes:")
PROCEED = N_("Go on")
SAID_NO = N_("The user was told what would change, and said no. Nothing was changed.")


class TooManyQuestions(TooMany):
    """As many questions of this agent wait for its user as may."""

    reason = "too_many_questions"
    says = N_("Too many questions wait for the user. Call again when they are answered.")


class Declined(Exception):
    """The user said no; `refused` is on record."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(DECLINED)
        self.refused = refused


async def brief(
    ctx: Context, call: Call, params: CallToolRequestParams
) -> Call | InputRequiredResult:
    """The call as it may go on, or what to ask first.

    Raises:
        Declined: the user said no.
        TooManyQuestions: they were not asked.
        InvalidToken, DelegationPaused: the rights ended while they were.
    """
    if not clients.shows_forms(ctx) or call.approval_id is not None:
        return call
    told = await db.read(_to_brief, call.principal, call.code)
    if told is None:
        return call
    if clients.is_stateless(ctx):
        answer = (params.input_responses or {}).get(REQUEST)
        if params.request_state != STATE or not isinstance(answer, ElicitResult):
            form = await _form(call, told)
            return call if form is None else _question(form)
    else:
        form = await _form(call, told)
        if form is None:
            return call
        with _waiting(call.principal.delegation_id or ""):
            answer = await _answer(ctx, form)
        who = entered.of_context(ctx)
        await entered.look_again(who)
        call = replace(call, principal=who.principal)
    if answer.action != "accept" or (answer.content or {}).get(FIELD) is not True:
        raise Declined(await db.transaction(_put_on_record, call))
    return replace(call, origin=replace(call.origin, brief=ASSERTED))


def _to_brief(session: Session, who: Principal, code: str) -> Descriptor | None:
    """The command, if its user is to be told first and nobody has to assent."""
    found = catalogue.of(session, who).find(code)
    if found is None or not tools.is_told_first(found.definition):
        return None
    return found


async def _form(call: Call, told: Descriptor) -> ElicitRequestFormParams | None:
    """What to ask; None where the call could not run, which the call itself will say."""
    try:
        shown = await pipeline.preview(replace(call, preview=True))
    except AppError:
        return None
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {FIELD: {"type": "boolean", "title": i18n.gettext(PROCEED)}},
        "required": [FIELD],
    }
    return ElicitRequestFormParams(message=_message(call, told, shown), requested_schema=schema)


def _question(form: ElicitRequestFormParams) -> InputRequiredResult:
    return InputRequiredResult(
        input_requests={REQUEST: ElicitRequest(params=form)}, request_state=STATE
    )


_questions = Counter[str]()


@contextmanager
def _waiting(delegation_id: str) -> Iterator[None]:
    """Count one question as long as the block runs."""
    if _questions[delegation_id] >= QUESTIONS:
        raise TooManyQuestions(retry_after_s=5)
    _questions[delegation_id] += 1
    try:
        yield
    finally:
        _questions[delegation_id] -= 1
        if not _questions[delegation_id]:
            del _questions[delegation_id]


async def _answer(ctx: Context, form: ElicitRequestFormParams) -> ElicitResult:
    """What the user of a client with a session says; silence is no yes.

    Raises:
        MCPError: the session is gone, and with it whoever asked.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await ctx.session.elicit_form(
                form.message, form.requested_schema, related_request_id=ctx.request_id
            )
    except TimeoutError:
        return ElicitResult(action="cancel")
    except MCPError as refused:
        if refused.code == CONNECTION_CLOSED:
            raise
        return ElicitResult(action="cancel")


def _message(call: Call, told: Descriptor, shown: Preview) -> str:
    language = i18n.language()
    secrets = {pointer.partition("/")[0] for pointer in told.definition.secrets}
    given = {name: HIDDEN if name in secrets else value for name, value in call.input.items()}
    hidden = {str(value) for name, value in call.input.items() if name in secrets}
    name = told.definition.display_name.in_(language)
    lines = [
        i18n.gettext(TITLE) % {"name": name, "code": call.code},
        i18n.gettext(WITH) % {"arguments": _short(json.dumps(given).decode())},
    ]
    effects = [line for change in shown.changes for line in _lines(change, hidden)]
    effects += [f"→ {each['kind']}: {each['name']}" for each in shown.outside]
    if effects:
        lines += [i18n.gettext(CHANGES), *_first(effects)]
    return "\n".join(lines)


def _lines(change: RowChange, hidden: Collection[str]) -> list[str]:
    """What changes of a row; times and numbers that differ each time say nothing."""
    return [
        f"{change.label or change.record}, {name}: "
        f"{_value(before, hidden)} → {_value(after, hidden)}"
        for name, (before, after) in change.fields.items()
        if name not in change.automatic
    ]


def _value(value: Any, hidden: Collection[str]) -> str:
    if value is None:
        return NOTHING
    return HIDDEN if str(value) in hidden else _short(str(value))


def _first(lines: Sequence[str]) -> list[str]:
    kept = list(lines[:MOST])
    return kept if len(lines) <= MOST else [*kept, "…"]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _put_on_record(work: db.Work, call: Call) -> Refused:
    rejection = Rejected(DECLINED, says=SAID_NO, status=409, advice=REPORT)
    refused = Refused("approval_check", rejection, call_id=call.call_id, code=call.code)
    return refusals.record(work, refusals.Trying(call), refused, pipeline.rehearse)
