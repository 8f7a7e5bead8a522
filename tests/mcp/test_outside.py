"""Commands whose effect is outside: the answer waits for what came of it, for a while."""

import asyncio
from typing import Any

import pytest

from app.commands import external
from app.commands.external import ExternalRequest, ExternalResult
from app.mcp import outside
from app.mcp.message import APPROVAL_META, KEY_META
from tests.commands.asking import Asking
from tests.commands.conftest import samples
from tests.commands.telling import Telling
from tests.mcp import connecting
from tests.mcp.connecting import Mcp
from tests.packs.expenses.desk import Desk
from tests.people import World

TAXI = "sample.taxi.order"
RIDE = {"to": "Hongqiao", "card": "6222 0212"}
PATIENCE_S = 20

__all__ = ["samples"]


@pytest.fixture
def telling(samples: World, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Telling:
    """Who performs what was ordered, when the test says so."""
    return Telling(desk, monkeypatch)


@pytest.fixture
async def ordered(telling: Telling, mcp: Mcp) -> dict[str, Any]:
    """A ride that alice assented to, ready to be called."""
    asking = Asking(telling.desk)
    token = connecting.token(telling.acme, telling.acme["alice"])
    meta = {KEY_META: "ride-1"}
    asked = await mcp.post(token, "tools/call", {"name": TAXI, "arguments": RIDE, "_meta": meta})
    approval_id = asked.json()["result"]["structuredContent"]["approvalId"]
    await asking.decide("alice", asking.row(approval_id))
    params = {"name": TAXI, "arguments": RIDE, "_meta": {**meta, APPROVAL_META: approval_id}}
    return {"token": token, "params": params}


def performing(monkeypatch: pytest.MonkeyPatch, result: ExternalResult) -> list[ExternalRequest]:
    asked: list[ExternalRequest] = []

    async def perform(request: ExternalRequest) -> ExternalResult:
        asked.append(request)
        return result

    monkeypatch.setitem(external.performers, TAXI, perform)
    return asked


async def call(mcp: Mcp, ordered: dict[str, Any]) -> dict[str, Any]:
    answer = await mcp.post(ordered["token"], "tools/call", ordered["params"])
    result: dict[str, Any] = answer.json()["result"]
    return result


@pytest.mark.requirement("SEC-62", "CMD-27")
@pytest.mark.parametrize(
    ("result", "is_error", "reason"),
    [
        (ExternalResult(outcome="done", data={"car": "B-7"}), False, None),
        (ExternalResult(outcome="failed", reason="no_car"), True, "outside_failed"),
        (ExternalResult(outcome="unknown", reason="timeout"), True, "outcome_unknown"),
    ],
)
async def test_the_answer_waits_for_what_came_of_it(
    mcp: Mcp,
    telling: Telling,
    ordered: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    result: ExternalResult,
    is_error: bool,
    reason: str | None,
) -> None:
    asked = performing(monkeypatch, result)
    waits, genuine = asyncio.Event(), outside._wait

    async def waiting(*given: Any) -> Any:
        waits.set()
        return await genuine(*given)

    monkeypatch.setattr(outside, "_wait", waiting)

    coming = asyncio.create_task(call(mcp, ordered))
    async with asyncio.timeout(PATIENCE_S):
        await waits.wait()
        assert not coming.done()
        await telling.tell()
        answer = await coming
    again = await call(mcp, ordered)

    told = answer["structuredContent"]
    assert (answer["isError"], told.get("reason")) == (is_error, reason)
    if is_error:
        assert told["advice"] == "report_to_user"
        assert again["structuredContent"]["reason"] == reason
    else:
        assert (told["outcome"], told["result"]["outside"]["car"]) == ("done", "B-7")
        assert again["structuredContent"]["outcome"] == "replayed"
    assert len(asked) == 1


@pytest.mark.requirement("SEC-62", "CMD-27")
async def test_what_takes_longer_is_dispatched_and_its_key_tells_later(
    mcp: Mcp, telling: Telling, ordered: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = performing(monkeypatch, ExternalResult(outcome="done"))
    monkeypatch.setattr(outside, "PATIENCE_S", 0.0)

    sent = await call(mcp, ordered)
    meanwhile = await call(mcp, ordered)
    await telling.tell()
    later = await call(mcp, ordered)

    assert (sent["isError"], sent["structuredContent"]["outcome"]) == (False, "dispatched")
    assert sent["structuredContent"]["callId"]
    assert meanwhile["structuredContent"]["reason"] == "in_flight"
    assert later["structuredContent"]["outcome"] == "replayed"
    assert later["structuredContent"]["callId"] == sent["structuredContent"]["callId"]
    assert len(asked) == 1
