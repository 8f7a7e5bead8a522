"""Every form and every document, with all the columns there are: none is set from outside."""

from functools import cache
from html import unescape
from typing import Any

import httpx2
import pytest
from sqlalchemy import select
from sqlmodel import Session, SQLModel

from app.kernel import db, rates, settings
from app.kernel.settings import Settings
from tests.identity.oauth.flow import Flow
from tests.people import World
from tests.security import every_route
from tests.security.every_route import Ask
from tests.signing_in import hidden

CANARY = "hostile"
NUMBER = 987_654
CLAIMS = {
    "role",
    "roles",
    "approved_by",
    "approvedBy",
    "is_admin",
    "admin",
    "permissions",
    "scope_",
}
OWN_DOING = frozenset({"session", "sign_in_failure"})  # of signing in for the test
NOT_OURS = "The form sent a field that does not belong to it."
NOWHERE = {
    "/admin/features/{code}/entitlement": "no pack declares a feature yet",
    "/admin/users/{user_id}/roles/removal": "what is no such assignment is none, whatever is sent",
    "/setup/{secret}": "the first owner is there",
}
GONE = {"/audit/views/{view_id}/removal"}  # a button, and its row is no more
NO_FORM = {  # their button is all there is to them: what else is sent is not looked at
    "/admin/clients/{client_id}/unblock",
    "/admin/users/{user_id}/sign-out",
    "/admin/models/{profile}/trial",
    "/admin/mcp/{server_id}/look",
    "/admin/mcp/{server_id}/pause",
    "/admin/mcp/{server_id}/resumption",
    "/admin/mcp/{server_id}/tools/{tool_id}/turning-off",
    "/outside/{server_id}/consent",
    "/outside/{server_id}/unlinking",
    "/admin/webhooks/outbox/{event_id}/retry",
    "/admin/webhooks/{webhook_id}/deliveries/{delivery_id}/redelivery",
    "/admin/webhooks/{webhook_id}/pause",
    "/admin/webhooks/{webhook_id}/redelivery",
    "/admin/webhooks/{webhook_id}/resumption",
    "/admin/webhooks/{webhook_id}/test",
    "/approvals/{approval_id}/passkey/options",
    "/aun/rpc",  # takes JSON
    "/audit/verification",
    "/oauth/device_authorization",
    "/oauth/introspect",
    "/oauth/revoke",
    "/oauth/token",
    "/settings/delegations/{delegation_id}/pause",
    "/settings/delegations/{delegation_id}/resumption",
    "/settings/delegations/{delegation_id}/revocation",
    "/settings/logins/{login_id}/removal",
    "/settings/logins/{provider}/link",
    "/settings/passkeys/options",
    "/settings/passkeys/{credential_id}/removal",
    "/settings/sessions/all/end",
    "/settings/sessions/others/end",
    "/settings/sessions/{session_id}/end",
    "/sign-in/passkey/options",
    "/sign-out",
    "/step-up/elsewhere",
    "/step-up/passkey/options",
    "/v1/runs/{runId}/cancellation",
}


@pytest.mark.requirement("SEC-T33", "SEC-P64", "SEC-P65")
async def test_no_form_takes_a_column_it_does_not_offer(world: World) -> None:
    things = every_route.make(world, world.acme["olga"])
    homes = db.read_now(homes_of_rows)
    before = db.read_now(every_route.rows, besides=OWN_DOING)
    wrong = []
    tried = 0

    for ask in every_route.asks(world, things):
        if ask.method != "POST" or ask.template in NO_FORM | GONE | {"/oauth/register"}:
            continue
        more = columns(world, ask)
        answer = await send(world, ask, ask.form | more)
        tried += 1
        refused = unescape(answer.text).count(NOT_OURS)
        after = db.read_now(every_route.rows, besides=OWN_DOING)
        if after != before:
            wrong.append(f"{ask}: changed something")
        before = after
        if answer.status_code == 404 and ask.template in NOWHERE:
            continue
        if answer.status_code not in {400, 409, 422} or (refused and refused < len(more)):
            wrong.append(f"{ask}: {answer.status_code}, {refused} of {len(more)} refused")

    assert tried > 35, "else this proves nothing"
    assert "\n".join(wrong) == ""
    assert db.read_now(homes_of_rows).items() >= homes.items()
    assert db.read_now(canaries) == []


@pytest.mark.requirement("SEC-T33", "SEC-P65")
async def test_what_takes_no_form_takes_no_column_either(world: World) -> None:
    things = every_route.make(world, world.acme["olga"])
    homes = db.read_now(homes_of_rows)

    for ask in every_route.asks(world, things):
        if ask.template in NO_FORM and ask.method == "POST":
            await send(world, ask, ask.form | columns(world, ask))

    assert db.read_now(canaries) == []
    assert db.read_now(homes_of_rows).items() >= homes.items()


@pytest.mark.requirement("SEC-T33", "SEC-4")
async def test_a_client_that_registers_itself_says_only_what_it_may(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = Settings(oauth_registration=True)
    monkeypatch.setattr(settings, "current", lambda: chosen)
    more: dict[str, Any] = columns(flow.world, Ask("POST", "/oauth/register", "/oauth/register"))
    document = {"client_name": "Me", "redirect_uris": ["https://me.example/cb"]} | more

    answer = await flow.http.post("/oauth/register", json=document)

    assert answer.status_code in {201, 400}, answer.text
    found = [line for line in db.read_now(canaries) if "oauth_client" in line]
    assert found == []


@pytest.mark.requirement("SEC-T33", "SEC-P64")
async def test_what_was_sent_twice_or_in_disguise_is_not_taken(world: World) -> None:
    things = every_route.make(world, world.acme["olga"])
    path = f"/admin/users/{world.acme['alice'].id}"
    form = {"display_name": "Al", "org_id": world.acme.root.id, "version": "1"}
    browser = world.client(world.acme["olga"])
    disguises: list[dict[str, Any]] = [
        {"json": form},
        {"content": b"{}", "headers": {"Content-Type": "text/plain"}},
        {"data": {**form, "org_id": [world.globex.root.id, world.globex.root.id]}},
        {"data": {**form, "version": ["1", "x"]}},
        {"data": {**form, "user.status": "disabled"}},
        {"data": {**form, "__class__": "x"}},
        {"data": {**form, "display_name[$ne]": "x"}},
        {"files": {"display_name": ("x.txt", b"Al")}},
        {"data": {name.upper(): value for name, value in form.items()}},
    ]
    before = db.read_now(every_route.rows)

    answers = [await browser.post(path, **each) for each in disguises]

    assert {answer.status_code for answer in answers} <= {400, 404, 415, 422}
    assert db.read_now(every_route.rows) == before
    assert things.role.code == "clerk"


@pytest.mark.requirement("SEC-P66", "SEC-P67", "SEC-P42", "SEC-6")
@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"metrics_open": True},
        {"oauth_registration": True},
        {"public_url": "http://localhost:9000"},
        {"streams_per_user": 1},
        {"retention_events_days": 1},
    ],
    ids=str,
)
async def test_no_setting_shows_one_tenant_to_another(
    world: World, chosen: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Settings(**chosen)
    browser = world.client(world.globex["gina"])
    monkeypatch.setattr(settings, "current", lambda: given)
    lists = ("/admin/users", "/admin/agents", "/admin/delegations", "/admin/orgs", "/admin/roles")

    pages = [await browser.get(path) for path in (*lists, "/admin/clients", "/admin")]
    foreign = await browser.get(f"/admin/users/{world.acme['alice'].id}")

    assert {page.status_code for page in pages} == {200}
    assert foreign.status_code == 404
    told = "".join(page.text for page in pages)
    assert "Gus Globex" in told, "their own are there"
    for name in ("Alice Wang", "Shanghai", "Acme", world.acme["alice"].id, world.acme.id):
        assert name not in told


async def send(world: World, ask: Ask, form: dict[str, Any]) -> httpx2.Response:
    """The form with a sound token of whoever has to send it."""
    rates.of_process.cache_clear()
    is_persons = ask.template.startswith(
        (
            *("/admin", "/approvals", "/audit", "/calls", "/commands", "/settings", "/step-up"),
            *("/agents", "/connect", "/conversations", "/lanes", "/runs", "/schedules"),
            *("/outside", "/sign-out", "/tool-calls", "/v1"),
        )
    )
    is_persons = is_persons or ask.template in {"/oauth/consent", "/oauth/device"}
    browser = world.client(world.acme["olga"]) if is_persons else world.anonymous()
    async with browser:
        if not is_persons:
            form = {"_csrf": hidden(await browser.get("/sign-in"), "_csrf"), **form}
        return await browser.post(ask.path, data=form)


def columns(world: World, ask: Ask) -> dict[str, str]:
    """Every column there is and what else one might try, but what the form itself offers."""
    offered = set(ask.form) | {"email", "role_id", "description", "instructions", "held", "next"}
    offered |= {"ends_at", "slug", "locale", "time_zone", "theme", "grants", "redirect_uris"}
    offered |= {"label", "scopes", "decision", "user_code", "kind", "token_type_hint", "scope"}
    offered |= {"api_call", "feature", "permission", "risk", "idempotent", "reversible"}
    offered |= {"resource", "client_id", "code", "redirect_uri", "grant_type", "state"}
    made = _every_column() | {"status": "active", "builtin": "true", "email_verified": "true"}
    made["tenant_id"], made["owner_tenant_id"] = world.globex.id, world.globex.id
    made["user_id"] = world.globex["gina"].id
    return {name: value for name, value in made.items() if name not in offered}


@cache
def _every_column() -> dict[str, str]:
    made = dict.fromkeys(CLAIMS, CANARY)
    for table in SQLModel.metadata.sorted_tables:
        for column in table.c:
            kind = str(column.type).upper()
            made[column.name] = str(NUMBER) if "INT" in kind else f"{CANARY}-{column.name}"
    return made


def canaries(session: Session) -> list[str]:
    """Rows that hold something of what was sent."""
    found = every_route.rows(session)
    return [
        f"{table}: {row}"
        for table, rows in found.items()
        for row in rows
        if CANARY in row or str(NUMBER) in row
    ]


def homes_of_rows(session: Session) -> dict[tuple[str, str], str]:
    """Which tenant each row with an id is of."""
    found = {}
    for table in SQLModel.metadata.sorted_tables:
        if {"tenant_id", "id"} <= set(table.c.keys()):
            for tenant_id, id in session.execute(select(table.c.tenant_id, table.c.id)):
                found[table.name, id] = tenant_id
    return found
