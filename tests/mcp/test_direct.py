"""Requests of a shape the SDK has taken before: the same answers, and the same refusals."""

import asyncio
from typing import Any

import httpx2
import pytest
from sqlmodel import Session, func, select

from app.audit.models import AuditEntry
from app.commands import catalogue, pipeline
from app.identity import features, users
from app.identity.models import EntitlementStatus
from app.identity.principal import Scope
from app.kernel import db, rates
from app.kernel.db import Work
from app.kernel.errors import Busy
from app.kernel.rates import DEFAULTS, Rates
from app.mcp import listing, shapes
from app.mcp.message import KEY_META, Posted
from tests.clock import Clock
from tests.mcp import connecting
from tests.mcp.connecting import NEW, Mcp
from tests.mcp.test_listing import copied

CREATE, SUBMIT, SEND = "expense.report.create", "expense.report.submit", "expense.payment.send"
TRIP = {"title": "October, Zürich \u2028 北京", "period": "2026-10"}
SECRET = "a secret path"
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


@pytest.fixture
def token(mcp: Mcp) -> str:
    """An agent that may do everything for alice."""
    acme = mcp.world.acme
    return connecting.token(acme, acme["alice"])


async def twice(
    mcp: Mcp, token: str, method: str, params: dict[str, Any], **more: Any
) -> tuple[httpx2.Response, httpx2.Response]:
    """What the SDK answers, then what the door does."""
    long_way = await mcp.post(token, method, params, **more)
    assert shapes.frames._known or long_way.is_error or "error" in long_way.json()
    return long_way, await mcp.post(token, method, params, **more)


def settled(value: Any) -> Any:
    """An answer without what each call has of its own."""
    own = {"callId", "timings", "auditSeq", "text", "reportId", "number", "id"}
    own |= {"targetRecordId"}
    if isinstance(value, dict):
        return {name: settled(part) for name, part in value.items() if name not in own}
    return [settled(part) for part in value] if isinstance(value, list) else value


def counted(session: Session) -> int:
    """Entries of the trail."""
    return session.exec(select(func.count()).select_from(AuditEntry)).one()


@pytest.mark.requirement("SEC-60")
async def test_pages_of_a_list_are_those_of_the_sdk(mcp: Mcp, token: str) -> None:
    db.transact_now(copied, mcp.world.acme, 250)
    catalogue.forget()

    first, again = await twice(mcp, token, "tools/list", {})
    cursor = {"cursor": first.json()["result"]["nextCursor"]}
    second = await mcp.post(token, "tools/list", cursor)
    shapes.frames.forget()
    of_the_sdk = await mcp.post(token, "tools/list", cursor)

    assert first.content == again.content
    assert second.json() == of_the_sdk.json()
    assert "nextCursor" not in second.json()["result"]
    own = {"content-length", "x-request-id"}
    assert {each: first.headers[each] for each in first.headers if each not in own} == {
        each: again.headers[each] for each in again.headers if each not in own
    }
    for forged in ("x", cursor["cursor"] + "x"):
        refused = await mcp.post(token, "tools/list", {"cursor": forged})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32602)


@pytest.mark.requirement("SEC-62")
async def test_a_call_is_answered_as_by_the_sdk(mcp: Mcp, token: str) -> None:
    params = {"name": CREATE, "arguments": TRIP}

    first, again = await twice(mcp, token, "tools/call", params)

    assert settled(first.json()) == settled(again.json())
    [result] = [each.json()["result"] for each in (again,)]
    assert result["structuredContent"]["outcome"] == "done"
    assert result["structuredContent"].keys() == first.json()["result"]["structuredContent"].keys()
    assert result["structuredContent"]["callId"] in result["content"][0]["text"]
    found = {"name": "expense.report.get", "arguments": {"targetRecordId": _report(again)}}
    read, read_again = await twice(mcp, token, "tools/call", found)
    assert settled(read.json()) == settled(read_again.json())
    told = read_again.json()["result"]["structuredContent"]
    assert told == {**read.json()["result"]["structuredContent"], **_own(told)}


@pytest.mark.requirement("SEC-62")
async def test_a_repeat_with_a_key_is_answered_once_more(mcp: Mcp, token: str) -> None:
    params = {"name": CREATE, "arguments": TRIP, "_meta": {KEY_META: "trip-1"}}

    first, again = await twice(mcp, token, "tools/call", params)
    other = {**params, "arguments": {**TRIP, "title": "Another"}}
    reused = (await mcp.post(token, "tools/call", other)).json()["result"]
    bad = await mcp.post(token, "tools/call", {**params, "_meta": {KEY_META: "a b"}})

    assert again.json()["result"]["structuredContent"]["outcome"] == "replayed"
    assert _report(first) == _report(again)
    assert (reused["isError"], reused["structuredContent"]["reason"]) == (True, "key_reused")
    assert bad.json()["error"]["code"] == -32602


@pytest.mark.requirement("SEC-62", "CMD-17")
async def test_a_refusal_is_told_as_by_the_sdk_and_stands_once_in_the_trail(
    mcp: Mcp, token: str
) -> None:
    asked: tuple[dict[str, Any], ...] = (
        {"name": CREATE, "arguments": {"title": "No period"}},
        {"name": SUBMIT, "arguments": {"targetRecordId": "0" * 26, "operationType": "UPDATE"}},
        {"name": "nothing.of.the_kind", "arguments": {}},
        {"name": SEND, "arguments": {"targetRecordId": "0" * 26, "operationType": "UPDATE"}},
    )
    for params in asked:
        shapes.frames.forget()
        of_the_sdk = await mcp.post(token, "tools/call", params)
        await mcp.post(token, "tools/call", {"name": CREATE, "arguments": TRIP})
        before = db.read_now(counted)
        again = await mcp.post(token, "tools/call", params)
        assert settled(of_the_sdk.json()) == settled(again.json()), params
        assert of_the_sdk.status_code == again.status_code
        assert db.read_now(counted) == before + 1, params


@pytest.mark.requirement("SEC-25", "SEC-33", "SEC-66")
async def test_rights_that_ended_open_no_way_past_the_sdk(mcp: Mcp, token: str) -> None:
    call = {"name": CREATE, "arguments": TRIP}
    await twice(mcp, token, "tools/call", call)
    await twice(mcp, token, "tools/list", {})

    db.transact_now(_disable, mcp)
    before = db.read_now(counted)
    answers = [await mcp.post(token, "tools/call", call), await mcp.post(token, "tools/list")]

    for each in answers:
        assert each.status_code == 401
        assert 'error="invalid_token"' in each.headers["www-authenticate"]
    assert db.read_now(counted) == before


@pytest.mark.requirement("SEC-51", "SEC-25")
async def test_a_token_that_stands_no_more_counts_for_nobody(
    mcp: Mcp, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Rates({**DEFAULTS, "call": "9/minute", "write": "4/minute", "session": "9/minute"})
    monkeypatch.setattr(rates, "of_process", lambda: counts)
    acme = mcp.world.acme
    call = {"name": CREATE, "arguments": TRIP}
    revoked, family = connecting.granted(acme, acme["alice"])
    await twice(mcp, token, "tools/call", call)
    await twice(mcp, token, "tools/list", {})
    connecting.end_family(acme["alice"], family)

    refused = [await mcp.post(revoked, "tools/call", call) for _ in range(12)]
    refused += [await mcp.post(revoked, "tools/list") for _ in range(12)]
    shapes.frames.forget()
    refused += [await mcp.post(revoked, "tools/call", call) for _ in range(12)]
    stands = [await mcp.post(token, "tools/call", call) for _ in range(2)]
    paused = await mcp.post(token, "tools/call", call)
    hidden = await mcp.post(revoked, "tools/call", call)

    assert {each.status_code for each in (*refused, hidden)} == {401}
    assert {each.headers["www-authenticate"] for each in refused} == {
        refused[0].headers["www-authenticate"]
    }
    assert [each.status_code for each in stands] == [200, 200]
    assert (paused.status_code, paused.json()["reason"]) == (403, "delegation_paused")


@pytest.mark.requirement("SEC-51")
async def test_calls_at_once_count_one_by_one(
    mcp: Mcp, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {"name": CREATE, "arguments": TRIP}
    await twice(mcp, token, "tools/call", call)
    counts = Rates({**DEFAULTS, "write": "4/minute"})
    monkeypatch.setattr(rates, "of_process", lambda: counts)
    before = db.read_now(counted)

    answers = await asyncio.gather(*(mcp.post(token, "tools/call", call) for _ in range(8)))

    assert sorted(each.status_code for each in answers) == [200] * 4 + [403] * 4
    assert db.read_now(counted) == before + 5, "four calls, and that the agent was paused"


@pytest.mark.requirement("SEC-58")
async def test_a_scope_that_is_missing_is_missed_here_too(mcp: Mcp, token: str) -> None:
    acme = mcp.world.acme
    call = {"name": CREATE, "arguments": TRIP}
    await twice(mcp, token, "tools/call", call)
    await twice(mcp, token, "tools/list", {})
    reads = connecting.token(acme, acme["alice"], (Scope.COMMANDS_READ,))

    listed = await mcp.post(reads, "tools/list")
    made = await mcp.post(reads, "tools/call", call)
    read = await mcp.post(reads, "tools/call", {"name": "expense.report.list", "arguments": {}})

    assert (listed.status_code, made.status_code, read.status_code) == (403, 403, 200)


@pytest.mark.requirement("SEC-62", "SEC-66")
async def test_a_fault_tells_an_id_and_no_word_of_its_text(
    mcp: Mcp, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        raise RuntimeError(SECRET)

    async def busy(*_: Any) -> Any:
        raise Busy

    def breaks(*_: Any) -> Any:
        raise RuntimeError(SECRET)

    call = {"name": CREATE, "arguments": TRIP}
    await twice(mcp, token, "tools/call", call)
    await twice(mcp, token, "tools/list", {})
    answers = []
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "execute_as", broken)
        answers.append(await mcp.post(token, "tools/call", call))
        patch.setattr(listing, "page_of", breaks)
        answers.append(await mcp.post(token, "tools/list"))
        patch.setattr(pipeline, "execute_as", busy)
        waits = (await mcp.post(token, "tools/call", call)).json()["result"]

    for each in answers:
        error = each.json()["error"]
        assert (error["code"], error["message"]) == (-32603, "Internal error")
        assert list(error["data"]) == ["callId"]
        assert SECRET not in each.text
    told = waits["structuredContent"]
    assert (told["reason"], told["advice"]) == ("busy", "retry_later")


@pytest.mark.requirement("SEC-60", "CMD-F17")
async def test_a_feature_that_ended_is_in_no_list_any_more(clock: Clock, mcp: Mcp) -> None:
    acme = mcp.world.acme
    token = connecting.token(acme, acme["fiona"])
    first, _ = await twice(mcp, token, "tools/list", {})

    db.transact_now(
        features.entitle, None, acme.id, "expense.payments", status=EntitlementStatus.EXPIRED
    )
    clock.move(seconds=5)
    after = await mcp.post(token, "tools/list")

    assert SEND in {each["name"] for each in first.json()["result"]["tools"]}
    assert SEND not in {each["name"] for each in after.json()["result"]["tools"]}


@pytest.mark.requirement("SEC-64")
async def test_a_user_who_is_to_be_told_is_told_by_the_sdk(mcp: Mcp, token: str) -> None:
    create = {"name": CREATE, "arguments": TRIP}
    first, _ = await twice(mcp, token, "tools/call", create, capabilities=FORMS)
    submit = {
        "name": SUBMIT,
        "arguments": {"targetRecordId": _report(first), "operationType": "UPDATE"},
    }

    asked = await mcp.post(token, "tools/call", submit, capabilities=FORMS)

    result = asked.json()["result"]
    assert result.get("resultType") == "input_required" or result["isError"], result


def test_what_the_sdk_reads_is_in_the_shape() -> None:
    headers = [
        (b"host", b"localhost:8000"),
        (b"authorization", b"Bearer x"),
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
        (b"mcp-protocol-version", NEW.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", CREATE.encode()),
    ]
    params = connecting.enveloped({"name": CREATE, "arguments": TRIP})
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    def shape(more: Any = (), drop: bytes = b"", **changed: Any) -> bytes | None:
        kept = [each for each in headers if each[0] != drop]
        return shapes.of({"headers": [*kept, *more]}, Posted(b"", {**sent, **changed}))

    plain = shape()
    assert plain is not None
    meta = params["_meta"]
    same = (
        shape(id="another"),
        shape(more=[(b"user-agent", b"x")]),
        shape(drop=b"authorization"),
        shape(params={**params, "arguments": {"title": "x"}}),
        shape(params={**params, "_meta": {**meta, KEY_META: "k", "progressToken": 7}}),
    )
    assert set(same) == {plain}
    others = (
        shape(more=[(b"mcp-method", b"tools/call")]),
        shape(more=[(b"mcp-param-x", b"1")]),
        shape(more=[(b"mcp-name", CREATE.encode())]),
        shape(more=[(b"origin", b"http://localhost:8000")]),
        *(shape(drop=name) for name, _ in headers if name != b"authorization"),
        shape(params={**params, "_meta": {**meta, KEY_META: "a b"}}),
        shape(params={**params, "_meta": {**meta, "progressToken": True}}),
        shape(params={**params, "_meta": {**meta, "x": 1}}),
    )
    assert plain not in others
    assert len({each for each in others if each is not None}) == len(others)
    for none in (
        shape(params={**params, "inputResponses": {}}),
        shape(params={**params, "requestState": "x"}),
        shape(params={**params, "arguments": []}),
        shape(params={**params, "name": "other.name"}),
        shape(params={**params, "_meta": {**meta, "assent/approval": "0" * 26}}),
        shape(params={**params, "_meta": {**meta, "x": "y" * shapes.LONGEST}}),
        shape(params={"name": CREATE}),
        shape(more_member=1),
    ):
        assert none is None


def _disable(work: Work, mcp: Mcp) -> None:
    acme = mcp.world.acme
    users.disable(work, mcp.world.acme_admin, users.one(work.session, acme.id, acme["alice"].id))


def _report(answer: httpx2.Response) -> str:
    found: str = answer.json()["result"]["structuredContent"]["result"]["reportId"]
    return found


def _own(told: dict[str, Any]) -> dict[str, Any]:
    return {name: told[name] for name in ("callId", "timings", "auditSeq")}
