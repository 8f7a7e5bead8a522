"""`tools/call`: one call through the pipeline, with the identity of the request it came with.

The SDK knows no tool and validates no argument; the stages `load` and `schema_validate` do.
"""

from dataclasses import replace

from mcp.types import CallToolRequestParams, CallToolResult, InputRequiredResult

from app.commands import pipeline
from app.commands.call import Call
from app.commands.refused import Refused
from app.kernel import db, i18n, ids
from app.kernel.errors import AppError
from app.mcp import answers, approving, briefing, clients, entered, outside
from app.mcp.approving import Asked
from app.mcp.clients import Context
from app.mcp.entered import Entered
from app.mcp.message import KEY_META


async def call_tool(
    ctx: Context, params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    """Run a command, or say why not and what to do."""
    who = entered.of_context(ctx)
    with i18n.speaking(who.language):
        try:
            asked = await _asked(ctx, who, params)
            return await _run(ctx, who, asked, params)
        except Refused as refused:
            if refused.reason == approving.REQUIRED:
                return await approving.ask(ctx, who, params, refused)
            approving.questions.forget(ctx, params)
            return answers.refused(refused, who.call_id)
        except briefing.Declined as declined:
            return answers.refused(declined.refused, who.call_id)
        except AppError as refused:
            return answers.refused(refused, who.call_id, cmd_code=params.name)


async def _run(
    ctx: Context, who: Entered, asked: Asked, params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    if who.tried is None:
        briefed = await briefing.brief(ctx, asked.call, params)
        if isinstance(briefed, InputRequiredResult):
            return briefed
        done = await pipeline.execute(briefed)
    elif isinstance(who.tried, Exception):
        raise who.tried
    else:
        done = who.tried
    approving.questions.forget(ctx, params)
    return answers.done(await outside.settled(who.principal, done), asked.changed)


async def _asked(ctx: Context, who: Entered, params: CallToolRequestParams) -> Asked:
    """The call as it is to be made, and whether a person changed it."""
    key, approval_id = clients.meta_of(ctx, KEY_META), await approving.named(ctx, who, params)
    call = Call(
        code=params.name,
        input=params.arguments or {},
        principal=who.principal,
        call_id=who.call_id,
        idempotency_key=key or f"mcp:{ids.random_token()}",
        approval_id=approval_id,
    )
    if call.approval_id is None:
        return Asked(call, None)
    found = await db.read(approving.asked, who.principal, call.approval_id, call.input)
    if found is None or found.call.code != call.code:
        return Asked(call, None)
    # under the key it had when it was asked about, so that a repeat is answered again
    call = replace(call, idempotency_key=key or found.call.idempotency_key or call.idempotency_key)
    if found.changed is None:  # or not by who gives these arguments: then they are refused
        return Asked(replace(call, approval_id=found.call.approval_id), None)
    changed = replace(call, approval_id=found.call.approval_id, input=found.call.input)
    return Asked(changed, found.changed)
