"""Every page of the product, with an address in the demo workspace: for axe, and for screenshots.

`WALKS` has a line for each GET route of the console; a page added later is covered there, or the
test that compares the two lists fails.
"""

import base64
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi.routing import APIRoute
from starlette.requests import Request

from app import main
from app.console import signed_in
from tests.server import RunningServer

OWNER, EMPLOYEE, NOBODY = "owen", "alice", ""
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(b"x" * 43).digest()).rstrip(b"=").decode()


@dataclass
class Demo:
    """A running demo workspace, and where to look up what is in it."""

    server: RunningServer
    credentials: Path

    def password(self, login: str) -> str:
        """The password of one of the people who have one."""
        people = json.loads(self.credentials.read_text(encoding="utf-8"))["users"]
        return next(str(one["password"]) for one in people if one["username"] == login)

    def one(self, query: str, *values: str) -> str:
        """The first column of the first row of a query."""
        found = self.rows(query, *values)
        assert found, query
        return str(found[0][0])

    def rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        """Every row of a query."""
        path = self.server.data / "assent.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(query, values).fetchall()

    def user(self, login: str = "alice") -> str:
        """The id of a person."""
        return self.one("SELECT id FROM user WHERE login = ?", login)

    def link(self, name: str) -> str:
        """The path of a one-time link for somebody."""
        printed = self.server.command("reset-link", name).strip()
        return printed.removeprefix(self.server.base_url)

    def authorization(self) -> str:
        """The address at which an application asks alice for access."""
        client = self.one("SELECT id FROM oauth_client WHERE source = 'registered'")
        uris = json.loads(self.one("SELECT redirect_uris FROM oauth_client WHERE id = ?", client))
        query = {
            "response_type": "code",
            "client_id": client,
            "redirect_uri": uris[0],
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "scope": "catalog.read commands.read commands.invoke offline_access",
            "state": "s",
        }
        return "/oauth/authorize?" + urlencode(query)


@dataclass(frozen=True, slots=True)
class Walk:
    """How to reach a page, and as whom. `status` is what it answers with."""

    name: str
    to: Callable[[Demo], str]
    who: str = OWNER
    status: int = 200


def _at(path: str) -> Callable[[Demo], str]:
    return lambda _demo: path


def _user(then: str = "", login: str = "alice") -> Callable[[Demo], str]:
    return lambda demo: f"/admin/users/{demo.user(login)}{then}"


def _first(table: str, before: str, then: str = "", where: str = "1") -> Callable[[Demo], str]:
    tenant = "tenant_id = (SELECT id FROM tenant WHERE slug = 'acme')"
    query = f'SELECT id FROM "{table}" WHERE {tenant} AND {where} ORDER BY id LIMIT 1'  # noqa: S608
    return lambda demo: f"{before}/{demo.one(query)}{then}"


def _org(then: str = "") -> Callable[[Demo], str]:
    return _first("org", "/admin/orgs", then, "parent_id IS NOT NULL")


def _role(then: str = "", where: str = "NOT builtin") -> Callable[[Demo], str]:
    return _first("role", "/admin/roles", then, where)


def _agent(then: str = "") -> Callable[[Demo], str]:
    return _first("agent", "/admin/agents", then, "kind = 'hosted'")


def _client(then: str = "") -> Callable[[Demo], str]:
    query = "SELECT id FROM oauth_client WHERE source = 'registered' ORDER BY id"
    return lambda demo: f"/admin/clients/{demo.one(query)}{then}"


def _disabled(then: str) -> Callable[[Demo], str]:
    return _first("user", "/admin/users", then, "status = 'disabled'")


def _delegation_of(login: str, then: str = "") -> Callable[[Demo], str]:
    query = "SELECT id FROM delegation WHERE revoked_at IS NULL AND user_id = ? ORDER BY id"
    return lambda demo: f"/settings/delegations/{demo.one(query, demo.user(login))}{then}"


def _talk(kind: str, order: str = "last_seq", then: str = "") -> Callable[[Demo], str]:
    query = (
        "SELECT c.id FROM conversation c JOIN conversation_participant p "  # noqa: S608 - ours
        "ON p.conversation_id = c.id JOIN user u ON u.aid = p.aid AND u.tenant_id = c.tenant_id "
        f"WHERE u.login = ? AND c.kind = ? ORDER BY c.{order}"
    )
    return lambda demo: f"/conversations/{demo.one(query, EMPLOYEE, kind)}{then}"


def _begin(demo: Demo) -> str:
    aid = demo.one("SELECT aid FROM user WHERE login = ?", "frank")
    return f"/conversations/new?to={aid}"


def _offer(demo: Demo) -> str:
    tenant = "SELECT tenant_id FROM user WHERE login = ?"
    query = f"SELECT id FROM agent WHERE kind = 'hosted' AND tenant_id = ({tenant}) ORDER BY id"  # noqa: S608
    return f"/settings/delegations/new?agent={demo.one(query, OWNER)}"


def _unassign(demo: Demo) -> str:
    user = demo.user()
    role, org = (
        demo.one(f"SELECT {column} FROM role_assignment WHERE user_id = ? ORDER BY role_id", user)  # noqa: S608
        for column in ("role_id", "org_id")
    )
    return f"/admin/users/{user}/roles/removal?{urlencode({'role': role, 'org': org})}"


WALKS: dict[str, tuple[Walk, ...]] = {
    "/": (),  # leads to /welcome
    "/admin": (Walk("admin", _at("/admin")),),
    "/admin/agents": (
        Walk("agents", _at("/admin/agents")),
        Walk("agents-none", _at("/admin/agents?q=nobody-has-this-name")),
    ),
    "/admin/agents/new": (Walk("agent-new", _at("/admin/agents/new")),),
    "/admin/agents/{agent_id}": (Walk("agent", _agent()),),
    "/admin/agents/{agent_id}/activation": (),  # of a disabled one: tests/console
    "/admin/agents/{agent_id}/deactivation": (Walk("agent-disable", _agent("/deactivation")),),
    "/admin/agents/{agent_id}/edit": (Walk("agent-edit", _agent("/edit")),),
    "/admin/agents/{agent_id}/releases": (Walk("agent-publish", _agent("/releases")),),
    "/admin/agents/{agent_id}/releases/{number}": (Walk("agent-release", _agent("/releases/1")),),
    "/admin/aun": (
        Walk("outside-clients", _at("/admin/aun")),
        Walk("outside-clients-none", _at("/admin/aun?q=nobody-has-this-name")),
    ),
    "/admin/aun/contacts/{aid}": (),  # of one that registered: e2e/test_connect.py
    "/admin/aun/contacts/{aid}/block": (),  # likewise
    "/admin/clients": (Walk("clients", _at("/admin/clients")),),
    "/admin/clients/new": (Walk("client-new", _at("/admin/clients/new")),),
    "/admin/clients/{client_id}": (Walk("client", _client()),),
    "/admin/clients/{client_id}/block": (Walk("client-block", _client("/block")),),
    "/admin/clients/{client_id}/edit": (Walk("client-edit", _client("/edit")),),
    "/admin/clients/{client_id}/secret": (),  # of a confidential one: e2e/test_admin.py
    "/admin/commands": (
        Walk("command-versions", _at("/admin/commands")),
        Walk("command-versions-none", _at("/admin/commands?q=nobody-has-this-name&state=draft")),
    ),
    "/admin/commands/{code}": (
        Walk("command-version", _at("/admin/commands/expense.report.submit")),
    ),
    "/admin/commands/{code}/draft": (
        Walk("command-draft", _at("/admin/commands/expense.report.submit/draft")),
    ),
    "/admin/commands/{code}/draft/removal": (
        Walk("command-discard", _at("/admin/commands/expense.report.submit/draft/removal")),
    ),
    "/admin/commands/{code}/publication": (),  # of a draft: e2e/test_admin_commands.py
    "/admin/commands/{code}/restoration": (
        Walk("command-restore", _at("/admin/commands/expense.report.submit/restoration")),
    ),
    "/admin/commands/{code}/retirement": (
        Walk("command-retire", _at("/admin/commands/expense.report.submit/retirement")),
    ),
    "/admin/commands/{code}/versions/{number}": (
        Walk("command-one-version", _at("/admin/commands/expense.report.submit/versions/1?with=1")),
    ),
    "/admin/delegations": (Walk("delegations", _at("/admin/delegations")),),
    "/admin/delegations/{delegation_id}/revocation": (
        Walk("delegation-revoke", _first("delegation", "/admin/delegations", "/revocation")),
    ),
    "/admin/features": (Walk("features", _at("/admin/features")),),
    "/admin/features/{code}/entitlement": (),  # no pack declares a feature yet
    "/admin/orgs": (Walk("orgs", _at("/admin/orgs")),),
    "/admin/orgs/new": (Walk("org-new", _at("/admin/orgs/new")),),
    "/admin/orgs/{org_id}": (Walk("org", _org()),),
    "/admin/orgs/{org_id}/closure": (Walk("org-close", _org("/closure")),),
    "/admin/orgs/{org_id}/name": (Walk("org-rename", _org("/name")),),
    "/admin/orgs/{org_id}/parent": (Walk("org-move", _org("/parent")),),
    "/admin/permissions": (Walk("permissions", _at("/admin/permissions")),),
    "/admin/roles": (Walk("roles", _at("/admin/roles")),),
    "/admin/roles/new": (Walk("role-new", _at("/admin/roles/new")),),
    "/admin/roles/{role_id}": (
        Walk("role", _role()),
        Walk("role-shipped", _role(where="builtin")),
    ),
    "/admin/roles/{role_id}/edit": (Walk("role-edit", _role("/edit")),),
    "/admin/roles/{role_id}/removal": (Walk("role-remove", _role("/removal")),),
    "/admin/users": (
        Walk("users", _at("/admin/users")),
        Walk("users-none", _at("/admin/users?q=nobody-has-this-name&status=active")),
        Walk("users-forbidden", _at("/admin/roles"), EMPLOYEE, 403),
        Walk("users-unknown", _at("/admin/users/01ARZ3NDEKTSV4RRFFQ69G5FAV"), OWNER, 404),
    ),
    "/admin/users/new": (Walk("user-new", _at("/admin/users/new")),),
    "/admin/users/{user_id}": (Walk("user", _user()),),
    "/admin/users/{user_id}/activation": (Walk("user-enable", _disabled("/activation")),),
    "/admin/users/{user_id}/deactivation": (Walk("user-disable", _user("/deactivation")),),
    "/admin/users/{user_id}/edit": (Walk("user-edit", _user("/edit")),),
    "/admin/users/{user_id}/explain": (
        Walk("explain", _user("/explain")),
        Walk("explain-answer", _user("/explain?permission=identity.user.manage")),
    ),
    "/admin/users/{user_id}/link": (Walk("user-link", _user("/link")),),
    "/admin/users/{user_id}/roles/new": (Walk("user-assign", _user("/roles/new")),),
    "/admin/users/{user_id}/roles/removal": (Walk("user-unassign", _unassign),),
    "/admin/users/{user_id}/sign-out": (Walk("user-sign-out", _user("/sign-out")),),
    "/approvals": (
        Walk("approvals", _at("/approvals")),
        Walk("approvals-decided", _at("/approvals?state=decided")),
        Walk("approvals-none", _at("/approvals?state=requested&risk=L4"), EMPLOYEE),
    ),
    "/approvals/{approval_id}": (
        Walk("approval", _first("approval", "/approvals", "")),
        Walk("approval-unknown", _at("/approvals/01ARZ3NDEKTSV4RRFFQ69G5FAV"), EMPLOYEE, 404),
    ),
    "/approvals/{approval_id}/replacement": (),  # of an open one: e2e/test_approvals.py
    "/audit": (
        Walk("audit", _at("/audit")),
        Walk("audit-filtered", _at("/audit?outcome=refused&channel=console&command=identity.")),
        Walk("audit-none", _at("/audit?user=nobody-has-this-name&risk=L4&irreversible=yes")),
        Walk("audit-employee", _at("/audit"), EMPLOYEE),
    ),
    "/audit.csv": (),  # a file: e2e/test_audit.py
    "/audit.jsonl": (),  # likewise
    "/audit/views": (Walk("audit-views-none", _at("/audit/views")),),
    "/audit/views/{view_id}": (),  # of one's own: e2e/test_audit.py
    "/audit/{seq}": (
        Walk("audit-entry", _at("/audit/5")),
        Walk("audit-entry-unknown", _at("/audit/999999"), OWNER, 404),
    ),
    "/agents": (
        Walk("agents-people", _at("/agents"), EMPLOYEE),
        Walk("agents-people-none", _at("/agents?q=nobody-has-this-name"), EMPLOYEE),
    ),
    "/agents/{agent_id}": (
        Walk("agent-profile", _first("agent", "/agents", "", "kind = 'hosted'"), EMPLOYEE),
        Walk("agent-profile-unknown", _at("/agents/01ARZ3NDEKTSV4RRFFQ69G5FAV"), EMPLOYEE, 404),
    ),
    "/agents/{agent_id}/runs": (
        Walk("agent-runs", _first("agent", "/agents", "/runs", "kind = 'hosted'"), EMPLOYEE),
    ),
    "/calls/{call_id}/resolution": (),  # of an effect of which nobody knows: e2e/test_webhooks.py
    "/commands": (
        Walk("commands", _at("/commands")),
        Walk("commands-employee", _at("/commands?risk=L2&approval=true"), EMPLOYEE),
        Walk("commands-none", _at("/commands?q=nobody-has-this-name"), EMPLOYEE),
    ),
    "/commands/{code}": (
        Walk("command", _at("/commands/expense.line.add"), EMPLOYEE),
        Walk("command-reading", _at("/commands/expense.report.list"), EMPLOYEE),
        Walk("command-critical", _at("/commands/inventory.period.close")),
        Walk("command-unknown", _at("/commands/nobody.has.this"), OWNER, 404),
    ),
    "/commands/{code}/calls/{call_id}": (),  # of one's own: e2e/test_commands.py
    "/commands/{code}/why": (
        Walk("command-why", _at("/commands/expense.payment.send/why")),
        Walk(
            "command-why-answer",
            lambda demo: f"/commands/expense.payment.send/why?user={demo.user()}",
        ),
        Walk("command-why-forbidden", _at("/commands/expense.line.add/why"), EMPLOYEE, 403),
    ),
    "/lanes/{lane_id}/reset": (),  # of an agent that works for somebody: e2e/test_runs.py
    "/runs/{run_id}": (),  # likewise
    "/schedules/{schedule_id}/removal": (),  # likewise
    "/admin/models": (Walk("models", _at("/admin/models")),),
    "/admin/models/new": (Walk("model-new", _at("/admin/models/new")),),
    "/admin/models/{profile}": (Walk("model", _at("/admin/models/default")),),
    "/admin/models/{profile}/edit": (),  # of one that was added: e2e/test_admin.py
    "/admin/models/{profile}/removal": (),  # likewise
    "/admin/mcp": (Walk("outside-servers", _at("/admin/mcp")),),
    "/admin/mcp/new": (Walk("outside-server-new", _at("/admin/mcp/new")),),
    "/admin/mcp/{server_id}": (),  # with a server that listens: e2e/test_outside.py
    "/admin/mcp/{server_id}/removal": (),  # likewise
    "/admin/mcp/{server_id}/tools/{tool_id}": (),  # likewise
    "/outside": (Walk("linked-servers", _at("/outside"), EMPLOYEE),),
    "/outside/callback": (),  # where a server sends people back to
    "/outside/{server_id}/token": (),  # with a server that asks for one: e2e/test_outside.py
    "/admin/webhooks": (Walk("webhooks", _at("/admin/webhooks")),),
    "/admin/webhooks/new": (Walk("webhook-new", _at("/admin/webhooks/new")),),
    "/admin/webhooks/{webhook_id}": (),  # with a receiver that listens: e2e/test_webhooks.py
    "/admin/webhooks/{webhook_id}/edit": (),  # likewise
    "/admin/webhooks/{webhook_id}/removal": (),  # likewise
    "/admin/webhooks/{webhook_id}/secret": (),  # likewise
    "/connect": (Walk("connect", _at("/connect"), EMPLOYEE),),
    "/connect/applications/{family_id}/removal": (),  # of one that has access: e2e/test_connect.py
    "/connect/confirmation": (
        Walk("connect-over", _at("/connect/confirmation"), EMPLOYEE, 409),
    ),  # of a proved one: e2e/test_connect.py
    "/connect/links/{aid}/removal": (),  # of a linked one: e2e/test_connect.py
    "/conversations": (
        Walk("conversations", _at("/conversations"), EMPLOYEE),
        Walk("conversations-none", _at("/conversations")),
    ),
    "/conversations/new": (
        Walk("conversation-new", _at("/conversations/new"), EMPLOYEE),
        Walk("conversation-new-none", _at("/conversations/new?q=nobody-has-this-name")),
        Walk("conversation-begin", _begin),
    ),
    "/conversations/new/group": (Walk("group-new", _at("/conversations/new/group"), EMPLOYEE),),
    "/conversations/{conversation_id}": (
        Walk("conversation", _talk("direct"), EMPLOYEE),
        Walk("conversation-offered", _talk("direct", "last_seq DESC"), EMPLOYEE),
        Walk("conversation-group", _talk("group"), EMPLOYEE),
        Walk("conversation-unknown", _talk("group"), OWNER, 404),
    ),
    "/conversations/{conversation_id}/connection": (),  # leads back: tests/console
    "/conversations/{conversation_id}/messages/{message_id}/source": (),  # plain text
    "/conversations/{conversation_id}/departure": (
        Walk("group-leave", _talk("group", then="/departure"), EMPLOYEE),
    ),
    "/conversations/{conversation_id}/dissolution": (
        Walk("group-dissolve", _talk("group", then="/dissolution"), EMPLOYEE),
    ),
    "/conversations/{conversation_id}/members": (
        Walk("group-members", _talk("group", then="/members"), EMPLOYEE),
    ),
    "/conversations/{conversation_id}/settings": (
        Walk("group-settings-member", _talk("group", then="/settings"), EMPLOYEE),
    ),
    "/docs": (),  # drawn by Swagger UI: e2e/test_docs.py
    "/invite/{secret}": (Walk("link-gone", _at("/invite/nothing"), NOBODY, 404),),
    "/live/regions": (),  # fragments: tests/console/test_live.py
    "/live/stream": (),  # likewise
    "/oauth/authorize": (
        Walk("consent", Demo.authorization, EMPLOYEE),
        Walk("consent-bad", _at("/oauth/authorize?client_id=nobody"), EMPLOYEE, 400),
    ),
    "/oauth/device": (Walk("device", _at("/oauth/device"), EMPLOYEE),),
    "/reset/{secret}": (Walk("reset", lambda demo: demo.link("acme/frank"), NOBODY),),
    "/settings": (Walk("settings", _at("/settings")),),
    "/settings/delegations": (
        Walk("my-delegations", _at("/settings/delegations"), EMPLOYEE),
        Walk("my-delegations-none", _at("/settings/delegations")),
    ),
    "/settings/delegations/new": (Walk("my-delegation-new", _offer),),
    "/settings/delegations/{delegation_id}": (
        Walk("my-delegation", _delegation_of(EMPLOYEE), EMPLOYEE),
    ),
    "/settings/delegations/{delegation_id}/revocation": (
        Walk("my-delegation-revoke", _delegation_of(EMPLOYEE, "/revocation"), EMPLOYEE),
    ),
    "/settings/logins/{login_id}/removal": (),  # with a provider: e2e/test_settings.py
    "/settings/passkeys/new": (Walk("passkey-new", _at("/settings/passkeys/new")),),
    "/settings/passkeys/{credential_id}": (),  # with an authenticator: e2e/test_passkeys.py
    "/settings/password": (Walk("password", _at("/settings/password")),),
    "/settings/security": (Walk("security", _at("/settings/security")),),
    "/settings/sessions": (Walk("sessions", _at("/settings/sessions")),),
    "/setup/{secret}": (Walk("setup-gone", _at("/setup/nothing"), NOBODY, 404),),
    "/sign-in": (
        Walk("sign-in", _at("/sign-in"), NOBODY),
        Walk("nowhere", _at("/nowhere"), NOBODY, 404),
    ),
    "/sign-in/{provider}": (Walk("provider-unknown", _at("/sign-in/nobody"), NOBODY, 404),),
    "/sign-in/{provider}/callback": (
        Walk("callback-bad", _at("/sign-in/nobody/callback?state=x&code=y"), NOBODY, 404),
    ),
    "/step-up": (),  # for those who have to: e2e/test_sign_in.py
    "/step-up/done": (Walk("step-up-done", _at("/step-up/done")),),
    "/step-up/{provider}": (Walk("step-up-unknown", _at("/step-up/nobody"), OWNER, 404),),
    "/welcome": (
        Walk("welcome", _at("/welcome")),
        Walk("welcome-employee", _at("/welcome"), EMPLOYEE),
    ),
}


def page_routes() -> set[str]:
    """The templates of the paths of every page."""
    return {
        route.path
        for router in main.routers()
        for route in router.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and _is_page(route.path)
    }


def walks() -> Iterator[Walk]:
    """Every page, each way it can look."""
    for each in WALKS.values():
        yield from each


def _is_page(path: str) -> bool:
    scope = {"type": "http", "path": path, "headers": [], "query_string": b"", "server": ("h", 1)}
    return signed_in.is_page(Request({**scope, "scheme": "http", "method": "GET"}))
