"""The guard of people's routes, row by row (SEC-34)."""

import pytest
from httpx2 import AsyncClient

from app.identity import guard
from app.identity.errors import (
    AmbiguousCredentials,
    CrossSite,
    CsrfToken,
    HumanSessionRequired,
    SignInRequired,
)
from app.identity.guard import Repeated, Token
from app.kernel.errors import AppError
from tests.people import World
from tests.signing_in import entries

ORIGIN = "https://assent.example"
BEARER = [("Authorization", "Bearer x")]
ANY = "GET", "HEAD", "POST", "PUT", "DELETE"
UNSAFE = "POST", "PUT", "PATCH", "DELETE"

Headers = list[tuple[str, str]]


def row(
    methods: tuple[str, ...],
    headers: Headers,
    answer: type[AppError] | None,
    *,
    session: bool = True,
    token: Token = Token.RIGHT,
) -> list[tuple[str, Headers, bool, Token, type[AppError] | None]]:
    return [(method, headers, session, token, answer) for method in methods]


def site(value: str) -> Headers:
    return [("Sec-Fetch-Site", value)]


def origin(value: str) -> Headers:
    return [("Origin", value)]


TABLE = [
    *row(ANY, BEARER, AmbiguousCredentials),
    *row(ANY, [("authorization", "Basic eDp5")], AmbiguousCredentials),
    *row(ANY, BEARER, HumanSessionRequired, session=False),
    *row(("GET", *UNSAFE), [], SignInRequired, session=False),
    *row(("GET", "HEAD", "OPTIONS"), site("cross-site"), None, token=Token.WRONG),
    *row(("GET",), origin("https://evil.example"), None, token=Token.WRONG),
    *row(UNSAFE, site("same-origin"), None),
    *row(UNSAFE, site("same-origin"), CsrfToken, token=Token.WRONG),
    *row(UNSAFE, [*site("same-site"), *origin(ORIGIN)], CrossSite),
    *row(UNSAFE, [*site("cross-site"), *origin(ORIGIN)], CrossSite),
    *row(UNSAFE, [*site("none"), *origin(ORIGIN)], CrossSite),
    *row(UNSAFE, [*site("Same-Origin"), *origin(ORIGIN)], CrossSite),
    *row(UNSAFE, origin(ORIGIN), None),
    *row(UNSAFE, origin(ORIGIN), CsrfToken, token=Token.WRONG),
    *row(UNSAFE, origin("https://evil.example"), CrossSite),
    *row(UNSAFE, origin("https://assent.example.evil.example"), CrossSite),
    *row(UNSAFE, origin("https://assent.example:8443"), CrossSite),
    *row(UNSAFE, origin("null"), CrossSite),
    *row(UNSAFE, [], CrossSite),
    *row(UNSAFE, [("HX-Request", "true")], CrossSite),
    *row(ANY, [*BEARER, *BEARER], Repeated),
    *row(ANY, [*site("same-origin"), *site("same-origin")], Repeated),
    *row(ANY, [*origin(ORIGIN), *origin("https://evil.example")], Repeated),
    *row(ANY, [("X-CSRF-Token", "a"), ("x-csrf-token", "b")], Repeated),
]


@pytest.mark.requirement("UI-55", "SEC-34", "SEC-1")
@pytest.mark.parametrize(("method", "headers", "session", "token", "answer"), TABLE)
def test_every_row_of_the_table_has_its_answer(
    method: str, headers: Headers, session: bool, token: Token, answer: type[AppError] | None
) -> None:
    given: type[AppError] | None = None
    try:
        guard.check(headers, has_session=session, method=method, origin=ORIGIN, token=token)
    except AppError as refused:
        given = type(refused)

    assert given is answer


@pytest.mark.requirement("SEC-T4", "SEC-1")
async def test_a_session_and_a_token_together_are_refused_unread(world: World) -> None:
    async with world.client(world.acme["olga"]) as browser:
        refused = await browser.get("/settings", headers={"Authorization": "Bearer x"})

        assert refused.status_code == 400
        assert "ambiguous_credentials" in refused.text
        assert (await browser.get("/settings")).status_code == 200


@pytest.mark.requirement("SEC-34", "SEC-2")
async def test_a_token_does_not_open_a_page_of_people(world: World) -> None:
    async with world.anonymous() as agent:
        refused = await agent.get("/settings", headers={"Authorization": "Bearer x.y.z"})

    assert refused.status_code == 403
    assert "human_session_required" in refused.text


@pytest.mark.requirement("SEC-1", "SEC-2")
@pytest.mark.parametrize("path", ["/sign-in", "/invite/x", "/reset/x", "/setup/x"])
async def test_a_token_does_not_sign_in_as_a_person(world: World, path: str) -> None:
    bearer = {"Authorization": "Bearer x.y.z"}
    async with world.anonymous() as agent, world.client(world.acme["alice"]) as both:
        for method in ("GET", "POST"):
            alone = await agent.request(method, path, headers=bearer)
            mixed = await both.request(method, path, headers=bearer)
            assert alone.status_code == 403
            assert mixed.status_code in ({400} if method == "GET" else {400, 403})


ATTACKS: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:8000"},
    {"Sec-Fetch-Site": "", "Origin": "http://localhost:8000"},
]
WITHOUT_METADATA: list[dict[str, str]] = [
    {},
    {"Origin": "null"},
    {"Origin": "http://localhost:8001"},
    {"Origin": "http://127.0.0.1:8000"},
    {"Origin": "http://localhost:8000.evil.example"},
]
KINDS = ["application/x-www-form-urlencoded", "text/plain", "application/json"]


@pytest.mark.requirement("SEC-T10", "SEC-34")
@pytest.mark.parametrize("kind_of_body", KINDS)
async def test_a_page_of_another_origin_changes_nothing(world: World, kind_of_body: str) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser:
        for attack in ATTACKS:
            assert await attempt(browser, attack, kind_of_body) == (403, True)
        del browser.headers["Sec-Fetch-Site"]
        for attack in WITHOUT_METADATA:
            assert await attempt(browser, attack, kind_of_body) == (403, True)

        own = await browser.post(
            "/settings", data=PROFILE, headers={"Origin": "http://localhost:8000"}
        )

    assert own.status_code == 303
    assert world.user(alice).display_name == "Mallory"


PROFILE = {"display_name": "Mallory", "time_zone": "UTC"}


async def attempt(
    browser: AsyncClient, headers: dict[str, str], kind_of_body: str
) -> tuple[int, bool]:
    body = "display_name=Mallory&time_zone=UTC"
    refused = await browser.post(
        "/settings", content=body, headers={"Content-Type": kind_of_body, **headers}
    )
    return refused.status_code, "cross_site" in refused.text


@pytest.mark.requirement("SEC-T10", "SEC-35")
async def test_a_form_without_the_sessions_own_token_changes_nothing(world: World) -> None:
    alice, bob = world.acme["alice"], world.acme["bob"]
    async with world.client(alice) as browser, world.client(bob) as other:
        tokens = ["", "x", other.headers["X-CSRF-Token"], "é" * 64]
        del browser.headers["X-CSRF-Token"]
        for token in tokens:
            refused = await browser.post("/settings", data={**PROFILE, "_csrf": token})
            assert (refused.status_code, "csrf_token" in refused.text) == (403, True)

    assert world.user(alice).display_name != "Mallory"


@pytest.mark.requirement("SEC-2", "SEC-34")
async def test_an_agent_at_a_door_of_people_is_put_on_record(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.identity import bearer
    from app.identity.doors import Door
    from app.identity.principal import Channel, Principal, Scope

    olga = world.acme["olga"]
    agent = Principal(
        olga.tenant_id,
        olga.id,
        None,
        world.acme.delegations["alice"].id,
        None,
        Channel.MCP,
        (world.acme.agents["stock"].id,),
        frozenset({Scope.COMMANDS_INVOKE}),
        1,
    )

    async def recognised(request: object, door: Door) -> Principal:
        return agent

    monkeypatch.setattr(bearer, "agent_of", recognised)
    async with world.anonymous() as browser:
        refused = await browser.post("/settings", headers={"Authorization": "Bearer x"})

    assert refused.status_code == 403
    [entry] = entries(world.acme.id, "identity.person.required")
    assert (entry.outcome, entry.agent_id) == ("refused", agent.agent_id)
