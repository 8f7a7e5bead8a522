"""Every route of the application as a request that would do, for whoever attacks them all.

Paths are filled with what is there in Acme, forms with what the page would send; a route whose
parameter or form is not known here fails loudly, so that one added later is attacked as well.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from sqlalchemy import select
from sqlmodel import Session, SQLModel

from app import main
from app.audit import views
from app.commands import pipeline, publishing, refusals
from app.commands.call import Call
from app.commands.outcome import Done
from app.commands.refused import Refused
from app.console import drafts
from app.identity import delegations, deps, links, roles, users
from app.identity.models import (
    AuthMethod,
    Credential,
    CredentialKind,
    ExternalLogin,
    LinkPurpose,
    Role,
    User,
)
from app.identity.oauth import clients
from app.identity.principal import Principal, Scope
from app.kernel import clock, db, ids
from app.kernel.db import Work
from tests.aun import contact_rows, conversation_rows
from tests.commands import telling
from tests.console import run_rows
from tests.identity import family_rows
from tests.outside import rows as outside_rows
from tests.people import World
from tests.runs.models import profile_rows

PASSWORD = "a long and unusual one 9"
COMMAND = "expense.report.create"
MODEL = {
    "kind": "openai",
    "model": "gpt-5",
    "base_url": "",
    "context_tokens": "128000",
    "output_tokens": "4096",
    "thinking": "off",
    "price_input": "1",
    "price_output": "2",
    "currency": "USD",
    "requires_finish": "true",
    "usage": "sum",
    "call_ids": "run",
    "max_tokens_field": "new",
}

# Routes that ask for no person, and why.
NOT_OF_PEOPLE = {
    "/.well-known/aun-gateway": "a public document",
    "/aun/rpc": "an AUN token, an agent or a person; calls: tests/aun",
    "/agent.md": "a public card; written with an AUN token",
    "/health": "up or not",
    "/pki/cert/{aid}": "a public certificate",
    "/pki/chain": "public certificates",
    "/pki/crl.json": "a public list",
    "/pki/ocsp/{serial}": "a public answer",
    "/root.crt": "a public certificate",
    "/.well-known/oauth-authorization-server": "a public document",
    "/.well-known/oauth-protected-resource/{_door}": "a public document",
    "/.well-known/oauth-protected-resource/{door}": "a public document",
    "/docs": "the description of /openapi.json, for people to read",
    "/healthz": "up or not",
    "/invite/{secret}": "before a session; the secret is the proof",
    "/look": "a choice of this browser",
    "/metrics": "numbers, for this machine",
    "/oauth/device_authorization": "of clients",
    "/oauth/introspect": "of clients",
    "/oauth/jwks": "a public document",
    "/oauth/register": "of clients",
    "/oauth/revoke": "of clients",
    "/oauth/token": "of clients",
    "/readyz": "up or not",
    "/reset/{secret}": "before a session; the secret is the proof",
    "/setup/{secret}": "before a session; the secret is the proof",
    "/sign-in": "before a session",
    "/sign-in/elsewhere": "before a session",
    "/sign-in/passkey": "before a session",
    "/sign-in/passkey/options": "before a session",
    "/sign-in/{provider}": "before a session",
    "/sign-in/{provider}/callback": "before a session",
    "/sign-out": "asks for a person itself, where there is a session or a token",
    "/static/{version}/{name:path}": "files of the product",
    "/v1/audit": "a person or an agent",
    "/v1/audit.csv": "a person or an agent",
    "/v1/audit.jsonl": "a person or an agent",
    "/v1/audit/verify": "a person or an agent",
    "/v1/audit/{seq}": "a person or an agent",
    "/v1/approvals": "a person or an agent",
    "/v1/approvals/{approvalId}": "a person or an agent",
    "/v1/calls/{callId}": "a person or an agent",
    "/v1/commands": "a person or an agent",
    "/v1/commands/{cmdCode}": "a person or an agent",
    "/v1/commands/{cmdCode}/calls": "a person or an agent",
    "/v1/events": "a person or an agent",
    "/v1/me": "a person or an agent",
    "/v1/runs": "a person or an agent",
    "/v1/runs/{runId}": "a person or an agent",
    "/v1/runs/{runId}/cancellation": "a person or an agent",
}


@dataclass(frozen=True)
class Ask:
    """One request that would do."""

    method: str
    template: str
    path: str
    form: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.template}"


@dataclass
class Things:
    """What the paths and forms name, besides what the world has."""

    role: Role
    client_id: str
    passkey_id: str
    login_id: str
    session_id: str
    delegation_id: str
    view_id: str
    call_id: str
    approval_id: str
    told: dict[str, str]
    run: dict[str, str]
    secrets: dict[str, str]


def routes() -> list[APIRoute]:
    """Every route there is."""
    return [
        route for router in main.routers() for route in router.routes if isinstance(route, APIRoute)
    ]


def wants_a_person(route: APIRoute) -> bool:
    """Whether the guard of people stands before it."""
    return _calls(route.dependant, deps.person)


def make(world: World, of: User) -> Things:
    """Things in Acme; those of an account belong to `of`."""
    person = world.person(of)
    return db.transact_now(_make, world, person)


def asks(world: World, things: Things, *, of_people: bool | None = None) -> Iterator[Ask]:
    """Each method of each route, with ids that exist."""
    forms = _forms(world, things)
    for route in routes():
        if of_people is not None and wants_a_person(route) is not of_people:
            continue
        for method in sorted((route.methods or set()) - {"HEAD"}):
            path = _filled(route.path, world, things)
            form = forms[route.path] if method == "POST" else {}
            yield Ask(method, route.path, path, form)


def rows(session: Session, *, besides: frozenset[str] = frozenset()) -> dict[str, list[str]]:
    """Every row of every table but the trail's own, and what only says that somebody was there."""
    left_out = {"audit_entry", "audit_head", "audit_repeat", "event", "event_head", "sealed_key"}
    seen = {"last_seen_at", "idle_until", "last_used_at"}
    found = {}
    for table in SQLModel.metadata.sorted_tables:
        if table.name in left_out | besides:
            continue
        columns = [column for column in table.c if column.name not in seen]
        found[table.name] = sorted(repr(tuple(row)) for row in session.execute(select(*columns)))
    return found


def _calls(dependant: Dependant, wanted: Any) -> bool:
    return dependant.call is wanted or any(_calls(each, wanted) for each in dependant.dependencies)


def _filled(template: str, world: World, things: Things) -> str:
    acme = world.acme
    in_path = {
        "user_id": acme["alice"].id,
        "org_id": acme.orgs["beijing"].id,
        "role_id": things.role.id,
        "agent_id": acme.agents["expenses"].id,
        "number": "1",
        "seq": "1",
        "view_id": things.view_id,
        "client_id": things.client_id,
        "delegation_id": things.delegation_id,
        "code": COMMAND if "/commands/" in template else "identity",
        "cmdCode": COMMAND,
        "call_id": things.call_id,
        "callId": things.call_id,
        "approvalId": things.approval_id,
        "approval_id": things.approval_id,
        **things.told,
        **things.run,
        "runId": things.run["run_id"],
        "session_id": things.session_id,
        "credential_id": things.passkey_id,
        "login_id": things.login_id,
        "provider": "nobody",
        "version": "0",
        "name": "x.css",
        "door": "v1",
        "_door": "v1",
        "aid": things.told["aid"],
        "reservation_id": things.told["reservation_id"],
        "serial": "1",
        "secret": things.secrets.get(template.split("/")[1], "nothing"),
    }
    return re.sub(r"{(\w+)(:path)?}", lambda found: in_path[found[1]], template)


def _forms(world: World, things: Things) -> dict[str, dict[str, Any]]:
    acme = world.acme
    root, sales = acme.root.id, acme.orgs["sales"].id
    olga = acme["olga"].id
    password = {"password": PASSWORD, "again": PASSWORD}
    held = {"role_id": things.role.id, "org_id": root}
    code = {"grant_type": "authorization_code", "client_id": things.client_id, "code": "x"}
    uris = {"name": "Desk", "redirect_uris": "https://desk.example/cb"}
    nothing: dict[str, Any] = {}
    hook = {"url": "https://hooks.example/y", "event_types": ["*"]}
    answer = {"credential": "{}"}
    bob = {"aid": acme["bob"].aid or ""}
    group = {
        "name": "Ours",
        "visibility": "private",
        "join_mode": "approval",
        "mention_mode": "disabled",
    }
    manners = {"model": "default", "tokens": "1000", "output_tokens": "500"}
    work = {"instruction": "Look what is new.", "rule": "weekdays 9:00"}
    trip = {"/title": "Trip", "/period": "2026-10", "key": ids.ulid(), "expected_version": ""}
    return {
        "/admin/agents": {"name": "New", "code": "new_agent", "admin_user_id": olga, **manners},
        "/admin/agents/{agent_id}": {
            "name": "New",
            "admin_user_id": olga,
            "version": "1",
            **manners,
        },
        "/admin/agents/{agent_id}/activation": nothing,
        "/admin/agents/{agent_id}/deactivation": nothing,
        "/admin/agents/{agent_id}/pause": {"paused": "true"},
        "/admin/agents/{agent_id}/releases": nothing,
        "/admin/aun/contacts/{aid}/block": nothing,
        "/admin/aun/contacts/{aid}/unblock": nothing,
        "/admin/aun/reservations": {"name": "newcomer"},
        "/admin/aun/reservations/{reservation_id}/removal": nothing,
        "/admin/clients": {**uris, "kind": "public"},
        "/admin/clients/{client_id}": uris,
        "/admin/clients/{client_id}/block": nothing,
        "/admin/clients/{client_id}/secret": nothing,
        "/admin/clients/{client_id}/unblock": nothing,
        "/admin/commands/{code}/draft": _draft(),
        "/admin/commands/{code}/draft/removal": nothing,
        "/admin/commands/{code}/publication": nothing,
        "/admin/commands/{code}/restoration": nothing,
        "/admin/commands/{code}/retirement": nothing,
        "/admin/delegations/{delegation_id}/revocation": nothing,
        "/admin/features/{code}/entitlement": {"status": "trial"},
        "/admin/orgs": {"name": "New", "parent_id": root},
        "/admin/orgs/{org_id}/closure": nothing,
        "/admin/orgs/{org_id}/name": {"name": "Peking"},
        "/admin/orgs/{org_id}/parent": {"parent_id": sales},
        "/admin/models": {"name": "other", **MODEL},
        "/admin/models/{profile}": MODEL,
        "/admin/models/{profile}/removal": nothing,
        "/admin/models/{profile}/trial": nothing,
        "/admin/roles": {"name": "New", "code": "new_role", "grants": ["identity.org.read=all"]},
        "/admin/roles/{role_id}": {"name": "Clerks", "version": "1"},
        "/admin/roles/{role_id}/removal": nothing,
        "/admin/mcp": {"name": "weather", "url": "https://mcp.example/", "access": "open"},
        "/admin/mcp/{server_id}/look": nothing,
        "/admin/mcp/{server_id}/pause": nothing,
        "/admin/mcp/{server_id}/removal": nothing,
        "/admin/mcp/{server_id}/resumption": nothing,
        "/admin/mcp/{server_id}/tools/{tool_id}": {"risk": "L3", "pin": "0" * 64},
        "/admin/mcp/{server_id}/tools/{tool_id}/turning-off": nothing,
        "/outside/{server_id}/consent": nothing,
        "/outside/{server_id}/token": {"token": "abc"},
        "/outside/{server_id}/unlinking": nothing,
        "/admin/webhooks": hook,
        "/admin/webhooks/outbox/{event_id}/retry": nothing,
        "/admin/webhooks/{webhook_id}": hook,
        "/admin/webhooks/{webhook_id}/deliveries/{delivery_id}/redelivery": nothing,
        "/admin/webhooks/{webhook_id}/pause": nothing,
        "/admin/webhooks/{webhook_id}/redelivery": nothing,
        "/admin/webhooks/{webhook_id}/removal": nothing,
        "/admin/webhooks/{webhook_id}/resumption": nothing,
        "/admin/webhooks/{webhook_id}/secret": nothing,
        "/admin/webhooks/{webhook_id}/test": nothing,
        "/admin/users": {"display_name": "New", "login": "newcomer", "org_id": root},
        "/admin/users/{user_id}": {"display_name": "Al", "org_id": root, "version": "1"},
        "/admin/users/{user_id}/activation": nothing,
        "/admin/users/{user_id}/deactivation": nothing,
        "/admin/users/{user_id}/link": nothing,
        "/admin/users/{user_id}/roles": held,
        "/admin/users/{user_id}/roles/removal": held,
        "/admin/users/{user_id}/sign-out": nothing,
        "/agents/{agent_id}/schedules": work,
        "/approvals/{approval_id}/decision": {
            "verdict": "deny",
            "digest": "0" * 64,
            "nonce": "1.a",
        },
        "/approvals/{approval_id}/passkey/options": nothing,
        "/approvals/{approval_id}/replacement": {"again": "true", "digest": "0" * 64},
        "/approvals/{approval_id}/withdrawal": nothing,
        "/audit/verification": nothing,
        "/audit/views": {"name": "Mine", "query": "risk=L3"},
        "/audit/views/{view_id}": {"name": "Other"},
        "/audit/views/{view_id}/removal": nothing,
        "/calls/{call_id}/resolution": {"finding": "happened"},
        "/commands/{code}/calls": trip,
        "/commands/{code}/form": trip,
        "/commands/{code}/previews": trip,
        "/conversations": {"to": bob["aid"], "text": "Hello", "client_id": "c-1"},
        "/conversations/groups": {"name": "New", "members": [bob["aid"]]},
        "/conversations/invitations/{invite_id}": {"verdict": "accept"},
        "/conversations/memberships": {"code": "ic-nothing"},
        "/conversations/{conversation_id}/departure": nothing,
        "/conversations/{conversation_id}/dissolution": nothing,
        "/conversations/{conversation_id}/invite-codes": {"max_uses": "2"},
        "/conversations/{conversation_id}/invite-codes/revocation": {"code": "ic-nothing"},
        "/conversations/{conversation_id}/join-requests": {**bob, "verdict": "accept"},
        "/conversations/{conversation_id}/members": bob,
        "/conversations/{conversation_id}/members/removal": bob,
        "/conversations/{conversation_id}/members/role": {**bob, "role": "admin"},
        "/conversations/{conversation_id}/messages": {"text": "Hello", "client_id": "c-2"},
        "/conversations/{conversation_id}/messages/{message_id}/recall": nothing,
        "/conversations/{conversation_id}/owner": bob,
        "/conversations/{conversation_id}/read-position": {"seq": "1"},
        "/conversations/{conversation_id}/settings": group,
        "/connect/applications/{family_id}/removal": nothing,
        "/connect/code": nothing,
        "/connect/confirmation": {"aid": "otto.assent.localhost"},
        "/connect/links/{aid}/removal": nothing,
        "/invite/{secret}": password,
        "/lanes/{lane_id}/pause": {"paused": "true"},
        "/lanes/{lane_id}/reset": nothing,
        "/look": {"language": "en"},
        "/oauth/consent": {"request": ids.ulid(), "decision": "allow"},
        "/oauth/device": {"user_code": "BCDF-GHJK"},
        "/oauth/device_authorization": {"client_id": things.client_id},
        "/oauth/introspect": {"client_id": things.client_id, "token": "x"},
        "/oauth/register": nothing,
        "/oauth/revoke": {"client_id": things.client_id, "token": "x"},
        "/oauth/token": code,
        "/reset/{secret}": password,
        "/runs/{run_id}/cancellation": nothing,
        "/runs/{run_id}/withdrawal": nothing,
        "/schedules/{schedule_id}/pause": {"paused": "true"},
        "/schedules/{schedule_id}/removal": nothing,
        "/settings": {"display_name": "Olga", "time_zone": "UTC"},
        "/settings/delegations": {
            "agent_id": acme.agents["expenses"].id,
            "scopes": ["commands.read"],
            "expires_at": "",
        },
        "/settings/delegations/{delegation_id}": {"scopes": ["commands.read"]},
        "/settings/delegations/{delegation_id}/pause": nothing,
        "/settings/delegations/{delegation_id}/resumption": nothing,
        "/settings/delegations/{delegation_id}/revocation": nothing,
        "/settings/logins/{login_id}/removal": nothing,
        "/settings/logins/{provider}/link": nothing,
        "/settings/passkeys": {"label": "Key", **answer},
        "/settings/passkeys/options": nothing,
        "/settings/passkeys/{credential_id}": {"label": "Key"},
        "/settings/passkeys/{credential_id}/removal": nothing,
        "/settings/password": {"old": PASSWORD, **password},
        "/settings/sessions/all/end": nothing,
        "/settings/sessions/others/end": nothing,
        "/settings/sessions/{session_id}/end": nothing,
        "/setup/{secret}": {"tenant_name": "T", "display_name": "O", "login": "o", **password},
        "/sign-in": {"tenant": "acme", "login": "alice", "password": PASSWORD},
        "/sign-in/elsewhere": nothing,
        "/sign-in/passkey": answer,
        "/sign-in/passkey/options": nothing,
        "/sign-out": nothing,
        "/step-up": {"password": PASSWORD},
        "/step-up/elsewhere": nothing,
        "/step-up/passkey": answer,
        "/step-up/passkey/options": nothing,
        "/tool-calls/{tool_call_id}/resolution": {"finding": "happened"},
        "/aun/rpc": nothing,  # takes JSON
        "/v1/commands/{cmdCode}/calls": nothing,  # takes JSON: tests/api/test_schemathesis.py
        "/v1/runs/{runId}/cancellation": nothing,
    }


def _draft() -> dict[str, Any]:
    told = publishing.declared_definitions()[COMMAND]
    return {name: value for name, value in drafts.typed(told, told).items() if value}


def _make(work: Work, world: World, person: Principal) -> Things:
    acme, now = world.acme, clock.now()
    role = roles.create(work, None, tenant_id=acme.id, code="clerk", name="Clerk", grants={})
    client, _ = clients.create(
        work,
        person,
        name="Desk",
        redirect_uris=["https://desk.example/cb"],
        auth_method=AuthMethod.CLIENT_SECRET_BASIC,
    )
    key = Credential(
        tenant_id=acme.id,
        id=ids.ulid(),
        user_id=person.user_id,
        kind=CredentialKind.PASSKEY,
        passkey_id="b2xnYS1wYXNza2V5",
        public_key=b"key",
        label="Key",
        created_at=now,
    )
    login = ExternalLogin(
        tenant_id=acme.id,
        id=ids.ulid(),
        user_id=person.user_id,
        provider="idp",
        issuer="https://idp.example",
        subject="somebody",
        linked_at=now,
    )
    work.session.add_all([key, login])
    user = users.one(work.session, acme.id, person.user_id)
    delegation = delegations.make_for(work, user, acme.agents["stock"], [Scope.COMMANDS_READ])
    call = Call(code=COMMAND, input={"title": "Trip", "period": "2026-10"}, principal=person)
    secrets = {
        "invite": links.make(work, None, acme["ines"], LinkPurpose.INVITE),
        "reset": links.make(work, None, acme["bob"], LinkPurpose.RESET),
    }
    made = pipeline.perform(work, call)
    work.session.add(telling.unknown_effect(person, made.call_id))
    talk = conversation_rows.something(work, person)
    return Things(
        role=role,
        client_id=client.id,
        passkey_id=key.id,
        login_id=login.id,
        session_id=person.session_id or "",
        delegation_id=delegation.id,
        view_id=views.add(work, person, "Theirs", "risk=L4").id,
        call_id=made.call_id,
        approval_id=an_approval(work, person, made),
        told={
            **telling.something(work, person),
            **outside_rows.something(work, person),
            **profile_rows.something(work, person),
            **contact_rows.something(work, person),
            **talk,
            "family_id": family_rows.something(work, person),
        },
        run=run_rows.something(work, person, talk["conversation_id"]),
        secrets=secrets,
    )


def an_approval(work: Work, person: Principal, made: Done) -> str:
    """An approval of theirs that is open: to discard the report that was just made."""
    target = str((made.record or {})["id"])
    given = {"targetRecordId": target, "operationType": "DELETE"}
    trying = refusals.Trying(Call(code="expense.report.discard", input=given, principal=person))
    savepoint = work.connection.begin_nested()
    try:
        pipeline.perform(work, trying.call, trying)
    except Refused as refused:
        savepoint.rollback()
        told = refusals.record(work, trying, refused, pipeline.rehearse)
        return str(told.facts["approvalId"])
    raise AssertionError("it was done without a person's word")
