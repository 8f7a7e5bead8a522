"""Sign-in with another provider: its own browser, once, by proof made for it (SEC-21 to 23)."""

from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx2 import AsyncClient, Response
from joserfc.jwk import RSAKey
from pydantic import SecretStr
from sqlmodel import Session, SQLModel, select

from app.identity import cookies, roles, sessions, users, ways_in
from app.identity.models import ExternalLogin, OidcState, User
from app.identity.oidc import discovery
from app.kernel import clock as clocks
from app.kernel import db, http, settings
from app.kernel.db import Work
from app.kernel.settings import OidcProvider, Settings
from tests.clock import Clock
from tests.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider, serving
from tests.people import World
from tests.signing_in import entries, give_password


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving() as made:
        yield made
    discovery.forget()


@pytest.fixture
def configured(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    """The provider, known to the operator as `contoso`, for people of Acme; accounts are linked."""
    configure(provider, monkeypatch)
    return provider


def configure(provider: Provider, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    discovery.forget()
    known = OidcProvider(
        issuer=provider.issuer,
        client_id=CLIENT_ID,
        client_secret=SecretStr(CLIENT_SECRET),
        tenant="acme",
        label="Contoso",
        **more,
    )
    chosen = Settings(oidc={"contoso": known})
    monkeypatch.setattr(settings, "current", lambda: chosen)


async def leave(browser: AsyncClient, path: str = "/sign-in/contoso") -> str:
    """Start; the provider's address the browser is sent to."""
    started = await browser.get(path)
    assert started.status_code == 303, started.text
    return started.headers["location"]


async def come_back(browser: AsyncClient, back: dict[str, str]) -> Response:
    return await browser.get("/sign-in/contoso/callback", params=back)


async def dance(
    browser: AsyncClient, provider: Provider, path: str = "/sign-in/contoso"
) -> Response:
    return await come_back(browser, provider.approve(await leave(browser, path)))


async def link(world: World, user: User, provider: Provider) -> Response:
    """Link the provider's account to `user`, who is signed in."""
    async with world.client(user) as browser:
        page = await browser.post("/settings/logins/contoso/link")
        assert page.status_code == 200
        address = way_on(page)
        return await come_back(browser, provider.approve(address))


def way_on(page: Response) -> str:
    return unescape(page.text.partition('class="button primary" href="')[2].partition('"')[0])


def who(browser: AsyncClient) -> str | None:
    secret = browser.cookies.get(cookies.session_name())
    signed = db.read_now(sessions.find, secret) if secret else None
    return signed.user.login if signed else None


def logins_of(user: User) -> list[ExternalLogin]:
    return list(db.read_now(ways_in.external, user))


@pytest.mark.requirement("SEC-22", "SEC-23")
async def test_a_linked_account_signs_its_person_in(world: World, configured: Provider) -> None:
    alice = world.acme["alice"]
    linked = await link(world, alice, configured)
    assert (linked.status_code, linked.headers["location"]) == (303, "/settings/security")

    async with world.anonymous() as browser:
        page = await browser.get("/sign-in")
        entered = await dance(browser, configured, "/sign-in/contoso?next=/settings")

        assert "Continue with Contoso" in page.text
        assert (entered.status_code, entered.headers["location"]) == (303, "/settings")
        assert who(browser) == "alice"
    [login] = logins_of(alice)
    assert (login.issuer, login.subject) == (configured.issuer, "subject-1")
    assert login.last_used_at is not None
    assert [entry.user_id for entry in entries(world.acme.id, "identity.login.link")] == [alice.id]


@pytest.mark.requirement("SEC-22")
async def test_the_way_there_carries_state_nonce_and_pkce(
    world: World, configured: Provider
) -> None:
    async with world.anonymous() as browser:
        query = parse_qs(urlsplit(await leave(browser)).query)
        [cookie] = [name for name in browser.cookies if "oidc" in name]

    assert query["response_type"] == ["code"]
    assert query["code_challenge_method"] == ["S256"]
    assert query["redirect_uri"] == ["http://localhost:8000/sign-in/contoso/callback"]
    assert "openid" in query["scope"][0]
    assert len(query["nonce"][0]) == len(query["state"][0]) == len(query["code_challenge"][0]) == 43
    assert cookie == "__Host-oidc"

    def stored(session: Session) -> OidcState:
        return session.exec(select(OidcState)).one()

    row = db.read_now(stored)
    assert query["state"][0] not in repr(row)
    assert row.browser_sha256 != cookie


ID_TOKENS: list[tuple[str, dict[str, Any]]] = [
    ("another issuer", {"iss": "https://evil.example"}),
    ("no issuer", {"iss": None}),
    ("another audience", {"aud": "somebody-else"}),
    ("no audience", {"aud": None}),
    ("several audiences without azp", {"aud": [CLIENT_ID, "other"]}),
    ("several audiences, azp another", {"aud": [CLIENT_ID, "other"], "azp": "other"}),
    ("azp another", {"azp": "other"}),
    ("expired", {"exp": 1}),
    ("no end", {"exp": None}),
    ("made long ago", {"iat": 1}),
    ("made in the future", {"iat": 4_000_000_000}),
    ("no time", {"iat": None}),
    ("another nonce", {"nonce": "x"}),
    ("no nonce", {"nonce": None}),
    ("another access token", {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}),
    ("no subject", {"sub": None}),
    ("empty subject", {"sub": ""}),
    ("subject is a number", {"sub": 1}),
]


@pytest.mark.requirement("SEC-22", "SEC-T24")
async def test_an_id_token_that_was_not_made_for_this_sign_in_is_refused(
    world: World, configured: Provider
) -> None:
    await link(world, world.acme["alice"], configured)
    async with world.anonymous() as browser:
        for what, claims in ID_TOKENS:
            configured.claims = claims
            refused = await dance(browser, configured)
            assert (refused.status_code, who(browser)) == (400, None), what

        configured.claims = {"aud": [CLIENT_ID, "other"], "azp": CLIENT_ID}
        assert (await dance(browser, configured)).status_code == 303


@pytest.mark.requirement("SEC-22", "SEC-T24")
async def test_an_algorithm_or_key_of_an_attackers_choice_is_refused(
    world: World, configured: Provider
) -> None:
    await link(world, world.acme["alice"], configured)
    strange = {"RS256": RSAKey.generate_key(2048, {"kid": "rsa"})}
    async with world.anonymous() as browser:
        for algorithm in ("none", "HS256"):
            configured.algorithm = algorithm
            assert (await dance(browser, configured)).status_code == 400, algorithm
        configured.algorithm = "RS256"
        honest, configured.keys = configured.keys, strange
        for header in ({}, {"jwk": strange["RS256"].as_dict(private=False)}):
            configured.header = header  # signed by another key, which the token brings along
            assert (await dance(browser, configured)).status_code == 400, header
        configured.keys = honest
        configured.header = {"crit": ["x"], "x": 1}
        assert (await dance(browser, configured)).status_code == 400
        configured.header, configured.answers = {}, {"id_token": "a.b.c"}
        assert (await dance(browser, configured)).status_code == 400
        configured.answers = {"id_token": "a." * 20_000}
        assert (await dance(browser, configured)).status_code == 400
        assert who(browser) is None

        configured.answers = {}
        for algorithm in ("RS256", "ES256", "EdDSA"):
            configured.algorithm = algorithm
            assert (await dance(browser, configured)).status_code == 303, algorithm


@pytest.mark.requirement("SEC-22", "SEC-T24", "SEC-P24", "SEC-P25")
async def test_the_answer_counts_once_and_in_the_browser_that_asked(
    world: World, configured: Provider
) -> None:
    await link(world, world.acme["alice"], configured)
    async with world.anonymous() as victim, world.anonymous() as attacker:
        await leave(victim)
        theirs = configured.approve(await leave(attacker))
        assert (await come_back(victim, theirs)).status_code == 400
        assert who(victim) is None

        back = configured.approve(await leave(victim))
        assert (await come_back(victim, back)).status_code == 303
        assert (await come_back(victim, back)).status_code == 400
        for state in ("", "x", "é", "A" * 43, "A" * 5_000):
            answer = await come_back(attacker, {**back, "state": state})
            assert answer.status_code in {400, 422}
    async with world.anonymous() as nobody:
        assert (await nobody.get("/sign-in/contoso/callback")).status_code == 400


@pytest.mark.requirement("SEC-22")
async def test_an_answer_is_too_late_after_ten_minutes(
    clock: Clock, world: World, configured: Provider
) -> None:
    await link(world, world.acme["alice"], configured)
    async with world.anonymous() as browser:
        back = configured.approve(await leave(browser))
        clock.move(minutes=10)
        assert (await come_back(browser, back)).status_code == 400


@pytest.mark.requirement("SEC-22", "SEC-T24")
async def test_an_answer_of_another_issuer_is_a_mix_up(world: World, configured: Provider) -> None:
    await link(world, world.acme["alice"], configured)
    async with world.anonymous() as browser:
        for issuer in ("https://evil.example", f"{configured.issuer}/", ""):
            back = configured.approve(await leave(browser)) | {"iss": issuer}
            assert (await come_back(browser, back)).status_code == 400, issuer
        configured.says_iss = False
        assert (await dance(browser, configured)).status_code == 400, "announced, yet missing"

        configured.metadata = {"authorization_response_iss_parameter_supported": None}
        discovery.forget()
        assert (await dance(browser, configured)).status_code == 303


HOSTILE: list[dict[str, Any]] = [
    {"issuer": "https://evil.example"},
    {"issuer": None},
    {"token_endpoint": None},
    {"token_endpoint": "http://169.254.169.254/latest"},
    {"token_endpoint": "http://example.com/token"},
    {"token_endpoint": "file:///etc/passwd"},
    {"jwks_uri": "http://127.0.0.1:1/jwks"},
    {"jwks_uri": ["x"]},
    {"authorization_endpoint": "javascript:alert(1)"},
    {"authorization_endpoint": "https://user@example.com/authorize"},
    {"userinfo_endpoint": "http://example.com/"},
    {"id_token_signing_alg_values_supported": ["HS256", "none"]},
    {"id_token_signing_alg_values_supported": "RS256"},
]


@pytest.mark.requirement("SEC-21", "SEC-T24")
@pytest.mark.parametrize("metadata", HOSTILE)
async def test_a_provider_that_says_unsafe_things_of_itself_is_not_used(
    world: World, configured: Provider, metadata: dict[str, Any]
) -> None:
    configured.metadata = metadata
    async with world.anonymous() as browser:
        refused = await browser.get("/sign-in/contoso")

    assert refused.status_code == 502
    assert "location" not in refused.headers


@pytest.mark.requirement("SEC-21", "SEC-P26", "SEC-T24")
async def test_what_else_a_provider_says_of_itself_sets_nothing_up(
    world: World, configured: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await link(world, world.acme["alice"], configured)
    discovery.forget()
    configured.metadata = {
        "verify": False,
        "proxy": "http://127.0.0.1:1",
        "headers": {"X-Evil": "1"},
        "follow_redirects": True,
        "timeout": 9_999,
        "mounts": {"all://": None},
        "trust_env": True,
        "client_kwargs": {"verify": False},
        "token_endpoint_auth_methods_supported": ["none"],
    }
    made: list[tuple[Any, ...]] = []
    genuine = http.client

    def watched(*args: Any, **kwargs: Any) -> Any:
        made.append((args, kwargs))
        client = genuine(*args, **kwargs)
        assert client.follow_redirects is False
        assert client.timeout.read == http.TIMEOUT_S
        assert "x-evil" not in client.headers
        return client

    monkeypatch.setattr(http, "client", watched)
    async with world.anonymous() as browser:
        assert (await dance(browser, configured)).status_code == 303
        assert who(browser) == "alice"
    assert made
    assert all(kwargs == {} for _, kwargs in made)


@pytest.mark.requirement("SEC-21")
async def test_metadata_and_keys_are_kept_an_hour_and_an_unknown_key_asks_once_a_minute(
    clock: Clock, world: World, configured: Provider
) -> None:
    await link(world, world.acme["alice"], configured)
    async with world.anonymous() as browser:
        await dance(browser, configured)
        assert (len(configured.calls("metadata")), len(configured.calls("jwks"))) == (1, 1)

        configured.header = {"kid": "rotated"}
        for _ in range(3):
            assert (await dance(browser, configured)).status_code == 400
        assert len(configured.calls("jwks")) == 1, "asked within the minute before"
        clock.move(seconds=61)
        for _ in range(3):
            assert (await dance(browser, configured)).status_code == 400
        assert len(configured.calls("jwks")) == 2

        configured.header = {}
        clock.move(minutes=61)
        assert (await dance(browser, configured)).status_code == 303
    assert (len(configured.calls("metadata")), len(configured.calls("jwks"))) == (2, 3)


@pytest.mark.requirement("SEC-T25", "SEC-23")
async def test_a_mail_address_opens_nothing(
    world: World, configured: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = world.acme["alice"]

    def address(work: Work) -> None:
        row = users.one(work.session, alice.tenant_id, alice.id)
        row.email, row.email_verified = "alice@example.com", True
        work.session.add(row)

    db.transact_now(address)
    configured.claims = {"email": "alice@example.com", "preferred_username": "alice"}
    async with world.anonymous() as browser:
        for verified in (True, False):
            configured.claims["email_verified"] = verified
            refused = await dance(browser, configured)
            assert (refused.status_code, who(browser)) == (403, None)
            assert "not linked" in refused.text

        configure(configured, monkeypatch, accounts="create", role="member")
        assert (await dance(browser, configured)).status_code == 303
        made = who(browser)

    assert made == "alice-2", "a new person, never the one with that name or address"
    assert logins_of(alice) == []


@pytest.mark.requirement("SEC-23")
async def test_the_same_subject_of_another_issuer_is_somebody_else(
    world: World, configured: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await link(world, world.acme["alice"], configured)
    with serving() as other:
        configure(other, monkeypatch)
        async with world.anonymous() as browser:
            assert (await dance(browser, other)).status_code == 403
            assert who(browser) is None


@pytest.mark.requirement("SEC-23")
async def test_create_makes_a_person_once_with_the_role_the_operator_named(
    world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(provider, monkeypatch, accounts="create", role="auditor", org="Beijing 北京")
    for _ in range(2):
        async with world.anonymous() as browser:
            assert (await dance(browser, provider)).status_code == 303
            assert who(browser) == "carol"

    carol = db.read_now(users.by_login, world.acme.id, "carol")
    assert carol is not None
    assert (carol.display_name, carol.email) == ("Carol Example", "carol@example.com")
    assert carol.org_id == world.acme.orgs["beijing"].id
    assert [role.code for _, role, _ in db.read_now(roles.assignments_of, carol)] == ["auditor"]


@pytest.mark.requirement("SEC-23")
@pytest.mark.parametrize("more", [{"role": "emperor"}, {"role": "member", "org": "Atlantis"}])
async def test_create_with_a_role_or_place_that_is_not_there_makes_nobody(
    world: World, provider: Provider, monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    configure(provider, monkeypatch, accounts="create", **more)
    async with world.anonymous() as browser:
        assert (await dance(browser, provider)).status_code == 502
        assert who(browser) is None

    assert db.read_now(users.by_login, world.acme.id, "carol") is None


@pytest.mark.requirement("SEC-23", "SEC-38")
async def test_linking_takes_a_fresh_sign_in_and_the_same_session(
    world: World, configured: Provider
) -> None:
    alice, bob = world.acme["alice"], world.acme["bob"]
    async with world.client(alice, signed_in=timedelta(minutes=6)) as stale:
        asked = await stale.post("/settings/logins/contoso/link")
        assert asked.status_code == 401
    async with world.client(alice) as browser, world.client(bob) as other:
        page = await browser.post("/settings/logins/contoso/link")
        address = way_on(page)
        back = configured.approve(address)
        other.cookies.set("__Host-oidc", browser.cookies["__Host-oidc"], domain="localhost.local")
        assert (await come_back(other, back)).status_code == 400

    assert logins_of(alice) == logins_of(bob) == []


@pytest.mark.requirement("SEC-23")
async def test_an_account_belongs_to_one_person(world: World, configured: Provider) -> None:
    assert (await link(world, world.acme["alice"], configured)).status_code == 303

    assert (await link(world, world.acme["bob"], configured)).status_code == 409

    assert logins_of(world.acme["bob"]) == []


@pytest.mark.requirement("SEC-23")
async def test_the_providers_tokens_are_dropped(
    world: World, configured: Provider, opened: str
) -> None:
    await link(world, world.acme["alice"], configured)
    async with world.anonymous() as browser:
        await dance(browser, configured)

    assert configured.calls("token")
    assert not [table for table in everything() if "canary" in table]


def everything() -> list[str]:
    def read(session: Session) -> list[str]:
        return [
            repr(session.execute(table.select()).all()) for table in SQLModel.metadata.sorted_tables
        ]

    return db.read_now(read)


@pytest.mark.requirement("SEC-38")
async def test_a_new_sign_in_there_confirms_and_an_old_one_does_not(
    world: World, configured: Provider
) -> None:
    alice = world.acme["alice"]
    await link(world, alice, configured)
    way = "/step-up/contoso?next=/settings/password"
    async with world.client(alice, signed_in=timedelta(hours=1)) as browser:
        address = await leave(browser, way)
        assert parse_qs(urlsplit(address).query)["prompt"] == ["login"]
        for claims in (
            {"auth_time": clocks.epoch_s() - 600},
            {"auth_time": None},
            {"sub": "somebody else"},
        ):
            configured.claims = claims
            assert (await dance(browser, configured, way)).status_code == 400, claims
        assert (await browser.get("/settings/password")).status_code == 303
        old = browser.cookies[cookies.session_name()]

        configured.claims = {}
        confirmed = await dance(browser, configured, way)

        assert (confirmed.status_code, confirmed.headers["location"]) == (
            303,
            "/settings/password",
        )
        assert browser.cookies[cookies.session_name()] != old
        assert db.read_now(sessions.find, old) is None
        assert (await browser.get("/settings/password")).status_code == 200


async def test_an_account_is_unlinked_unless_it_is_the_last_way_in(
    world: World, configured: Provider
) -> None:
    alice = world.acme["alice"]
    await link(world, alice, configured)
    [login] = logins_of(alice)
    path = f"/settings/logins/{login.id}/removal"
    async with world.client(world.acme["bob"]) as other:
        assert (await other.post(path)).status_code == 404
        assert (await other.get(path)).status_code == 404
    async with world.client(alice) as browser:
        assert (await browser.post(path)).status_code == 409
        give_password(alice)
        assert (await browser.get(path)).status_code == 200
        assert (await browser.post(path)).status_code == 303

    assert logins_of(alice) == []


@pytest.mark.parametrize("answer", [{"id_token": None}, {"id_token": 1}, {"id_token": ""}])
async def test_a_provider_that_answers_without_proof_signs_nobody_in(
    world: World, configured: Provider, answer: dict[str, Any]
) -> None:
    configured.answers = answer
    async with world.anonymous() as browser:
        assert (await dance(browser, configured)).status_code == 400
        assert who(browser) is None


async def test_who_says_no_there_is_told_and_may_start_again(
    world: World, configured: Provider
) -> None:
    async with world.anonymous() as browser:
        back = configured.approve(await leave(browser))
        declined = await come_back(
            browser, {"state": back["state"], "iss": back["iss"], "error": "access_denied"}
        )

    assert declined.status_code == 400
    assert 'href="/sign-in"' in declined.text


async def test_an_unknown_provider_is_not_found(world: World) -> None:
    async with world.anonymous() as browser:
        assert (await browser.get("/sign-in/contoso")).status_code == 404
        assert (await browser.get("/sign-in/contoso/callback?state=x")).status_code == 404
