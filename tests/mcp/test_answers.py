"""What a call comes to: one shape of refusals, one answer for each key, no text of faults."""

from typing import Any

import httpx2
import pytest
from mcp.types import CallToolResult

from app.commands import pipeline, publishing
from app.commands.refused import known_reasons
from app.commands.stages import handler
from app.identity.oauth import operator
from app.kernel import db
from app.kernel.errors import Busy
from app.mcp import answers, listing
from app.mcp.message import KEY_META
from tests.mcp import connecting
from tests.mcp.connecting import NEW, OLD, Mcp
from tests.packs.expenses.desk import Desk

CREATE, LIST, SUBMIT = "expense.report.create", "expense.report.list", "expense.report.submit"
TRIP = {"title": "October, Shanghai", "period": "2026-10"}
UNKNOWN = "01JDXP5Y8GZ0000000000000AB"
SECRET = "sqlite3.OperationalError near /srv/assent"
BOTH = pytest.mark.parametrize("revision", [NEW, OLD])


@pytest.fixture
def token(mcp: Mcp) -> str:
    """An agent that may do everything for alice."""
    return connecting.token(mcp.world.acme, mcp.world.acme["alice"])


def told(answer: httpx2.Response) -> dict[str, Any]:
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.requirement("SEC-62", "SEC-66")
async def test_what_is_not_there_looks_alike_whatever_it_is(mcp: Mcp, token: str) -> None:
    acme = mcp.world.acme
    db.transact_now(publishing.retire, acme.id, SUBMIT, mcp.world.acme_admin)

    found = []
    for name in ("nobodys.own.read", SUBMIT, "x" * 5_000, "../../etc/passwd"):
        answer = await mcp.post(token, "tools/call", {"name": name, "arguments": {}})
        error = told(answer)["error"]
        data = error.pop("data")
        assert data.pop("callId")
        assert data.pop("cmdCode") == name
        found.append((answer.status_code, error, data))

    assert all(each == found[0] for each in found)
    status, error, data = found[0]
    assert (status, error) == (400, {"code": -32602, "message": "Unknown tool"})
    assert (data["stage"], data["reason"]) == ("load", "unknown_command")


@pytest.mark.requirement("SEC-62", "SEC-2")
async def test_what_only_people_do_is_refused_and_in_no_list(mcp: Mcp) -> None:
    acme = mcp.world.acme
    token = connecting.token(acme, acme["ada"])
    code = "workspace.key.rotate"

    listed = told(await mcp.post(token, "tools/list"))["result"]["tools"]
    answer = told(await mcp.post(token, "tools/call", {"name": code, "arguments": {}}))["result"]

    assert code not in {each["name"] for each in listed}
    problem = answer["structuredContent"]
    assert (answer["isError"], problem["stage"], problem["reason"], problem["advice"]) == (
        True,
        "authorize",
        "human_session_required",
        "ask_user",
    )


@pytest.mark.requirement("SEC-62")
async def test_a_refusal_reads_as_at_the_command_api(mcp: Mcp, desk: Desk, token: str) -> None:
    report = await desk.submitted("alice", 2_000)
    api = db.transact_now(operator.mint, "acme/alice", "expenses", "api")
    over_http = mcp.world.anonymous()
    over_http.headers |= {"Authorization": f"Bearer {api}", "Accept": "application/json"}
    target = {"targetRecordId": report, "operationType": "UPDATE"}
    for code, given in (
        (CREATE, {**TRIP, "period": "2026-13", "more": 1}),
        (SUBMIT, target),
        (SUBMIT, {**target, "targetRecordId": UNKNOWN}),
        ("expense.report.approve", target),
    ):
        here = told(await mcp.post(token, "tools/call", {"name": code, "arguments": given}))
        result = here["result"]
        problem = result["structuredContent"]
        there = await over_http.post(
            f"/v1/commands/{code}/calls", json={"input": given}, headers={"Idempotency-Key": "k"}
        )

        expected = there.json()
        assert problem.pop("callId") != expected.pop("callId")
        assert problem == expected, code
        assert result["isError"] is True
        [block] = result["content"]
        assert block["text"].startswith(problem["detail"])
        assert block["text"].endswith(answers.ADVICE[problem["advice"]])


@pytest.mark.requirement("SEC-62")
def test_every_advice_has_words() -> None:
    assert {advice for _, advice, _ in known_reasons().values()} <= answers.ADVICE.keys()


@pytest.mark.requirement("SEC-61", "CMD-9")
@BOTH
async def test_a_key_makes_a_repeat_one_call_and_without_one_nothing_does(
    mcp: Mcp, token: str, revision: str
) -> None:
    async def create(key: str | None = None, **more: Any) -> CallToolResult:
        meta: Any = {KEY_META: key} if key else None
        return await client.call_tool(CREATE, {**TRIP, **more}, meta=meta)

    async with mcp.client(token, revision) as client:
        first, second = await create("once"), await create("once")
        other = await create("once", title="Another one")
        third, fourth = await create(), await create()

    ids = [each.structured_content["record"]["id"] for each in (first, second, third, fourth)]
    assert ids[0] == ids[1]
    assert second.structured_content["outcome"] == "replayed"
    assert len(set(ids)) == 3
    assert (other.is_error, other.structured_content["reason"]) == (True, "key_reused")


@pytest.mark.requirement("SEC-61")
@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "é", 7, None, ["k"]])
async def test_what_is_no_key_is_refused_by_name(mcp: Mcp, token: str, key: Any) -> None:
    given = {"name": CREATE, "arguments": TRIP, "_meta": {KEY_META: key}}
    answer = told(await mcp.post(token, "tools/call", given))

    if key is None:
        assert answer["result"]["isError"] is False, "a null says nothing"
        return
    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"]["pointer"] == "/_meta/assent~1idempotencyKey"


@pytest.mark.requirement("SEC-62", "SEC-66")
@BOTH
async def test_a_fault_tells_an_id_and_no_word_of_its_text(
    mcp: Mcp, token: str, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(SECRET)

    async with mcp.client(token, revision) as client:
        for owner, name, ask in (
            (listing, "page", lambda: client.session.list_tools()),
            (pipeline, "execute", lambda: client.session.call_tool(CREATE, TRIP)),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, broken)
                with pytest.raises(Exception) as fault:  # noqa: PT011 - which one is compared
                    await ask()
            error = fault.value.error  # type: ignore[attr-defined]
            assert (error.code, error.message) == (-32603, "Internal error")
            assert len(error.data["callId"]) == 26
            assert SECRET not in repr(error)


@pytest.mark.requirement("SEC-62")
async def test_a_stage_that_breaks_is_a_fault_of_ours(
    mcp: Mcp, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_ctx: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(handler, "run", broken)
    answer = await mcp.post(token, "tools/call", {"name": CREATE, "arguments": TRIP})

    error = told(answer)["error"]
    assert (error["code"], error["message"], list(error["data"])) == (
        -32603,
        "Internal error",
        ["callId"],
    )
    assert SECRET not in answer.text


@pytest.mark.requirement("SEC-62")
async def test_a_busy_database_is_a_refusal_to_try_again(
    mcp: Mcp, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(_call: Any) -> Any:
        raise Busy

    monkeypatch.setattr(pipeline, "execute", busy)
    answer = told(await mcp.post(token, "tools/call", {"name": CREATE, "arguments": TRIP}))

    problem = answer["result"]["structuredContent"]
    assert (problem["reason"], problem["advice"]) == ("busy", "retry_later")


@pytest.mark.requirement("SEC-66")
async def test_parameters_that_do_not_fit_tell_nothing_of_the_models(mcp: Mcp, token: str) -> None:
    for params in ({"name": 7}, {}, {"name": CREATE, "arguments": [1]}, {"name": None}):
        answer = await mcp.post(token, "tools/call", params)
        assert answer.status_code == 400
        assert "pydantic" not in answer.text
        assert "validation error" not in answer.text.lower()
