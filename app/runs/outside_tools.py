"""Outside tools that only read, as tools of a run; every other one is a command (RUN-96)."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from app.kernel import db, i18n
from app.kernel.i18n import N_
from app.outside import admission
from app.outside.admission import Admitted
from app.outside.results import UNAUTHORIZED, Answer, Lost
from app.runs import command_tool
from app.runs.outcome import Done, Refused
from app.runs.outside import Outside
from app.runs.session import RunSession
from app.runs.states import CallKind
from app.runs.tool import Prepared, Tool

SAYS = N_("A tool of the outside server %(server)s that only reads. It says of itself: %(said)s")
NO_ANSWER = "The outside server {server} gave no answer ({rule}). Nothing was changed by that."
REFUSED = "The outside server {server} refused."
LINK = "The user has to link themselves to the outside server {server}, under Linked servers."
UNLINKED = frozenset({"link_needed", UNAUTHORIZED})
GONE = "This tool was turned off, or is not the one it was."


async def tools_of(outside: Outside, language: str) -> list[Tool]:
    """The tools of the turn that begins now: those that are still admitted, as they were."""
    if not outside.admitted:
        return []
    now = admission.pins(await db.read(admission.of, outside.principal))
    return [
        _tool(admitted, language)
        for admitted in outside.admitted.values()
        if now.get(admitted.code) == admitted.pin
    ]


def _tool(admitted: Admitted, language: str) -> Tool:
    async def run(session: RunSession, prepared: Prepared) -> Done | Refused:
        return await _run_tool(session, admitted, prepared)

    with i18n.speaking(language):
        said = i18n.gettext(SAYS) % {
            "server": admitted.server,
            "said": admitted.content["description"],
        }
    return Tool(
        name=command_tool.name_of(admitted.code),
        description=said,
        schema=admitted.content["input"],
        run=run,
        kind=CallKind.MCP,
        parallel_safe=True,
    )


async def _run_tool(run: RunSession, admitted: Admitted, prepared: Prepared) -> Done | Refused:
    """One call; what comes back is data, and what does not is a refusal (RUN-88).

    Raises:
        Cancelled, LeaseLost: the run was stopped meanwhile; the call is cut off.
    """
    now = admission.pins(await db.read(admission.of, run.principal))
    if now.get(admitted.code) != admitted.pin:
        return Refused(reason="tool_changed", advice="do_not_retry", detail=GONE)
    try:
        answer = await _unless_stopped(run, run.outside.call(admitted, prepared.given))
    except Lost as lost:
        return _lost(admitted, lost)
    if answer.reason in UNLINKED:
        return _unlinked(admitted)
    if answer.outcome == "refused":
        said = str(answer.data.get("said", ""))
        return Refused(
            reason=answer.reason,
            advice="report_to_user",
            detail=REFUSED.format(server=admitted.server),
            facts={"from_outside_server": said} if said else {},
        )
    return Done(result={"from_outside_server": admitted.server, **answer.data})


async def _unless_stopped(run: RunSession, calling: Coroutine[Any, Any, Answer]) -> Answer:
    call, stop = asyncio.create_task(calling), asyncio.create_task(run.stop.wait())
    try:
        await asyncio.wait({call, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not call.done():
            run.check()
        return await call
    finally:
        call.cancel()
        stop.cancel()


def _unlinked(admitted: Admitted) -> Refused:
    detail = LINK.format(server=admitted.server)
    return Refused(reason="link_needed", advice="ask_user", detail=detail)


def _lost(admitted: Admitted, lost: Lost) -> Refused:
    if lost.rule in UNLINKED:
        return _unlinked(admitted)
    if lost.rule == "tool_changed":
        return Refused(reason="tool_changed", advice="do_not_retry", detail=GONE)
    return Refused(
        reason="outside_no_answer",
        advice="retry_later",
        detail=NO_ANSWER.format(server=admitted.server, rule=lost.rule),
    )
