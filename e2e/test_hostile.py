"""Hostile pages around ours, and hostile names in them: nothing of either is ever live."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Request
from sqlmodel import select

from app.identity import agents, delegations, orgs, roles, users
from app.identity.models import (
    AuthMethod,
    BrowserSession,
    Credential,
    CredentialKind,
    OAuthClient,
    Tenant,
    User,
)
from app.identity.principal import Scope
from app.kernel import clock, db, ids
from app.kernel.db import Work
from e2e import every_page
from e2e.conftest import Watch
from e2e.doors import Doors, demo_in
from e2e.every_page import CHALLENGE, EMPLOYEE, NOBODY, OWNER, Demo
from e2e.payloads import payloads

CALLBACK = "http://127.0.0.1/callback"
REFUSED = "chrome-error://chromewebdata/"
IN_A_QUERY = 450  # characters of payloads in one search


class Canary:
    """A server of the attacker's: what it was asked for, and the pages it serves."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://localhost:{port}"  # same site as ours, so that cookies travel
        self.asked: list[str] = []
        self.pages: dict[str, str] = {"/bait": "<h1>bait</h1>"}

    def page(self, path: str, html: str) -> str:
        """The address of a page of the attacker's."""
        self.pages[path] = html
        return self.origin + path


@contextmanager
def listening() -> Iterator[Canary]:
    """The attacker's server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            html = ours.pages.get(self.path)
            if html is None:
                ours.asked.append(self.path)
            self.send_response(200 if html else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write((html or "").encode())

        do_POST = do_PUT = do_GET  # noqa: N815 - the library's names

        def log_message(self, *_args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ours = Canary(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield ours
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    with listening() as made:
        yield made


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    many = "100000/minute"  # a browser is faster than any person
    with demo_in(tmp_path_factory.mktemp("hostile"), ASSENT_RATE_SESSIONS=many) as made:
        yield made


@pytest.fixture(scope="module")
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    await made.state_of(OWNER)
    await made.state_of(EMPLOYEE)
    yield made
    await made.close()


@pytest.mark.requirement("SEC-T11", "SEC-44", "SEC-45")
@pytest.mark.parametrize("who", [OWNER, EMPLOYEE, NOBODY], ids=["owner", "employee", "nobody"])
async def test_no_page_can_be_framed(demo: Demo, doors: Doors, canary: Canary, who: str) -> None:
    addresses = [walk.to(demo) for walk in every_page.walks() if walk.who == who]
    addresses += ["/nowhere", "/admin/users/nobody", "/v1/me", "/oauth/jwks", "/healthz", "/look"]
    addresses += [
        "/v1/nowhere",
        "/sign-in?next=%00",
        "/admin/users?sort=evil",
        "/%ff",
        "/oauth/token",
    ]
    ours = demo.server.base_url
    frames = "".join(
        f'<iframe src="{ours}{path}"></iframe>'.replace("&", "&amp;") for path in addresses
    )
    trap = canary.page(f"/trap-{who}", f"<!doctype html><iframe src=/bait></iframe>{frames}")

    page = await doors.page(who, "light", "en", 1280)
    await page.goto(trap, wait_until="load")
    shown = [frame.url for frame in page.frames[1:]]
    await page.close()

    assert shown[0] == f"{canary.origin}/bait", "the trap itself works"
    assert len(shown) == len(addresses) + 1
    assert [url for url in shown[1:] if url != REFUSED] == []


@pytest.mark.requirement("SEC-T19", "SEC-T20", "SEC-52", "SEC-44")
async def test_no_name_of_anybodys_is_live_anywhere(
    demo: Demo, doors: Doors, canary: Canary, quiet: Watch
) -> None:
    texts = payloads(canary.origin)
    assert len(texts) >= 300
    plant(demo, texts)
    watch = Trap(canary, demo)
    page = await doors.page(OWNER, "light", "en", 1280)
    for context in doors.contexts.values():
        watch.over(context)
        quiet.over(context)
    quiet.tolerate("the server responded with a status of")

    for address in lists(demo):
        while address:
            await watch.visit(page, address)
            following = page.locator('a[rel="next"]')
            address = (
                await following.first.get_attribute("href") or "" if await following.count() else ""
            )
    for address in details(demo):
        await watch.visit(page, address)
    for address in searches(texts):
        await watch.visit(page, address)
    for address in consents(demo):
        employee = await doors.page(EMPLOYEE, "light", "en", 1280)
        watch.over(employee.context)
        await watch.visit(employee, address)
        await employee.close()
    await typed(watch, page, texts)

    missing = watch.never_shown(texts)
    assert missing == [], "each of them stood on a page, as text"
    assert watch.found == []
    assert canary.asked == []
    assert len(watch.visited) > 80


class Trap:
    """Looks on while pages are visited: what ran, what was fetched, what came alive."""

    def __init__(self, canary: Canary, demo: Demo) -> None:
        self.canary, self.origin = canary, demo.server.base_url
        self.found: list[str] = []
        self.visited: list[str] = []
        self.said = ""
        self._contexts: set[int] = set()

    def over(self, context: BrowserContext) -> None:
        """Watch every page of `context`, once."""
        if id(context) not in self._contexts:
            self._contexts.add(id(context))
            context.on("request", self._request)
            context.on("dialog", lambda dialog: self.found.append(f"dialog: {dialog.message}"))

    async def visit(self, page: Page, address: str) -> None:
        """Open a page and look at all of it."""
        answer = await page.goto(address, wait_until="load")
        assert answer is not None
        assert answer.status != 429, "else the page itself is not seen"
        self.visited.append(address)
        await self.look(page, (await answer.body()).decode())

    async def look(self, page: Page, html: str) -> None:
        """Whether anything of the page is alive that we did not write."""
        if "<hx-" in html.lower():
            self.found.append(f"{page.url}: <hx-")
        ran = await page.evaluate("String(window.pwned)")
        if ran != "undefined":
            self.found.append(f"{page.url}: payload {ran} ran")
        alive = await page.evaluate(ALIVE, self.canary.origin)
        self.found += [f"{page.url}: {each}" for each in alive]
        self.said += await page.evaluate(
            "document.body.textContent + [...document.querySelectorAll('input,textarea')]"
            ".map(field => field.value).join('\\n')"
        )

    def never_shown(self, texts: list[str]) -> list[str]:
        """Those that no page showed, apart from white space and invisible marks."""
        said = squeezed(self.said)
        return [text for text in texts if text not in self.said and squeezed(text) not in said]

    def _request(self, request: Request) -> None:
        if not request.url.startswith(self.origin):
            self.found.append(f"request: {request.url}")
        elif request.resource_type in {"image", "media"} and "/static/" not in request.url:
            self.found.append(f"fetched: {request.url}")


ALIVE = """canary => [...document.querySelectorAll('*')].flatMap(element => {
    const found = [];
    for (const {name, value} of element.attributes) {
        const isText = ['value', 'title', 'aria-label', 'data-label', 'content'].includes(name);
        if (/^on|^style$|^srcdoc$/i.test(name)) found.push(`${element.tagName} ${name}`);
        if (!isText && (value.includes('pwned') || value.startsWith(canary))
            && !/^(href|action|hx-get|hx-post)$/.test(name)) found.push(`${name}=${value}`);
        if (/^(href|src|action|formaction|hx-\\w+|data-hx-\\w+)$/.test(name)
            && (/^\\s*(javascript|data|vbscript):/i.test(value) || value.startsWith(canary)))
            found.push(`${element.tagName} ${name}=${value}`);
    }
    const strange = ['BASE', 'IFRAME', 'OBJECT', 'EMBED', 'MARQUEE', 'AUDIO', 'VIDEO', 'XSS',
                     'PORTAL', 'STYLE', 'FOREIGNOBJECT', 'PLAINTEXT', 'XMP', 'MATH', 'HX-PARTIAL'];
    if (strange.includes(element.tagName.toUpperCase())) found.push(element.tagName);
    if (element.tagName === 'SCRIPT' && !element.src.startsWith(location.origin + '/static/'))
        found.push('a script of ' + (element.src || 'the page'));
    return found;
})"""


def squeezed(text: str) -> str:
    """Letters, digits and ASCII marks only."""
    return "".join(char for char in text if "!" <= char <= "~")


def plant(demo: Demo, texts: list[str]) -> None:
    """Each text as the name of everything that has one, straight into the database."""
    db.open(f"sqlite:///{demo.server.data / 'assent.db'}")
    try:
        db.transact_now(_plant, texts)
    finally:
        db.close()


def _plant(work: Work, texts: list[str]) -> None:
    session = work.session
    tenant = session.exec(select(Tenant).where(Tenant.slug == "acme")).one()
    owner = users.by_login(session, tenant.id, OWNER)
    assert owner is not None
    root, now = orgs.root(session, tenant.id), clock.now()
    for number, text in enumerate(texts):
        person = users.create(
            work, None, root, login=f"x{number:03}", display_name=text, email=f"{text}@x.example"
        )
        orgs.create(work, None, root, text)
        roles.create(work, None, tenant_id=tenant.id, code=f"x{number:03}", name=text, grants={})
        content = {"instructions": text}
        agent = agents.create(
            work, None, owner, code=f"x{number:03}", name=text, description=text, content=content
        )
        agents.publish(work, None, agent)
        delegations.make_for(work, person, agent, [Scope.COMMANDS_READ])
        session.add(
            OAuthClient(
                id=f"client-{number:03}",
                source="registered",
                name=text,
                redirect_uris=[CALLBACK],
                grant_types=["authorization_code"],
                auth_method=AuthMethod.NONE,
                owner_tenant_id=tenant.id,
                created_at=now,
            )
        )
        session.add(
            Credential(
                tenant_id=tenant.id,
                id=ids.ulid(),
                user_id=owner.id,
                kind=CredentialKind.PASSKEY,
                passkey_id=f"x{number}",
                public_key=b"x",
                label=text,
                created_at=now,
            )
        )
        session.add(_session_of(owner, text, number))
        if number < 40:
            delegations.make_for(work, owner, agent, [Scope.COMMANDS_READ])


def _session_of(owner: User, device: str, number: int) -> BrowserSession:
    now = clock.now()
    return BrowserSession(
        tenant_id=owner.tenant_id,
        id=ids.ulid(),
        user_id=owner.id,
        secret_sha256=f"x{number}",
        auth_time=now,
        amr=[device],
        authz_epoch=owner.authz_epoch,
        created_at=now,
        last_seen_at=now,
        idle_until=now + timedelta(hours=5),
        ends_at=now + timedelta(hours=5),
        device=device[:100],
        ip_prefix=device[:50],
    )


def lists(demo: Demo) -> list[str]:
    """Lists that show them, each with as many pages as it has."""
    return [
        "/admin/users",
        "/admin/agents",
        "/admin/delegations",
        "/admin/clients",
        "/admin/orgs",
        "/admin/roles",
        "/settings/security",
        "/settings/sessions",
        "/settings/delegations",
        "/admin/users/new",
        f"/admin/users/{demo.user(OWNER)}",
        f"/admin/users/{demo.user(OWNER)}/roles/new",
        f"/admin/users/{demo.user(OWNER)}/explain",
        f"/admin/users/{demo.user(OWNER)}/sign-out",
        f"/admin/users/{demo.user(OWNER)}/deactivation",
    ]


def details(demo: Demo) -> list[str]:
    """Pages of single things, of a few of each."""
    found = []
    for number in range(0, 357, 60):
        code = f"x{number:03}"
        user = demo.user(code)
        agent = demo.one("SELECT id FROM agent WHERE code = ?", code)
        role = demo.one("SELECT id FROM role WHERE code = ?", code)
        found += [f"/admin/users/{user}{then}" for then in ("", "/edit", "/link", "/deactivation")]
        found += [
            f"/admin/agents/{agent}{then}" for then in ("", "/edit", "/releases", "/releases/1")
        ]
        found += [f"/admin/roles/{role}{then}" for then in ("", "/edit", "/removal")]
        found += [f"/admin/roles/new?copy={role}", f"/admin/clients/client-{number:03}"]
        found += [f"/admin/clients/client-{number:03}/block"]
        org = demo.one("SELECT id FROM org WHERE name = (SELECT name FROM role WHERE id = ?)", role)
        found += [f"/admin/orgs/{org}{then}" for then in ("", "/name", "/parent", "/closure")]
        found += [f"/admin/users?org={org}", f"/admin/users?role={role}"]
        found += [f"/admin/delegations?user={user}", f"/admin/delegations?agent={agent}"]
    return found


def searches(texts: list[str]) -> list[str]:
    """All texts as search terms, several at a time, on each page that takes one."""
    found: list[str] = []
    gathered = ""
    pages = ("/admin/users?q=", "/admin/agents?q=", "/admin/delegations?q=", "/admin/clients?q=")
    for text in [*texts, "x" * IN_A_QUERY]:
        if len(gathered) + len(text) + 1 > IN_A_QUERY:
            found.append(pages[len(found) % len(pages)] + quote(gathered))
            gathered = ""
        gathered += f" {text}"
    for text in texts[::40]:
        found += [f"/sign-in/{quote(text, safe='')}", f"/{quote(text, safe='')}"]
        found += [f"/oauth/device?user_code={quote(text)}", f"/admin/orgs/new?below={quote(text)}"]
        found += [f"/admin/users?sort={quote(text)}", f"/setup/{quote(text, safe='')}"]
    return found


def consents(demo: Demo) -> list[str]:
    """Requests of applications with such names, with such states."""
    return [
        "/oauth/authorize?"
        + urlencode(
            {
                "response_type": "code",
                "client_id": f"client-{number:03}",
                "redirect_uri": CALLBACK,
                "code_challenge": CHALLENGE,
                "code_challenge_method": "S256",
                "scope": "catalog.read",
                "state": f"<script>window.pwned={number}</script>",
            }
        )
        for number in range(0, 357, 45)
    ]


async def typed(watch: Trap, page: Page, texts: list[str]) -> None:
    """What was typed wrongly comes back in its field, as text."""
    for text in texts[::50]:
        await page.goto("/admin/users/new")
        await page.locator("input[name=display_name]").fill(text)
        await page.locator("input[name=login]").fill(f"a/b {text}"[:100])
        await page.locator("input[name=email]").evaluate("field => { field.type = 'text' }")
        await page.locator("input[name=email]").fill(text)
        async with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
            await page.locator("main form button.primary").click()
        answer = await sent.value
        await page.wait_for_load_state("load")
        assert answer.status == 422
        await watch.look(page, await page.content())
