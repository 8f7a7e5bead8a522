"""Clients: registered by an administrator, described by a document, or by themselves (SEC-13)."""

from typing import Any

import httpx2
import orjson
import pytest
from sqlmodel import Session

from app.identity.models import AuthMethod, OAuthClient
from app.identity.oauth import cimd, clients
from app.identity.principal import Principal
from app.kernel import clock as clocks
from app.kernel import db, http, ids, settings
from app.kernel.db import Work
from app.kernel.errors import Invalid, NotFound
from app.kernel.settings import Settings
from tests.clock import Clock
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import CALLBACK, OFFLINE, Flow, Pkce

URL = "https://desk.example/oauth/client.json"


@pytest.mark.requirement("SEC-13", "SEC-5")
async def test_a_secret_is_shown_once_and_a_new_one_ends_the_old(flow: Flow) -> None:
    client_id, secret = flow.register(secret=True)
    row = db.read_now(f.client_row, client_id)
    first = await flow.tokens(client_id, secret=secret, scope=OFFLINE)

    ada = flow.world.person(flow.world.acme["ada"])
    renewed = db.transact_now(_rotate, ada, client_id)
    old = await flow.refresh(client_id, first["refresh_token"], secret=secret)
    new = await flow.refresh(client_id, first["refresh_token"], secret=renewed)

    assert row.secret_sha256 == ids.sha256(str(secret))
    assert old.json()["error"] == "invalid_client"
    assert new.status_code == 200
    assert "identity.client.rotate_secret" in db.read_now(f.actions)


@pytest.mark.requirement("SEC-31", "SEC-13")
async def test_blocking_a_client_ends_its_families(flow: Flow) -> None:
    client_id, _ = flow.register()
    first = await flow.tokens(client_id, scope=OFFLINE, resource=flow.resource("v1"))

    ada = flow.world.person(flow.world.acme["ada"])
    db.transact_now(_block, ada, client_id)
    refreshed = await flow.refresh(client_id, first["refresh_token"])
    used = await flow.me(first["access_token"])
    db.transact_now(_unblock, ada, client_id)
    revived = await flow.refresh(client_id, first["refresh_token"])

    assert refreshed.json()["error"] == "invalid_client"
    assert used.status_code == 401
    assert revived.json()["error"] == "invalid_grant"
    assert [row.revoked_why for row in db.read_now(f.families)] == ["client_blocked"]


@pytest.mark.requirement("SEC-13")
async def test_a_tenant_sees_and_changes_its_own_clients(flow: Flow) -> None:
    client_id, _ = flow.register()
    gina = flow.world.person(flow.world.globex["gina"])

    with pytest.raises(NotFound):
        db.transact_now(_block, gina, client_id)

    assert [row.id for row in db.read_now(clients.of_tenant, flow.alice.tenant_id)] == [client_id]
    assert db.read_now(clients.of_tenant, gina.tenant_id) == []


ODD_REDIRECTS = (
    "http://desk.example/cb",
    "https://desk.example/cb#x",
    "https://user@desk.example/cb",
    "https://*.desk.example@/cb",
    "https:///cb",
    "app:/cb",
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "com.example.app",
    "/cb",
    "",
    "https://desk.example/" + "x" * 2000,
    "https://desk.example\\@evil.example/",
    "https://desk.example/ cb",
    "https://desk.example:99999/",
)


@pytest.mark.requirement("SEC-14")
async def test_a_redirect_uri_is_https_loopback_or_a_dotted_scheme(flow: Flow) -> None:
    for uri in ODD_REDIRECTS:
        with pytest.raises(Invalid) as refused:
            flow.register(redirect_uris=[uri])

        assert [error.pointer for error in refused.value.errors] == ["redirect_uris"], uri


@pytest.fixture
def documents(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What lies at which URL; `fetched` counts."""
    shelf: dict[str, Any] = {"fetched": []}

    async def fetch(
        _http: Any, _method: str, url: str, **_more: Any
    ) -> tuple[int, httpx2.Headers, bytes]:
        shelf["fetched"].append(url)
        document, headers = shelf[url]
        body = document if isinstance(document, bytes) else orjson.dumps(document)
        return 200, httpx2.Headers({"content-type": "application/json", **headers}), body

    monkeypatch.setattr(http, "fetch", fetch)
    return shelf


def document(**more: Any) -> dict[str, Any]:
    return {
        "client_id": URL,
        "client_name": "Desk",
        "redirect_uris": ["https://desk.example/cb", CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
        **more,
    }


@pytest.mark.requirement("SEC-13", "SEC-11")
async def test_a_document_makes_a_client_and_is_kept_for_its_max_age(
    clock: Clock, flow: Flow, documents: dict[str, Any]
) -> None:
    documents[URL] = (document(), {"cache-control": "public, max-age=600"})

    first = await flow.tokens(URL, scope=OFFLINE, resource=flow.resource("v1"))
    await flow.tokens(URL)
    kept = len(documents["fetched"])
    clock.move(seconds=601)
    documents[URL] = (document(client_name="Desk 2"), {})
    refreshed = await flow.refresh(URL, first["refresh_token"])
    page = await flow.authorize(flow.request(URL, Pkce.new()))

    assert kept == 1
    assert len(documents["fetched"]) == 2
    assert refreshed.status_code == 200
    assert "Desk 2" in page.text
    assert "Describes itself at" in page.text
    row = db.read_now(f.client_row, URL)
    assert (row.source, row.auth_method, row.secret_sha256) == ("cimd", "none", None)


@pytest.mark.requirement("SEC-13")
async def test_changed_redirect_uris_end_its_delegations(
    clock: Clock, flow: Flow, documents: dict[str, Any]
) -> None:
    documents[URL] = (document(), {})
    first = await flow.tokens(URL, scope=OFFLINE, resource=flow.resource("v1"))

    clock.move(minutes=5, seconds=1)
    documents[URL] = (document(redirect_uris=[CALLBACK]), {})
    refreshed = await flow.refresh(URL, first["refresh_token"])

    assert refreshed.json()["error"] == "invalid_grant"
    (agent,) = db.read_now(f.agents)
    ended = [row for row in db.read_now(f.delegations) if row.agent_id == agent.id]
    assert all(row.revoked_at for row in ended)
    assert [row.revoked_why for row in db.read_now(f.families)] == ["client_changed"]


@pytest.mark.parametrize(
    "body",
    [
        document(client_id=URL + "x"),
        document(redirect_uris=["https://other.example/cb"]),
        document(redirect_uris=["https://desk.example:8443/cb"]),
        document(redirect_uris=["com.example.app:/cb"]),
        document(redirect_uris=[]),
        document(token_endpoint_auth_method="client_secret_basic"),
        document(token_endpoint_auth_method="private_key_jwt"),
        document(client_name="x" * 201),
        b"not json",
        b"[]",
        b'{"client_id":"a","client_id":"b"}',
    ],
)
@pytest.mark.requirement("SEC-13", "SEC-48")
async def test_a_document_that_will_not_do_is_a_page_and_is_asked_for_once_a_minute(
    flow: Flow, documents: dict[str, Any], body: Any
) -> None:
    documents[URL] = (body, {})

    answers = [await flow.authorize(flow.request(URL, Pkce.new())) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert all("location" not in answer.headers for answer in answers)
    assert len(documents["fetched"]) == 1


ODD_URLS = (
    "http://desk.example/client.json",
    "https://desk.example",
    "https://desk.example/",
    "https://desk.example:443/client.json",
    "https://desk.example/a/../client.json",
    "https://desk.example/a/%2E%2e/client.json",
    "https://desk.example/./client.json",
    "https://desk.example/client.json?x=1",
    "https://desk.example/client.json#x",
    "https://u:p@desk.example/client.json",
    "https://DESK.example/client.json",
    "https://desk.example/" + "x" * 500,
    "https:desk.example/client.json",
    "https://desk.example\\client.json",
    "https://desk.example/client\x00.json",
)


@pytest.mark.requirement("SEC-13")
async def test_an_odd_url_is_not_even_fetched(flow: Flow, documents: dict[str, Any]) -> None:
    for url in ODD_URLS:
        documents[url] = (document(client_id=url), {})

        answered = await flow.authorize(flow.request(url, Pkce.new()))
        device = await flow.http.post("/oauth/device_authorization", data={"client_id": url})

        assert answered.status_code == 400, url
        assert device.json()["error"] in {"invalid_client", "invalid_request"}, url
        assert documents["fetched"] == [], url


@pytest.mark.requirement("SEC-13", "SEC-55")
async def test_a_document_comes_through_the_guard_and_never_for_a_stranger(flow: Flow) -> None:
    inside = "https://127.0.0.1/client.json"
    by_name = "https://localhost/client.json"

    pages = [await flow.authorize(flow.request(url, Pkce.new())) for url in (inside, by_name)]
    token = await flow.refresh(URL, "x")

    assert [page.status_code for page in pages] == [400, 400]
    assert token.json()["error"] == "invalid_client"
    assert URL not in cimd._failures, "nothing was fetched for a token request"


@pytest.mark.requirement("SEC-13")
async def test_an_operator_may_restrict_the_hosts(
    flow: Flow, documents: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents[URL] = (document(), {})
    monkeypatch.setattr(settings, "current", lambda: Settings(cimd_hosts=["other.example"]))

    answered = await flow.authorize(flow.request(URL, Pkce.new()))

    assert answered.status_code == 400
    assert documents["fetched"] == []


@pytest.mark.requirement("SEC-13")
async def test_clients_register_themselves_only_where_the_operator_says_so(
    clock: Clock, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {
        "client_name": "Editor",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
    }
    off = await flow.http.post("/oauth/register", json=wanted)
    monkeypatch.setattr(settings, "current", lambda: Settings(oauth_registration=True))

    used = await flow.http.post("/oauth/register", json=wanted)
    unused = await flow.http.post("/oauth/register", json=wanted)
    scheme = await flow.http.post(
        "/oauth/register", json={**wanted, "redirect_uris": ["com.example.app:/cb"]}
    )
    grant = await flow.http.post(
        "/oauth/register", json={**wanted, "grant_types": ["client_credentials"]}
    )
    metadata = (await flow.http.get("/.well-known/oauth-authorization-server")).json()
    page = await flow.authorize(flow.request(used.json()["client_id"], Pkce.new()))
    await flow.tokens(used.json()["client_id"])
    clock.move(hours=24)
    late = await flow.authorize(flow.request(unused.json()["client_id"], Pkce.new()))
    still = await flow.authorize(flow.request(used.json()["client_id"], Pkce.new()))

    assert off.status_code == 404
    assert used.status_code == 201
    assert "client_secret" not in used.json()
    assert used.headers["cache-control"] == "no-store"
    assert scheme.json()["error"] == "invalid_redirect_uri"
    assert grant.json()["error"] == "invalid_client_metadata"
    assert metadata["registration_endpoint"] == f"{flow.origin}/oauth/register"
    assert "nobody has checked it" in page.text
    assert (late.status_code, still.status_code) == (400, 200)


@pytest.mark.requirement("SEC-13")
async def test_five_registrations_an_hour(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "current", lambda: Settings(oauth_registration=True))

    answers = [
        await flow.http.post("/oauth/register", json={"redirect_uris": [CALLBACK]})
        for _ in range(6)
    ]

    assert [answer.status_code for answer in answers] == [201] * 5 + [429]
    assert answers[0].json()["client_secret"]


@pytest.mark.requirement("SEC-28")
async def test_exchanging_takes_a_secret(flow: Flow) -> None:
    with pytest.raises(Invalid):
        flow.register(grant_types=[clients.EXCHANGE], redirect_uris=[])


def _rotate(work: Work, actor: Principal, client_id: str) -> str:
    return clients.rotate_secret(work, actor, _own(work.session, actor, client_id))


def _block(work: Work, actor: Principal, client_id: str) -> None:
    clients.block(work, actor, _own(work.session, actor, client_id))


def _unblock(work: Work, actor: Principal, client_id: str) -> None:
    clients.unblock(work, actor, _own(work.session, actor, client_id))


def _own(session: Session, actor: Principal, client_id: str) -> OAuthClient:
    return clients.own(session, actor.tenant_id, client_id)


def test_a_public_client_has_no_secret_to_know() -> None:
    client = OAuthClient(
        id="x", source="dcr", name="x", auth_method=AuthMethod.NONE, created_at=clocks.now()
    )

    assert not clients.has_secret(client, "")
