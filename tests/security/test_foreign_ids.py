"""What is not yours does not exist: every route with an id, asked with ids of others.

The table below names each kind of id; a route whose parameter is in neither table fails the test,
so a page that is added later is covered or says why it need not be.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from sqlmodel import Session, SQLModel, select

from app.audit import trail, views
from app.audit.models import SavedView
from app.audit.trail import NewEntry
from app.aun.group_models import Group, Invite, Member
from app.aun.models import Message, Participant
from app.aun.pki_models import Reservation
from app.commands import pipeline
from app.commands.call import Call
from app.commands.models import CommandVersion
from app.commands.outbox_models import OutboxEvent, WebhookDelivery, WebhookSubscription
from app.identity import roles
from app.identity.models import (
    Agent,
    AuthMethod,
    BrowserSession,
    Credential,
    CredentialKind,
    Delegation,
    Entitlement,
    ExternalLogin,
    Grant,
    OAuthClient,
    OneTimeLink,
    Org,
    PeerLink,
    Role,
    RoleAssignment,
    TokenFamily,
    User,
)
from app.identity.oauth import clients
from app.identity.principal import Principal
from app.kernel import clock, db, ids
from app.kernel.db import Work
from app.outside.models import McpServer, McpTool
from app.runs.models.profile_models import ModelProfile
from app.runs.run_models import AgentSchedule, Lane, Run, ToolCall
from tests.aun import contact_rows, conversation_rows
from tests.commands import telling
from tests.console import run_rows
from tests.identity import family_rows
from tests.outside import rows as outside_rows
from tests.people import Company, World
from tests.runs.models import profile_rows
from tests.security import every_route

# Parameters that name nothing of a person or a tenant, and why.
NOBODYS = {
    "/pki/cert/{aid}": "a public certificate",
    "/pki/ocsp/{serial}": "a public answer",
    "/static/{version}/{name:path}": "files of the product",
    "/.well-known/oauth-protected-resource/{door}": "metadata of the doors",
    "/.well-known/oauth-protected-resource/{_door}": "metadata of the doors",
    "/invite/{secret}": "a secret, looked up by its digest (SEC-5)",
    "/reset/{secret}": "a secret, looked up by its digest (SEC-5)",
    "/setup/{secret}": "a secret, looked up by its digest (SEC-5)",
    "/sign-in/{provider}": "a provider of sign-ins, of the deployment",
    "/sign-in/{provider}/callback": "a provider of sign-ins, of the deployment",
    "/step-up/{provider}": "a provider of sign-ins, of the deployment",
    "/settings/logins/{provider}/link": "a provider of sign-ins, of the deployment",
    "/admin/features/{code}/entitlement": "a feature, of the deployment; the right is one's own",
}
UNCHANGED: tuple[type[SQLModel], ...] = (
    Message,
    Participant,
    Group,
    Member,
    Invite,
    User,
    Org,
    Role,
    Grant,
    RoleAssignment,
    Agent,
    Delegation,
    TokenFamily,
    Credential,
    ExternalLogin,
    OneTimeLink,
    OAuthClient,
    Entitlement,
    SavedView,
    WebhookSubscription,
    WebhookDelivery,
    OutboxEvent,
    PeerLink,
    Reservation,
    Lane,
    Run,
    ToolCall,
    AgentSchedule,
    McpServer,
    McpTool,
    ModelProfile,
)
THEIRS = "theirs.alone.read"  # a command that one tenant has, and no other
# where this page leads back to, and how far its tenant's events went when it was drawn
ADDRESS = re.compile(r'next=[^"]*|href="[^"]*" data-reload|data-cursor="[^"]*"')
ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")

Strangers = Callable[["Others"], dict[str, str]]


class Others:
    """What belongs to others in the world: of another tenant, of another user, removed."""

    def __init__(self, world: World) -> None:
        self.acme, self.globex = world.acme, world.globex
        self.gina = world.person(world.globex["gina"])
        self.sessions = {
            "other tenant": self.gina.session_id or "",
            "other user": world.person(world.acme["alice"]).session_id or "",
        }
        self.client_id = db.transact_now(_client, self.gina)
        self.removed_role = db.transact_now(_removed_role, world.person(world.acme["olga"]))
        self.passkeys = db.transact_now(_credentials, (world.globex["gus"], world.acme["alice"]))
        self.logins = db.transact_now(_logins, (world.globex["gus"], world.acme["alice"]))
        db.transact_now(_command, self.globex.id)
        self.role = db.read_now(roles.by_code, world.globex.id, "member")
        self.views = db.transact_now(_views, self.gina, world.person(world.acme["alice"]))
        self.entry = db.transact_now(_entries, world.globex)
        gus = world.person(world.globex["gus"])
        self.approval = db.transact_now(_approval, gus)
        self.calls = {
            "other tenant": db.transact_now(_call, gus),
            "other user": db.transact_now(_call, world.person(world.acme["alice"])),
        }
        self.told = db.transact_now(telling.something, self.gina)
        self.told |= db.transact_now(outside_rows.something, self.gina)
        self.told |= db.transact_now(profile_rows.something, self.gina)
        self.told |= db.transact_now(contact_rows.something, self.gina)
        self.told |= db.transact_now(conversation_rows.something, self.gina)
        alice = world.person(world.acme["alice"])
        self.talk = db.transact_now(conversation_rows.something, alice)
        self.run = db.transact_now(run_rows.something, self.gina, self.told["conversation_id"])
        self.alices = db.transact_now(run_rows.something, alice, self.talk["conversation_id"])
        self.linked = db.transact_now(contact_rows.something, alice)["aid"]
        self.families = {
            "other tenant": db.transact_now(family_rows.something, gus),
            "other user": db.transact_now(family_rows.something, alice),
        }


STRANGERS: dict[str, Strangers] = {
    "user_id": lambda o: {"other tenant": o.globex["gus"].id},
    "org_id": lambda o: {"other tenant": o.globex.orgs["berlin"].id},
    "role_id": lambda o: {
        "other tenant": o.role.id if o.role else "",
        "removed": o.removed_role,
    },
    "agent_id": lambda o: {"other tenant": o.globex.agents["stock"].id},
    "client_id": lambda o: {"other tenant": o.client_id},
    "delegation_id": lambda o: {"other tenant": o.globex.delegations["gus"].id},
    "session_id": lambda o: o.sessions,
    "family_id": lambda o: o.families,
    "credential_id": lambda o: o.passkeys,
    "login_id": lambda o: o.logins,
    "view_id": lambda o: o.views,
    "approval_id": lambda o: {"other tenant": o.approval},
    "seq": lambda o: {"other tenant": str(o.entry)},
    "code": lambda _: {"other tenant": THEIRS},
    "approvalId": lambda o: {"other tenant": o.approval},
    "callId": lambda o: o.calls,
    "cmdCode": lambda _: {"other tenant": THEIRS},
    "call_id": lambda o: o.calls,
    "webhook_id": lambda o: {"other tenant": o.told["webhook_id"]},
    "server_id": lambda o: {"other tenant": o.told["server_id"]},
    "tool_id": lambda o: {"other tenant": o.told["tool_id"]},
    "profile": lambda o: {"other tenant": o.told["profile"]},
    "event_id": lambda o: {"other tenant": o.told["event_id"]},
    "aid": lambda o: {"other tenant": o.told["aid"]},
    "reservation_id": lambda o: {"other tenant": o.told["reservation_id"]},
    "conversation_id": lambda o: {
        "other tenant": o.told["conversation_id"],
        "other user": o.talk["conversation_id"],
    },
    "invite_id": lambda o: {"other tenant": o.told["invite_id"]},
    "run_id": lambda o: {"other tenant": o.run["run_id"]},
    "runId": lambda o: {"other tenant": o.run["run_id"]},
    "schedule_id": lambda o: {
        "other tenant": o.run["schedule_id"],
        "other user": o.alices["schedule_id"],
    },
    "tool_call_id": lambda o: {"other tenant": o.run["tool_call_id"]},
    "lane_id": lambda o: {"other tenant": o.run["lane_id"], "other user": o.alices["lane_id"]},
}
PRIVATE: dict[str, Strangers] = {  # an owner sees these of others in the administration only
    "/connect/links": lambda o: {"other tenant": o.told["aid"], "other user": o.linked},
    "/settings/delegations": lambda o: {
        "other tenant": o.globex.delegations["gus"].id,
        "other user": o.acme.delegations["alice"].id,
    },
}


def fields(path: str, acme: Company) -> dict[str, str]:
    """A form that would do, so that nothing but the id can be the reason."""
    root, olga = acme.root.id, acme["olga"].id
    member = db.read_now(roles.by_code, acme.id, "member")
    assert member is not None
    held = {"role_id": member.id, "org_id": root}
    return {
        "/admin/users/{user_id}": {"display_name": "x", "org_id": root, "version": "1"},
        "/admin/users/{user_id}/roles": held,
        "/admin/users/{user_id}/roles/removal": held,
        "/admin/orgs/{org_id}/name": {"name": "x"},
        "/admin/orgs/{org_id}/parent": {"parent_id": root},
        "/admin/roles/{role_id}": {"name": "x", "version": "1"},
        "/admin/agents/{agent_id}": {"name": "x", "admin_user_id": olga, "version": "1"},
        "/admin/clients/{client_id}": {"name": "x", "redirect_uris": "https://x.example/cb"},
        "/settings/delegations/{delegation_id}": {"scopes": "commands.read"},
        "/admin/webhooks/{webhook_id}": {"url": "https://x.example/", "event_types": "*"},
        "/admin/mcp/{server_id}/tools/{tool_id}": {"risk": "L3", "pin": "0" * 64},
        "/admin/models/{profile}": {"kind": "openai", "model": "gpt-5"},
        "/outside/{server_id}/token": {"token": "abc"},
        "/approvals/{approval_id}/decision": {"verdict": "deny"},
        "/settings/passkeys/{credential_id}": {"label": "x"},
        "/audit/views/{view_id}": {"name": "x"},
        "/calls/{call_id}/resolution": {"finding": "happened"},
        "/admin/agents/{agent_id}/pause": {"paused": "true"},
        "/agents/{agent_id}/schedules": {"instruction": "x", "rule": "weekdays 9:00"},
        "/lanes/{lane_id}/pause": {"paused": "true"},
        "/schedules/{schedule_id}/pause": {"paused": "true"},
        "/tool-calls/{tool_call_id}/resolution": {"finding": "happened"},
        **_of_conversations(acme),
    }.get(path, {})


def _of_conversations(acme: Company) -> dict[str, dict[str, str]]:
    bob = {"aid": acme["bob"].aid or ""}
    of = "/conversations/{conversation_id}"
    look = {"visibility": "private", "join_mode": "open", "mention_mode": "disabled"}
    return {
        "/conversations/invitations/{invite_id}": {"verdict": "accept"},
        f"{of}/invite-codes/revocation": {"code": "x"},
        f"{of}/join-requests": {**bob, "verdict": "accept"},
        f"{of}/members": bob,
        f"{of}/members/removal": bob,
        f"{of}/members/role": {**bob, "role": "admin"},
        f"{of}/messages": {"text": "x", "client_id": "c-1"},
        f"{of}/owner": bob,
        f"{of}/read-position": {"seq": "1"},
        f"{of}/settings": {"name": "x", **look},
    }


def routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Every (method, path) with a parameter, included routers as well."""
    for outer in app.routes:
        inner = getattr(outer, "original_router", None)
        for route in inner.routes if inner else [outer]:
            if "{" in (path := getattr(route, "path", "")):
                for method in sorted(getattr(route, "methods", set()) - {"HEAD"}):
                    yield method, path


def strangers(path: str, others: Others) -> dict[str, str]:
    for prefix, of in PRIVATE.items():
        if path.startswith(prefix):
            return of(others)
    return STRANGERS[parameter(path)](others)


def parameter(path: str) -> str:
    """The first parameter, which names the thing."""
    return str(re.findall(r"{(\w+)", path)[0])


def test_every_route_with_a_parameter_is_in_a_table(world: World) -> None:
    found = {path for _, path in routes(world.app)}
    known = {path for path in found if path in NOBODYS or parameter(path) in STRANGERS}

    assert len(found) > 40, "else this proves nothing"
    assert found - known == set(), "say whose ids it takes, or why they are nobody's"
    assert set(NOBODYS) - found == set(), "these routes are gone"


@pytest.mark.requirement("UI-26", "SEC-T14")
async def test_an_id_of_somebody_else_is_an_unknown_id(world: World) -> None:
    others = Others(world)
    before = db.read_now(snapshot)
    browser = world.client(world.acme["olga"])  # who may everything in her own tenant
    wrong = []
    tried = 0

    for method, path in routes(world.app):
        if path in NOBODYS:
            continue
        unknown = await ask(browser, method, path, ids.ulid(), world.acme)
        if unknown.status_code != 404:
            wrong.append(f"{method} {path}, unknown: {unknown.status_code}")
        for whose, stranger in strangers(path, others).items():
            tried += 1
            answer = await ask(browser, method, path, stranger, world.acme)
            if (answer.status_code, told(answer, stranger)) != (404, told(unknown)):
                wrong.append(f"{method} {path}, {whose}: {answer.status_code}")

    assert tried > 50, "else this proves nothing"
    assert wrong == []
    assert db.read_now(snapshot) == before


@pytest.mark.requirement("SEC-T14")
@pytest.mark.parametrize("odd", ["0", "%00", "..%2f..", "' OR 1=1 --", "🙂", "A" * 500, "null"])
async def test_what_is_no_id_is_an_unknown_id(world: World, odd: str) -> None:
    browser = world.client(world.acme["olga"])
    wrong = []
    for method, path in routes(world.app):
        if path in NOBODYS:
            continue
        answer = await ask(browser, method, path, odd, world.acme)
        if answer.status_code not in {404, 405, 303, 307} or answer.status_code == 500:
            wrong.append(f"{method} {path}: {answer.status_code}")

    assert wrong == []
    assert (await browser.get("/settings")).status_code == 200, "she was signed in all the time"


async def test_ids_in_a_form_are_looked_for_in_reach_as_well(world: World) -> None:
    others = Others(world)
    olga = world.client(world.acme["olga"])
    member = others.role.id if others.role else ""
    own = f"/admin/users/{world.acme['alice'].id}"
    before = db.read_now(snapshot)

    answers = [
        await olga.post(path, data=data)
        for path, data in (
            ("/admin/users", {"display_name": "x", "login": "x", "org_id": world.globex.root.id}),
            (own, {"display_name": "x", "org_id": world.globex.root.id, "version": "1"}),
            (f"{own}/roles", {"role_id": member, "org_id": world.acme.root.id}),
            ("/admin/orgs", {"name": "x", "parent_id": world.globex.root.id}),
            (
                f"/admin/orgs/{world.acme.orgs['sales'].id}/parent",
                {"parent_id": world.globex.root.id},
            ),
            (
                "/admin/agents",
                {"name": "x", "code": "xx", "admin_user_id": world.globex["gina"].id},
            ),
            (
                "/settings/delegations",
                {"agent_id": world.globex.agents["stock"].id, "scopes": "commands.read"},
            ),
        )
    ]

    assert [answer.status_code for answer in answers] == [404] * len(answers)
    assert db.read_now(snapshot) == before


async def ask(
    browser: httpx2.AsyncClient, method: str, path: str, id: str, acme: Company
) -> httpx2.Response:
    address = re.sub(r"{(\w+)}", id, path, count=1).replace("{number}", "1")
    address = address.replace("{message_id}", ids.ulid())
    if path.startswith("/v1/"):
        params = {"userId": acme["alice"].id} if path.endswith("/why") else {}
        body: dict[str, Any] | None = {"input": {}} if method == "POST" else None
        return await browser.request(method, address, params=params, json=body)
    data = fields(path, acme) if method == "POST" else None
    return await browser.request(method, address, data=data)


def told(answer: httpx2.Response, id: str = "·") -> str:
    """What the answer says, without the ids of request and address."""
    text = ADDRESS.sub("·", answer.text)
    return ULID.sub("·", text).replace(f'"{id}"', '"·"')


def snapshot(session: Session) -> dict[str, list[str]]:
    """Every row that could have been changed, and which sessions are over."""
    rows = {
        str(model.__tablename__): sorted(
            row.model_dump_json(exclude={"search", "sealed", "old_sealed"})
            for row in session.exec(select(model)).all()
        )
        for model in UNCHANGED
    }
    ended = session.exec(select(BrowserSession)).all()
    rows["ended"] = sorted(row.id for row in ended if row.revoked_at)
    return rows


def _call(work: Work, who: Principal) -> str:
    given = {"title": "Theirs", "period": "2026-10"}
    return pipeline.perform(
        work, Call(code="expense.report.create", input=given, principal=who)
    ).call_id


def _approval(work: Work, gus: Principal) -> str:
    given = {"title": "Theirs", "period": "2026-10"}
    made = pipeline.perform(work, Call(code="expense.report.create", input=given, principal=gus))
    return every_route.an_approval(work, gus, made)


def _client(work: Work, gina: Principal) -> str:
    client, _ = clients.create(
        work,
        gina,
        name="Theirs",
        redirect_uris=["https://theirs.example/cb"],
        auth_method=AuthMethod.CLIENT_SECRET_BASIC,
    )
    return client.id


def _command(work: Work, tenant_id: str) -> None:
    query = select(CommandVersion).where(
        CommandVersion.tenant_id == tenant_id, CommandVersion.code == "expense.report.get"
    )
    row = work.session.exec(query).one()
    told = {**row.definition, "code": THEIRS}
    copied = {**row.model_dump(), "id": ids.ulid(), "code": THEIRS, "definition": told}
    work.session.add(CommandVersion(**copied))


def _removed_role(work: Work, olga: Principal) -> str:
    role = roles.create(work, olga, tenant_id=olga.tenant_id, code="gone", name="Gone", grants={})
    roles.remove(work, olga, role)
    return role.id


def _credentials(work: Work, whose: tuple[User, User]) -> dict[str, str]:
    made = {}
    for name, user in zip(("other tenant", "other user"), whose, strict=True):
        row = Credential(
            tenant_id=user.tenant_id,
            id=ids.ulid(),
            user_id=user.id,
            kind=CredentialKind.PASSKEY,
            passkey_id=f"key-of-{user.login}",
            public_key=b"key",
            label="Key",
            created_at=clock.now(),
        )
        work.session.add(row)
        made[name] = row.id
    return made


def _logins(work: Work, whose: tuple[User, User]) -> dict[str, str]:
    made = {}
    for name, user in zip(("other tenant", "other user"), whose, strict=True):
        row = ExternalLogin(
            tenant_id=user.tenant_id,
            id=ids.ulid(),
            user_id=user.id,
            provider="idp",
            issuer="https://idp.example",
            subject=user.login,
            linked_at=clock.now(),
        )
        work.session.add(row)
        made[name] = row.id
    return made


def _views(work: Work, gina: Principal, alice: Principal) -> dict[str, str]:
    return {
        "other tenant": views.add(work, gina, "Theirs", "risk=L4").id,
        "other user": views.add(work, alice, "Hers", "risk=L4").id,
    }


def _entries(work: Work, globex: Company) -> int:
    """The number of an entry of theirs: ours do not reach so far."""
    made = 0
    for _ in range(500):
        entry = NewEntry(
            tenant_id=globex.id,
            call_id=ids.ulid(),
            command="identity.theirs",
            outcome="done",
            channel="process",
        )
        made = trail.append(work, entry)
    return made
