"""Calls whose effect is outside: what came of them, as far as it is known in time (CMD-27)."""

import asyncio
from typing import Any

from app.commands import looking_up
from app.commands.looking_up import Became
from app.commands.outcome import Done
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.errors import AppError
from app.kernel.i18n import N_
from app.mcp import news

PATIENCE_S = 30.0
LOOK_S = 1.0  # another process may have settled it
DISPATCHED = "dispatched"


class OutsideFailed(AppError):
    """It was sent, and the other side surely did nothing."""

    reason = "outside_failed"
    status = 502
    says = N_("The other side did not do it.")
    advice = "report_to_user"


class OutsideUnknown(AppError):
    """It was sent, and nobody knows whether it was done."""

    reason = "outcome_unknown"
    status = 502
    says = N_("It was sent, and no answer tells whether it was done. A person has to find out.")
    advice = "report_to_user"


async def settled(who: Principal, done: Done) -> dict[str, Any]:
    """The answer to a call that went out: how it ended, or that it is still on its way.

    Raises:
        OutsideFailed, OutsideUnknown: it ended so.
    """
    data = done.data()
    if done.outcome != DISPATCHED:
        return _judged(data)
    became = await _wait(who, done.call_id)
    if became.outcome == DISPATCHED:
        return data
    answer = became.answer or {}
    result = answer.get("result", data["result"])
    return _judged({**data, "outcome": became.outcome, "result": result})


async def _wait(who: Principal, call_id: str) -> Became:
    until_s = asyncio.get_running_loop().time() + PATIENCE_S
    with news.of_process().of(call_id) as came:
        while True:
            became = await db.read(looking_up.of, who, call_id)
            left_s = until_s - asyncio.get_running_loop().time()
            if became.outcome != DISPATCHED or left_s <= 0:
                return became
            try:
                async with asyncio.timeout(min(left_s, LOOK_S)):
                    await came.wait()
            except TimeoutError:
                continue
            came.clear()


def _judged(data: dict[str, Any]) -> dict[str, Any]:
    """`data`, if all went well; of a replay the first call's end counts."""
    outside = data["result"].get("outside") or {}
    outcome = outside.get("outcome", data["outcome"])
    if outcome == "failed":
        raise OutsideFailed(outcome=outcome)
    if outcome == "unknown":
        raise OutsideUnknown(outcome=outcome)
    return data
