"""The catalogue over MCP, with the official client in both revisions."""

import subprocess
import sys
from typing import Any

import pytest
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.identity import users
from app.kernel import db
from app.mcp.server import INSTRUCTIONS
from tests.mcp import connecting
from tests.mcp.connecting import NEW, OLD, Mcp
from tests.sources import ROOT

CREATE, GET, LIST = "expense.report.create", "expense.report.get", "expense.report.list"
TRIP = {"title": "October, Shanghai", "period": "2026-10"}
BOTH = pytest.mark.parametrize("revision", [NEW, OLD])


def entry_of(session: Session, call_id: str) -> AuditEntry:
    query = select(AuditEntry).where(AuditEntry.call_id == call_id)
    return session.exec(query.order_by(col(AuditEntry.seq).desc())).one()


@pytest.mark.requirement("SEC-58", "SEC-59", "SEC-62")
@BOTH
async def test_an_agent_lists_calls_and_is_refused_and_the_trail_names_it(
    served: Mcp, revision: str
) -> None:
    mcp, acme = served, served.world.acme
    token = connecting.token(acme, acme["alice"])

    async with mcp.client(token, revision) as client:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        done = await client.call_tool(CREATE, TRIP)
        made: dict[str, Any] = done.structured_content
        got = await client.call_tool(GET, {"targetRecordId": made["record"]["id"]})
        no = await client.call_tool(CREATE, {**TRIP, "period": "2026-13"})

    assert list(tools) == sorted(tools)
    assert {CREATE, GET, LIST} <= tools.keys()
    assert (made["outcome"], done.is_error) == ("done", False)
    assert got.structured_content["result"]["title"] == TRIP["title"]
    told: dict[str, Any] = no.structured_content
    assert (no.is_error, told["stage"], told["reason"]) == (
        True,
        "schema_validate",
        "invalid_input",
    )
    for call_id, outcome in ((made["callId"], "done"), (told["callId"], "refused")):
        entry = db.read_now(entry_of, call_id)
        who = (entry.channel, entry.agent_id, entry.user_id, entry.outcome)
        assert who == ("mcp", acme.agents["expenses"].id, acme["alice"].id, outcome)


@pytest.mark.requirement("SEC-59")
@BOTH
async def test_the_server_speaks_the_language_of_the_user(mcp: Mcp, revision: str) -> None:
    acme = mcp.world.acme
    token = connecting.token(acme, acme["alice"])
    async with mcp.client(token, revision) as client:
        assert client.instructions == INSTRUCTIONS

    person = acme["alice"]
    db.transact_now(_speak, person.tenant_id, person.id)
    async with mcp.client(connecting.minted(acme, person), revision) as client:
        said = client.instructions or ""
        tools = {each.name: each for each in (await client.list_tools()).tools}
        no = await client.call_tool(CREATE, {**TRIP, "period": "2026-13"})

    assert "每个工具" in said
    assert "失败后不要重复调用" in (tools[CREATE].description or "")
    assert no.content[0].text.endswith("请更正参数后再次调用。")  # type: ignore[union-attr]


def _speak(work: db.Work, tenant_id: str, user_id: str) -> None:
    user = users.one(work.session, tenant_id, user_id)
    user.locale = "zh-CN"
    work.session.add(user)


@pytest.mark.requirement("SEC-58")
@BOTH
async def test_there_are_no_resources_and_no_prompts(mcp: Mcp, revision: str) -> None:
    acme = mcp.world.acme
    async with mcp.client(connecting.token(acme, acme["alice"]), revision) as client:
        assert (await client.list_resources()).resources == []
        assert (await client.list_resource_templates()).resource_templates == []
        assert (await client.list_prompts()).prompts == []


def test_the_application_starts_without_the_sdk() -> None:
    """It takes a second to load, and most installations never see an MCP client."""
    code = (
        "import sys; from app import main; main.create_app(); "
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'mcp', 'mcp_types'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert done.stdout.strip() == "[]"
