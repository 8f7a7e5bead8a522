"""Calls that need a person, in each of the three ways a client can be brought to the page."""

import asyncio
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from mcp.types import (
    URL_ELICITATION_REQUIRED,
    CallToolResult,
    ElicitCompleteNotification,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
)
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.commands import approval_replacement
from app.commands.approval_replacement import Replacement
from app.kernel import db, settings
from app.mcp import approving, holding
from app.mcp.message import APPROVAL_META, KEY_META
from tests.clock import Clock
from tests.commands.asking import REMIND, SEND, Asking
from tests.mcp import connecting
from tests.mcp.connecting import NEW, OLD, Mcp
from tests.packs.expenses.desk import Desk

PATIENCE_S = 20
URLS: Any = {"elicitation": {"url": {}}}
OPENED: Any = {approving.REQUEST: {"action": "accept"}}


@pytest.fixture
def asking(desk: Desk) -> Asking:
    """Who asks, and who decides."""
    return Asking(desk)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for somebody who will not decide."""
    monkeypatch.setattr(approving, "PATIENCE_S", 0.0)


class Opener:
    """What a client does with an address: it opens the page, where a person may decide."""

    def __init__(self, asking: Asking, login: str = "alice", verdict: str = "approve") -> None:
        self._asking, self._login, self._verdict = asking, login, verdict
        self.opened: list[ElicitRequestURLParams] = []

    async def __call__(self, _context: ClientRequestContext, asked: Any) -> ElicitResult:
        assert isinstance(asked, ElicitRequestURLParams)
        self.opened.append(asked)
        if self._verdict == "decline":
            return ElicitResult(action="decline")
        if self._verdict:
            row = self._asking.row(asked.url.rpartition("/")[2])
            await self._asking.decide(self._login, row, self._verdict)
        return ElicitResult(action="accept")


async def reminder(asking: Asking) -> dict[str, Any]:
    """The arguments of a call that needs alice's word."""
    report = await asking.desk.submitted("alice", 2_000)
    return {"targetRecordId": report, "operationType": "UPDATE", "message": "Please have a look"}


def done_with(session: Session, approval_id: str) -> list[AuditEntry]:
    query = select(AuditEntry).where(
        AuditEntry.approval_id == approval_id, AuditEntry.outcome == "done"
    )
    return list(session.exec(query.order_by(col(AuditEntry.seq))))


def assert_done_once(mcp: Mcp, result: CallToolResult, approval_id: str) -> None:
    told = result.structured_content
    assert (result.is_error, told["outcome"]) == (False, "done")
    [entry] = db.read_now(done_with, approval_id)
    acme = mcp.world.acme
    assert (entry.call_id, entry.channel) == (told["callId"], "mcp")
    assert (entry.agent_id, entry.user_id) == (acme.agents["expenses"].id, acme["alice"].id)
    assert entry.approved_by == acme["alice"].id


@pytest.mark.requirement("SEC-63", "CMD-14")
async def test_the_newer_revision_sends_the_client_to_the_page_and_goes_on(
    served: Mcp, asking: Asking
) -> None:
    token = connecting.token(served.world.acme, served.world.acme["alice"])
    opener, arguments = Opener(asking), await reminder(asking)

    async with served.client(token, NEW, elicitation_callback=opener) as client:
        result = await client.call_tool(REMIND, arguments)

    [asked] = opener.opened
    approval_id = asked.url.rpartition("/")[2]
    assert asked.url == f"{settings.current().origin}/approvals/{approval_id}"
    assert REMIND in asked.message
    assert asked.elicitation_id is None
    assert_done_once(served, result, approval_id)
    assert asking.row(approval_id).state == "consumed"


@pytest.mark.requirement("SEC-63")
async def test_the_older_revision_asks_by_an_error_and_tells_of_the_decision(
    served: Mcp, asking: Asking
) -> None:
    token = connecting.token(served.world.acme, served.world.acme["alice"])
    arguments, told = await reminder(asking), asyncio.Queue[str]()

    async def hear(message: Any) -> None:
        if isinstance(message, ElicitCompleteNotification):
            told.put_nowait(message.params.elicitation_id)

    more = {"elicitation_callback": Opener(asking), "message_handler": hear}
    async with served.client(token, OLD, **more) as client:
        with pytest.raises(MCPError) as first:
            await client.call_tool(REMIND, arguments)
        with pytest.raises(MCPError) as again:
            await client.call_tool(REMIND, arguments)
        [asked] = UrlElicitationRequiredError.from_error(first.value.error).elicitations
        approval_id = str(asked.elicitation_id)
        await asking.decide("alice", asking.row(approval_id))
        async with asyncio.timeout(PATIENCE_S):
            assert await told.get() == approval_id
        with pytest.raises(MCPError) as other:
            await client.call_tool(REMIND, {**arguments, "message": "Another one"})
        result = await client.call_tool(REMIND, arguments)

    assert first.value.code == URL_ELICITATION_REQUIRED
    assert first.value.data == again.value.data
    assert asked.url.endswith(f"/approvals/{approval_id}")
    assert other.value.data["elicitations"][0]["elicitationId"] != approval_id
    assert_done_once(served, result, approval_id)


@pytest.mark.requirement("SEC-63")
@pytest.mark.parametrize("revision", [NEW, OLD])
async def test_a_client_that_opens_no_pages_is_told_where_and_names_the_approval(
    mcp: Mcp, asking: Asking, revision: str
) -> None:
    token = connecting.token(mcp.world.acme, mcp.world.acme["alice"])
    arguments = await reminder(asking)

    async with mcp.client(token, revision) as client:
        asked = await client.call_tool(REMIND, arguments)
        told: dict[str, Any] = asked.structured_content
        approval_id = told["approvalId"]
        early = await named(client, arguments, approval_id)
        await asking.decide("alice", asking.row(approval_id))
        result = await named(client, arguments, approval_id)
        repeated = await named(client, arguments, approval_id)

    assert (asked.is_error, told["stage"], told["reason"], told["advice"]) == (
        True,
        "approval_check",
        "approval_required",
        "ask_user",
    )
    assert told["approvalUrl"] == f"{settings.current().origin}/approvals/{approval_id}"
    assert told["expiresAt"]
    assert early.structured_content["approvalId"] == approval_id
    assert_done_once(mcp, result, approval_id)
    assert repeated.structured_content["outcome"] == "replayed"
    assert len(db.read_now(done_with, approval_id)) == 1


async def named(client: Client, arguments: dict[str, Any], approval_id: str) -> CallToolResult:
    meta: Any = {APPROVAL_META: approval_id}
    return await client.call_tool(REMIND, arguments, meta=meta)


@pytest.mark.requirement("SEC-63", "SEC-65")
async def test_while_it_is_open_the_same_answer_comes_again_and_a_page_opened_is_no_consent(
    mcp: Mcp, asking: Asking
) -> None:
    token = connecting.token(mcp.world.acme, mcp.world.acme["alice"])
    arguments, opener = await reminder(asking), Opener(asking, verdict="")

    async with mcp.client(token, NEW, elicitation_callback=opener) as client:
        first = await ask(client, arguments)
        assert isinstance(first, InputRequiredResult)
        second = await ask(client, arguments, accepted(), first.request_state)
        assert isinstance(second, InputRequiredResult)
        declined = await ask(client, arguments, answered("decline"), second.request_state)

    assert first.input_requests == second.input_requests
    assert asking.count() == 1
    assert isinstance(declined, CallToolResult)
    assert declined.structured_content["reason"] == "approval_required"
    assert asking.row(declined.structured_content["approvalId"]).state == "open"


def accepted() -> dict[str, Any]:
    return answered("accept")


def answered(action: Any) -> dict[str, Any]:
    return {approving.REQUEST: ElicitResult(action=action)}


async def ask(
    client: Client, arguments: dict[str, Any], answers: Any = None, state: str | None = None
) -> Any:
    """One round, without the client's own loop."""
    return await client.session.call_tool(
        REMIND,
        arguments,
        input_responses=answers,
        request_state=state,
        allow_input_required=True,
    )


@pytest.mark.requirement("SEC-63")
async def test_who_comes_back_early_hears_of_the_decision_as_it_is_made(
    mcp: Mcp, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = connecting.token(mcp.world.acme, mcp.world.acme["alice"])
    arguments, waits = await reminder(asking), waiting(monkeypatch)
    async with mcp.client(token, NEW, elicitation_callback=Opener(asking)) as client:
        first = await ask(client, arguments)
        coming = asyncio.create_task(ask(client, arguments, accepted(), first.request_state))
        async with asyncio.timeout(PATIENCE_S):
            await waits.wait()
            approval_id = first.input_requests["approval"].params.url.rpartition("/")[2]
            await asking.decide("alice", asking.row(approval_id))
            result = await coming

    assert_done_once(mcp, result, approval_id)


def waiting(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let calls wait for the decision; set when the first does."""
    waits, loop, is_open = asyncio.Event(), asyncio.get_running_loop(), approving._is_open

    def looked(session: Session, who: Any, approval_id: str) -> bool:
        loop.call_soon_threadsafe(waits.set)
        return is_open(session, who, approval_id)

    monkeypatch.setattr(approving, "PATIENCE_S", float(PATIENCE_S))
    monkeypatch.setattr(approving, "_is_open", looked)
    return waits


@pytest.mark.requirement("SEC-25", "SEC-31", "SEC-63")
async def test_a_call_that_waited_runs_only_if_its_token_still_stands(
    mcp: Mcp, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "LOOK_S", float(PATIENCE_S))  # the call itself has to look
    alice = mcp.world.acme["alice"]
    token, family = connecting.granted(mcp.world.acme, alice)
    arguments, waits = await reminder(asking), waiting(monkeypatch)
    async with mcp.client(token, NEW, elicitation_callback=Opener(asking)) as client:
        first = await ask(client, arguments)
        coming = asyncio.create_task(ask(client, arguments, accepted(), first.request_state))
        async with asyncio.timeout(PATIENCE_S):
            await waits.wait()
            approval_id = first.input_requests["approval"].params.url.rpartition("/")[2]
            connecting.end_family(alice, family)
            await asking.decide("alice", asking.row(approval_id))
            refused = await coming

    assert (refused.is_error, refused.structured_content["reason"]) == (True, "invalid_token")
    assert asking.row(approval_id).state == "approved"
    assert db.read_now(done_with, approval_id) == []


@pytest.mark.requirement("SEC-31", "SEC-63")
async def test_a_wait_for_a_decision_ends_with_the_token(
    mcp: Mcp, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "LOOK_S", 0.05)
    alice = mcp.world.acme["alice"]
    token, family = connecting.granted(mcp.world.acme, alice)
    arguments, waits = await reminder(asking), waiting(monkeypatch)
    async with mcp.client(token, NEW, elicitation_callback=Opener(asking)) as client:
        first = await ask(client, arguments)
    given = {"name": REMIND, "arguments": arguments, "requestState": first.request_state}
    coming = asyncio.create_task(
        mcp.post(token, "tools/call", {**given, "inputResponses": OPENED}, capabilities=URLS)
    )
    async with asyncio.timeout(PATIENCE_S):
        await waits.wait()
        connecting.end_family(alice, family)
        answer = await coming

    assert (answer.status_code, answer.json()["reason"]) == (401, "invalid_token")
    assert "invalid_token" in answer.headers["www-authenticate"]


@pytest.mark.requirement("SEC-63", "SEC-65", "SEC-T3")
async def test_an_approval_runs_nothing_else_and_for_nobody_else(mcp: Mcp, asking: Asking) -> None:
    acme = mcp.world.acme
    token = connecting.token(acme, acme["alice"])
    arguments = await reminder(asking)
    async with mcp.client(token, NEW) as client:
        asked = await client.call_tool(REMIND, arguments)
        approval_id = asked.structured_content["approvalId"]
        await asking.decide("alice", asking.row(approval_id))
        changed = await named(client, {**arguments, "message": "More"}, approval_id)
    bobs = connecting.token(acme, acme["bob"])
    async with mcp.client(bobs, NEW) as client:
        foreign = await named(client, arguments, approval_id)
    other = connecting.token(acme, acme["alice"], agent="stock")
    async with mcp.client(other, NEW) as client:
        another = await named(client, arguments, approval_id)

    assert changed.structured_content["reason"] == "approval_stale"
    assert foreign.structured_content["reason"] in {"record_not_found", "permission_denied"}
    assert another.structured_content["reason"] == "approval_required"
    assert another.structured_content["approvalId"] != approval_id
    assert asking.row(approval_id).state == "approved"
    assert db.read_now(done_with, approval_id) == []


@pytest.mark.requirement("SEC-63", "SEC-62")
@pytest.mark.parametrize(
    ("state", "reason"),
    [("denied", "approval_denied"), ("expired", "approval_expired"), ("stale", "approval_stale")],
)
async def test_a_no_comes_back_as_any_other_refusal(
    clock: Clock, mcp: Mcp, asking: Asking, state: str, reason: str
) -> None:
    acme = mcp.world.acme
    token = connecting.token(acme, acme["alice"])
    arguments = await reminder(asking)
    async with mcp.client(token, OLD, elicitation_callback=Opener(asking)) as client:
        with pytest.raises(MCPError) as asked:
            await client.call_tool(REMIND, arguments)
        approval_id = asked.value.data["elicitations"][0]["elicitationId"]
        if state == "denied":
            await asking.decide("alice", asking.row(approval_id), "deny", reason="not today")
        else:
            await asking.decide("alice", asking.row(approval_id))
        if state == "expired":
            asking.set(approval_id, expires_at=asking.row(approval_id).opened_at)
        if state == "stale":
            asking.set(approval_id, state="superseded")
        refused = await client.call_tool(REMIND, arguments)
        with pytest.raises(MCPError) as anew:
            await client.call_tool(REMIND, arguments)

    assert (refused.is_error, refused.structured_content["reason"]) == (True, reason)
    assert anew.value.data["elicitations"][0]["elicitationId"] != approval_id


@pytest.mark.requirement("SEC-63", "CMD-28")
@pytest.mark.parametrize("revision", [NEW, OLD])
async def test_what_a_person_changed_first_is_what_runs_and_is_said(
    mcp: Mcp, asking: Asking, revision: str
) -> None:
    token = connecting.token(mcp.world.acme, mcp.world.acme["alice"])
    arguments, alice = await reminder(asking), asking.desk.person("alice")

    async with mcp.client(token, revision) as client:
        asked = await client.call_tool(REMIND, arguments)
        old = asking.row(asked.structured_content["approvalId"])
        edited = Replacement(digest=old.digest, input={**arguments, "message": "When you can"})
        new = await approval_replacement.attempt(alice, old.id, edited)
        early = await named(client, arguments, old.id)
        await asking.decide(alice, new)
        result = await named(client, arguments, old.id)

    assert early.structured_content["approvalId"] == new.id
    assert_done_once(mcp, result, new.id)
    assert result.structured_content["changedInput"]["message"] == "When you can"
    assert "A person changed the arguments" in result.content[-1].text  # type: ignore[union-attr]


@pytest.mark.requirement("SEC-63", "CMD-14", "CMD-28")
async def test_other_arguments_do_not_run_what_a_person_changed(mcp: Mcp, asking: Asking) -> None:
    token = connecting.token(mcp.world.acme, mcp.world.acme["alice"])
    arguments, alice = await reminder(asking), asking.desk.person("alice")

    async with mcp.client(token) as client:
        asked = await client.call_tool(REMIND, arguments)
        old = asking.row(asked.structured_content["approvalId"])
        edited = Replacement(digest=old.digest, input={**arguments, "message": "When you can"})
        new = await approval_replacement.attempt(alice, old.id, edited)
        await asking.decide(alice, new)
        others = [
            await named(client, {**arguments, "message": "Another"}, each)
            for each in (old.id, new.id)
        ]
        state = asking.row(new.id).state
        result = await named(client, dict(edited.input), new.id)

    assert [each.structured_content["reason"] for each in others] == ["approval_stale"] * 2
    assert state == "approved"
    assert_done_once(mcp, result, new.id)


@pytest.mark.requirement("SEC-63", "CMD-28")
async def test_a_change_of_arguments_is_no_decision_and_is_not_told_as_one(
    served: Mcp, asking: Asking
) -> None:
    token = connecting.token(served.world.acme, served.world.acme["alice"])
    arguments, told = await reminder(asking), asyncio.Queue[str]()
    alice = asking.desk.person("alice")

    async def hear(message: Any) -> None:
        if isinstance(message, ElicitCompleteNotification):
            told.put_nowait(message.params.elicitation_id)

    more = {"elicitation_callback": Opener(asking), "message_handler": hear}
    async with served.client(token, OLD, **more) as client:
        old = asking.row(await asked_by_error(client, arguments))
        edited = Replacement(digest=old.digest, input={**arguments, "message": "When you can"})
        new = await approval_replacement.attempt(alice, old.id, edited)
        await client.session.send_ping()
        early = told.empty()
        await asking.decide(alice, new)
        async with asyncio.timeout(PATIENCE_S):
            assert await told.get() == old.id
        result = await client.call_tool(REMIND, arguments)
        await client.session.send_ping()

    assert early
    assert told.empty(), "it is told once"
    assert_done_once(served, result, new.id)


@pytest.mark.requirement("SEC-63")
async def test_what_was_used_elsewhere_is_no_answer_to_a_new_call(mcp: Mcp, asking: Asking) -> None:
    token = connecting.token(mcp.world.acme, mcp.world.acme["alice"])
    arguments = await reminder(asking)

    async with (
        mcp.client(token, OLD, elicitation_callback=Opener(asking)) as client,
        mcp.client(token) as elsewhere,
    ):
        approval_id = await asked_by_error(client, arguments)
        await asking.decide("alice", asking.row(approval_id))
        meta: Any = {APPROVAL_META: approval_id, KEY_META: "elsewhere"}
        result = await elsewhere.call_tool(REMIND, arguments, meta=meta)
        anew = await asked_by_error(client, arguments)

    assert_done_once(mcp, result, approval_id)
    assert anew != approval_id


@pytest.mark.requirement("SEC-63", "SEC-66")
async def test_questions_end_with_their_session(mcp: Mcp, asking: Asking) -> None:
    token = connecting.token(mcp.world.acme, mcp.world.acme["alice"])
    arguments, asked = await reminder(asking), approving.questions._asked

    async with mcp.client(token, OLD, elicitation_callback=Opener(asking)) as client:
        for message in ("One", "Two"):
            await asked_by_error(client, {**arguments, "message": message})
        [open_ones] = asked.values()
        telling = [each.telling for each in open_ones.values()]
    await asyncio.wait(telling, timeout=PATIENCE_S)

    assert asked == {}
    assert all(each.cancelled() for each in telling)


async def asked_by_error(client: Client, arguments: dict[str, Any]) -> str:
    """The approval that a client of the older revision is sent to."""
    with pytest.raises(MCPError) as asked:
        await client.call_tool(REMIND, arguments)
    approval_id: str = asked.value.data["elicitations"][0]["elicitationId"]
    return approval_id


@pytest.mark.requirement("SEC-63", "CMD-12")
async def test_what_somebody_else_decides_is_said_so(mcp: Mcp, asking: Asking) -> None:
    acme = mcp.world.acme
    report = await asking.desk.approved("alice", 2_000)
    token = connecting.token(acme, acme["fiona"])
    arguments = {"targetRecordId": report, "operationType": "UPDATE"}
    opener = Opener(asking, "frank")

    async with mcp.client(token, NEW, elicitation_callback=opener) as client:
        result = await client.call_tool(SEND, arguments)

    [asked] = opener.opened
    assert "somebody else" in asked.message
    assert result.is_error is False
    assert asking.row(asked.url.rpartition("/")[2]).decided_by == acme["frank"].id
