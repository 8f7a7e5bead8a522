"""Every route, in every way it can answer: the headers, the policy, the cookies, never stored."""

import re
from collections import Counter
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from app.kernel import db, rates
from tests.identity.oauth.flow import Flow, Pkce
from tests.people import World
from tests.security import every_route
from tests.security.every_route import Ask, Things

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; object-src 'none'; report-uri /csp-report"
)
ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}
PUBLIC = ("/static/", "/.well-known/", "/oauth/jwks")  # no credential decides what they say
SECRET_COOKIES = {"__Host-sid", "__Host-pre", "__Host-oidc"}
TOO_LARGE = {"x": "y" * (1 << 20)}


@pytest.mark.requirement("UI-54", "SEC-44", "SEC-45", "SEC-T11", "SEC-37", "SEC-P29", "SEC-P35")
async def test_every_answer_of_every_route_is_dressed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = every_route.make(world, world.acme["olga"])
    seen: Counter[int] = Counter()
    wrong = []

    with capture_logs():  # drawing a traceback for people takes seconds
        async for ask, answer in answers(world, things, monkeypatch):
            seen[answer.status_code] += 1
            wrong += [f"{ask}: {answer.status_code}: {each}" for each in faults_of(ask, answer)]

    assert wrong == []
    expected = {200, 303, 400, 401, 403, 404, 405, 413, 422, 500}
    assert expected <= seen.keys(), "each kind of answer was seen"
    assert sum(seen.values()) > 500


@pytest.mark.requirement("UI-54", "SEC-44", "SEC-45", "SEC-15")
async def test_consent_alone_names_where_its_answer_goes(flow: Flow) -> None:
    client_id, _ = flow.register()

    page = await flow.authorize(flow.request(client_id, Pkce.new()))

    source = "form-action 'self' http://127.0.0.1:7777;"
    assert page.headers["content-security-policy"] == CSP.replace("form-action 'self';", source)
    assert page.headers["cross-origin-opener-policy"] == "unsafe-none"
    assert page.headers["cache-control"] == "no-store"
    other = await flow.world.client(flow.alice).get("/settings")
    assert other.headers["content-security-policy"] == CSP


async def answers(
    world: World, things: Things, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Ask, httpx2.Response]]:
    """Each route as nobody, as an owner, by another site, too large, wrongly filled and broken."""
    paths = {ask.path for ask in every_route.asks(world, things)} | {"/nowhere", "/v1/nowhere"}
    nobody, olga = world.anonymous(), world.client(world.acme["olga"])
    for path in sorted(paths):
        yield await asked(nobody, Ask("PUT", path, path))
    yield await asked(nobody, Ask("GET", "/nowhere", "/nowhere"))
    for number, ask in enumerate(every_route.asks(world, things)):
        if ask.template == "/v1/events":
            continue  # its stream has tests of its own
        yield await asked(nobody, ask)
        with monkeypatch.context() as patched:
            patched.setattr(db, "transaction", broken)
            yield await asked(olga, ask)
        if ask.method == "GET":
            yield await asked(olga, ask)
            yield await asked(olga, Ask("GET", ask.template, f"{ask.path}?q={'x' * 900}&after=%00"))
        elif number % 4 == 0:
            yield await asked(olga, ask, TOO_LARGE)
            yield await asked(olga, ask, headers={"Content-Type": "text/plain"}, content=b"{}")
        else:
            yield await asked(olga, ask, headers={"Sec-Fetch-Site": "cross-site"})
            yield await asked(olga, ask, {"unheard_of": "1"})
            if "sign-out" in ask.path or "/end" in ask.path:
                olga = world.client(world.acme["olga"])


async def broken(*_args: Any, **_more: Any) -> None:
    raise RuntimeError("hunter2: connection to 10.0.0.1 refused")


async def asked(
    client: httpx2.AsyncClient, ask: Ask, data: Any = None, **more: Any
) -> tuple[Ask, httpx2.Response]:
    rates.of_process.cache_clear()
    form = data or ask.form if ask.method == "POST" and "content" not in more else None
    return ask, await client.request(ask.method, ask.path, data=form, **more)


def faults_of(ask: Ask, answer: httpx2.Response) -> list[str]:
    """What is missing from an answer."""
    headers, found = answer.headers, []
    for name, value in ALWAYS.items():
        if headers.get_list(name) != [value]:
            found.append(f"{name}: {headers.get_list(name)}")
    drawn = ask.template == "/docs" and answer.status_code == 200  # its viewer's own pictures
    policy = CSP.replace("img-src 'self';", "img-src 'self' data:;") if drawn else CSP
    if headers.get_list("content-security-policy") != [policy]:
        found.append(f"policy: {headers.get_list('content-security-policy')}")
    opener = "same-origin"
    if answer.status_code < 400 and ask.template == "/oauth/consent":
        opener = "unsafe-none"
    if headers.get_list("cross-origin-opener-policy") != [opener]:
        found.append(f"opener: {headers.get_list('cross-origin-opener-policy')}")
    powers = headers.get("permissions-policy", "").split(", ")
    allowed = {power for power in powers if not power.endswith("=()")}
    mine = {"publickey-credentials-get=(self)", "publickey-credentials-create=(self)"}
    if len(powers) < 20 or allowed != mine:
        found.append(f"permissions: {allowed}")
    if "strict-transport-security" in headers:
        found.append("HSTS over http")
    is_public = ask.path.startswith(PUBLIC) and answer.status_code < 400
    if not is_public and headers.get("cache-control") != "no-store":
        found.append(f"cache: {headers.get('cache-control')}")
    origin = headers.get("access-control-allow-origin")
    if "access-control-allow-credentials" in headers or (origin and not is_public):
        found.append(f"CORS: {origin}")
    found += [f"cookie: {line}" for line in headers.get_list("set-cookie") if not is_sound(line)]
    if "hunter2" in answer.text or "RuntimeError" in answer.text:
        found.append("tells what broke")
    if re.search(r"<script(?![^>]*\bsrc=)|<[^>]+\s(on\w+|style|hx-on[^=]*)=", answer.text):
        found.append("something inline")
    return found


def is_sound(line: str) -> bool:
    """Whether a cookie of ours has the attributes it must have."""
    cookie: SimpleCookie = SimpleCookie(line)
    ((name, morsel),) = cookie.items()
    if not (morsel["path"] == "/" and not morsel["domain"] and morsel["samesite"].lower() == "lax"):
        return False
    return name not in SECRET_COOKIES or bool(morsel["secure"] and morsel["httponly"])
