"""A form of the client informs before an L2 call, and gives consent to nothing."""

from typing import Any

import pytest
from mcp.client.session import ClientRequestContext
from mcp.types import ElicitRequestFormParams, ElicitResult
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.kernel import db
from app.mcp import briefing
from tests.commands.asking import DISCARD, REMIND
from tests.mcp import connecting
from tests.mcp.connecting import NEW, OLD, Mcp
from tests.packs.expenses.desk import Desk

SUBMIT, CREATE = "expense.report.submit", "expense.report.create"
BOTH = pytest.mark.parametrize("revision", [NEW, OLD])


class Asked:
    """A client's form, and what its user answers."""

    def __init__(self, action: Any = "accept", **content: Any) -> None:
        self._answer = ElicitResult(action=action, content=content or None)
        self.forms: list[ElicitRequestFormParams] = []

    async def __call__(self, _context: ClientRequestContext, asked: Any) -> ElicitResult:
        if not isinstance(asked, ElicitRequestFormParams):
            return ElicitResult(action="decline")
        self.forms.append(asked)
        return self._answer


def brief_of(session: Session, call_id: str) -> tuple[str, str | None]:
    query = select(AuditEntry.outcome, AuditEntry.brief).where(AuditEntry.call_id == call_id)
    return session.exec(query.order_by(col(AuditEntry.seq).desc())).one()


@pytest.mark.requirement("SEC-64")
@BOTH
async def test_the_user_is_asked_once_with_what_will_change(
    served: Mcp, desk: Desk, revision: str
) -> None:
    report = await desk.draft("alice", 2_000)
    token = connecting.token(desk.acme, desk.acme["alice"])
    asked = Asked(proceed=True)

    async with served.client(token, revision, elicitation_callback=asked) as client:
        result = await client.call_tool(
            SUBMIT, {"targetRecordId": report, "operationType": "UPDATE"}
        )

    [form] = asked.forms
    assert SUBMIT in form.message
    assert report in form.message
    assert "draft → submitted" in form.message
    assert [each["type"] for each in form.requested_schema["properties"].values()] == ["boolean"]
    assert result.structured_content["outcome"] == "done"
    entry = db.read_now(brief_of, result.structured_content["callId"])
    assert entry == ("done", "agent_asserted")


@pytest.mark.requirement("SEC-64")
@BOTH
@pytest.mark.parametrize(
    "asked",
    [
        Asked("decline"),
        Asked("cancel"),
        Asked(proceed=False),
        Asked(),
        Asked(proceed="yes"),
    ],
)
async def test_anything_but_a_yes_refuses_the_call_and_is_on_record(
    served: Mcp, desk: Desk, revision: str, asked: Asked
) -> None:
    report = await desk.draft("alice", 2_000)
    token = connecting.token(desk.acme, desk.acme["alice"])

    async with served.client(token, revision, elicitation_callback=asked) as client:
        result = await client.call_tool(
            SUBMIT, {"targetRecordId": report, "operationType": "UPDATE"}
        )

    told = result.structured_content
    assert (result.is_error, told["reason"]) == (True, briefing.DECLINED)
    assert db.read_now(brief_of, told["callId"])[0] == "refused"
    assert (await desk.report(report))["state"] == "draft"


@pytest.mark.requirement("SEC-64")
@BOTH
async def test_a_client_without_forms_just_calls_and_the_trail_says_none(
    mcp: Mcp, desk: Desk, revision: str
) -> None:
    report = await desk.draft("alice", 2_000)
    token = connecting.token(desk.acme, desk.acme["alice"])

    async with mcp.client(token, revision) as client:
        result = await client.call_tool(
            SUBMIT, {"targetRecordId": report, "operationType": "UPDATE"}
        )

    assert db.read_now(brief_of, result.structured_content["callId"]) == ("done", "none")


@pytest.mark.requirement("SEC-64", "SEC-T3")
async def test_no_form_is_offered_for_what_needs_a_person_nor_for_less_than_l2(
    mcp: Mcp, desk: Desk
) -> None:
    submitted, draft = await desk.submitted("alice", 2_000), await desk.draft("alice", 2_000)
    token = connecting.token(desk.acme, desk.acme["alice"])
    asked = Asked(proceed=True)

    async with mcp.client(token, NEW, elicitation_callback=asked) as client:
        await client.call_tool(CREATE, {"title": "x", "period": "2026-10"})
        remind = await client.call_tool(
            REMIND, {"targetRecordId": submitted, "operationType": "UPDATE"}
        )
        discard = await client.call_tool(
            DISCARD, {"targetRecordId": draft, "operationType": "DELETE"}
        )

    assert asked.forms == []
    for each in (remind, discard):
        assert each.structured_content["reason"] == "approval_required"


@pytest.mark.requirement("SEC-64")
async def test_a_call_that_could_not_run_is_refused_without_a_question(
    mcp: Mcp, desk: Desk
) -> None:
    report = await desk.submitted("alice", 2_000)
    token = connecting.token(desk.acme, desk.acme["alice"])
    asked = Asked(proceed=True)

    async with mcp.client(token, NEW, elicitation_callback=asked) as client:
        result = await client.call_tool(
            SUBMIT, {"targetRecordId": report, "operationType": "UPDATE"}
        )

    assert asked.forms == []
    assert (result.structured_content["stage"], result.is_error) == ("state_check", True)
