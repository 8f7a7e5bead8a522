"""`tools/list`: pages, the bytes of a tool, and how soon a change of rights shows."""

import json
from typing import Any

import pytest
from sqlmodel import Session, select

from app.commands import catalogue
from app.commands.models import CommandVersion
from app.identity import features, roles, users
from app.identity.models import EntitlementStatus
from app.kernel import db, ids
from app.kernel.db import Work
from app.mcp import listing, tools
from tests.clock import Clock
from tests.mcp import connecting
from tests.mcp.connecting import NEW, OLD, Mcp
from tests.people import Company

CREATE, SEND = "expense.report.create", "expense.payment.send"
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
OURS = ("auraboot.riskLevel", "auraboot.idempotent", "auraboot.reversible")


async def everything(mcp: Mcp, token: str) -> list[dict[str, Any]]:
    """Every tool on the wire, page after page."""
    found, cursor = [], None
    while True:
        params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        result = (await mcp.post(token, "tools/list", params)).json()["result"]
        found += result["tools"]
        if (cursor := result.get("nextCursor")) is None:
            return found


def copied(work: Work, company: Company, count: int) -> None:
    """So many more commands that alice may call."""
    query = select(CommandVersion).where(
        CommandVersion.tenant_id == company.id, CommandVersion.code == "expense.report.get"
    )
    row = work.session.exec(query).one()
    for number in range(count):
        code = f"copy.n{number:04}.get"
        told = {**row.definition, "code": code, "agent_hint": {"en": f"{number}", "zh": "是"}}
        made = {**row.model_dump(), "id": ids.ulid(), "code": code, "definition": told}
        work.session.add(CommandVersion(**{**made, "content_hash": ids.sha256(code)}))


@pytest.mark.requirement("SEC-59", "SEC-66")
async def test_every_hint_is_said_and_ours_arrive_on_the_wire(mcp: Mcp) -> None:
    acme = mcp.world.acme
    token = connecting.token(acme, acme["fiona"])

    on_the_wire = {each["name"]: each for each in await everything(mcp, token)}

    for name, tool in on_the_wire.items():
        said = tool["annotations"]
        assert all(isinstance(said[hint], bool) for hint in HINTS), name
        assert {each: said[each] for each in OURS} == {each: tool["_meta"][each] for each in OURS}
        assert tool["inputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["outputSchema"]["required"] == ["callId"]
        ends = [each["required"] for each in tool["outputSchema"]["anyOf"]]
        assert ends == [["cmdCode", "outcome"], ["type", "title", "status", "reason", "detail"]]
        assert "x-mcp-header" not in json.dumps(tool)
        for each in tool["inputSchema"]["properties"].values():
            assert each.get("description") or "$ref" in each, name
    send, read = on_the_wire[SEND], on_the_wire["expense.report.get"]
    assert [send["annotations"][hint] for hint in HINTS] == [False, True, False, True]
    assert [read["annotations"][hint] for hint in HINTS] == [True, False, True, False]
    create = on_the_wire[CREATE]
    assert [create["annotations"][hint] for hint in HINTS] == [False, False, False, False]
    assert send["_meta"]["assent/needsApproval"] is True
    assert "A person must approve this exact call. It cannot be undone." in send["description"]
    assert send["description"].endswith("Do not repeat after a failure: read the record first.")
    submit = on_the_wire["expense.report.submit"]["description"]
    assert "Tell the user what will change before you call." in submit
    assert create["_meta"]["assent/undoCommand"] == "expense.report.discard"
    assert create["description"].count("expense.report.discard") == 1, "the hint names it already"


@pytest.mark.requirement("SEC-59")
async def test_the_sdk_client_reads_what_it_knows_in_both_revisions(mcp: Mcp) -> None:
    acme = mcp.world.acme
    token = connecting.token(acme, acme["fiona"])
    listed = []
    for revision in (NEW, OLD):
        async with mcp.client(token, revision) as client:
            listed.append({each.name: each for each in (await client.list_tools()).tools})

    new, old = listed
    assert new.keys() == old.keys()
    for name, tool in new.items():
        assert tool.model_dump(exclude={"meta"}) == old[name].model_dump(exclude={"meta"})
        assert tool.meta == old[name].meta
        assert tool.meta is not None
        assert set(OURS) <= tool.meta.keys(), "in `_meta` again, as the SDK drops unknown hints"


@pytest.mark.requirement("SEC-60")
async def test_a_long_list_comes_in_pages_with_cursors_of_ours(mcp: Mcp) -> None:
    acme = mcp.world.acme
    db.transact_now(copied, acme, 450)
    catalogue.forget()
    token = connecting.token(acme, acme["alice"])

    first = await mcp.post(token, "tools/list")
    again = await mcp.post(token, "tools/list")
    cursor = first.json()["result"]["nextCursor"]
    forged = [
        await mcp.post(token, "tools/list", {"cursor": each})
        for each in (cursor[:-1] + "x", "x", "", cursor.replace(".", ""), "YQ." + "0" * 64)
    ]
    found = [each["name"] for each in await everything(mcp, token)]

    assert len(first.json()["result"]["tools"]) == listing.SIZE == 200
    assert first.content == again.content
    for each in forged:
        assert (each.status_code, each.json()["error"]["code"]) == (400, -32602)
    held = db.read_now(_codes, mcp, "alice")
    assert found == held
    assert len(found) > 450


def _codes(session: Session, mcp: Mcp, login: str) -> list[str]:
    who = mcp.world.person(mcp.world.acme[login])
    agents = [
        each for each in catalogue.of(session, who).entries if not each.definition.people_only
    ]
    return [each.code for each in agents]


@pytest.mark.requirement("SEC-60")
async def test_how_long_a_list_counts_is_said_and_a_page_is_encoded_once(
    mcp: Mcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = mcp.world.acme
    token = connecting.token(acme, acme["alice"])
    made: list[str] = []

    def counted(descriptor: Any, language: str) -> dict[str, Any]:
        made.append(descriptor.code)
        return tool(descriptor, language)

    tool = tools.tool
    monkeypatch.setattr(tools, "tool", counted)
    monkeypatch.setattr(listing, "_pages", listing._Kept(listing.PAGES))
    monkeypatch.setattr(listing, "_tools", listing._Kept(listing.TOOLS))

    for method in ("tools/list", "resources/list", "prompts/list", "resources/templates/list"):
        result = (await mcp.post(token, method)).json()["result"]
        assert (result["ttlMs"], result["cacheScope"]) == (5_000, "private"), method
    once = list(made)
    await mcp.post(token, "tools/list")
    await mcp.post(token, "tools/call", {"name": "expense.report.list", "arguments": {"limit": 1}})

    assert len(once) == len(set(once)) > 5
    assert made == once, "neither a list nor a call composes anything again"


@pytest.mark.requirement("SEC-60", "CMD-F17")
async def test_a_change_of_roles_shows_with_the_next_token_and_the_old_one_ends(mcp: Mcp) -> None:
    acme, alice = mcp.world.acme, mcp.world.acme["alice"]
    token = connecting.token(acme, alice)
    before = {each["name"] for each in await everything(mcp, token)}

    mcp.world.give(alice, "manager")
    assert (await mcp.post(token, "tools/list")).status_code == 401, "so that clients refresh"
    token = connecting.minted(acme, alice)
    granted = {each["name"] for each in await everything(mcp, token)}
    db.transact_now(_take, mcp, alice.id, "manager")
    taken = {each["name"] for each in await everything(mcp, connecting.minted(acme, alice))}

    assert "expense.report.approve" in granted - before
    assert taken == before


@pytest.mark.requirement("SEC-60", "CMD-F17")
async def test_an_entitlement_that_ends_takes_the_tool_away_under_the_same_token(
    clock: Clock, mcp: Mcp
) -> None:
    acme = mcp.world.acme
    token = connecting.token(acme, acme["fiona"])
    before = {each["name"] for each in await everything(mcp, token)}

    db.transact_now(
        features.entitle, None, acme.id, "expense.payments", status=EntitlementStatus.EXPIRED
    )
    clock.move(seconds=5)
    after = {each["name"] for each in await everything(mcp, token)}

    assert SEND in before - after


def _take(work: Work, mcp: Mcp, user_id: str, code: str) -> None:
    user = users.one(work.session, mcp.world.acme.id, user_id)
    for _, role, org in roles.assignments_of(work.session, user):
        if role.code == code:
            roles.unassign(work, mcp.world.acme_admin, user, role, org)
