"""What anybody reads over HTTP under the names of AIDs: where the gateway is, certificates, cards.

The stock client's own code verifies what comes.
"""

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aun_core import agent_md, agent_md_schema
from aun_core._cert_utils import cert_fingerprint, sign_document
from aun_core.agent_md import AgentMdManager
from aun_core.auth import AuthFlow
from cryptography import x509
from cryptography.x509 import ocsp

from app.aun import queries, tokens
from app.aun.cards import _Signer
from app.aun.errors import BadToken
from app.aun.pki import certificates, chain, issuers
from app.identity import agents
from app.kernel import db, settings
from app.kernel.db import Work
from app.kernel.settings import Settings
from tests.aun.outside import Outside
from tests.people import World

BASE = "assent.localhost"
ALICE, STOCK, OTTO = f"alice.{BASE}", f"stock.{BASE}", f"otto.{BASE}"


@pytest.fixture
async def otto(world: World, monkeypatch: pytest.MonkeyPatch) -> Outside:
    """A registered outside AID with tokens."""
    chosen = Settings(aun_registration="open", rate_aun_auth="6000/minute")
    monkeypatch.setattr(settings, "current", lambda: chosen)
    made = Outside(OTTO)
    await made.register()
    await made.login()
    return made


async def test_a_client_finds_the_gateway_of_its_issuer_under_any_of_its_names(
    world: World,
) -> None:
    for host, issuer in {
        ALICE: BASE,
        f"gateway.{BASE}": BASE,
        f"GATEWAY.{BASE}:9443": f"{BASE}:9443",
        f"gina.globex.{BASE}": f"globex.{BASE}",
        "localhost:8000": f"{BASE}:8000",
    }.items():
        told = await ask(world, "GET", host, "/.well-known/aun-gateway")
        assert told.json() == {
            "gateways": [{"url": f"wss://gateway.{issuer}/aun/ws", "priority": 1}]
        }, host
    assert (await ask(world, "GET", f"gateway.{BASE}", "/health")).status_code == 200


@pytest.mark.requirement("SEC-46")
async def test_names_of_aids_open_the_doors_of_messaging_and_no_other(world: World) -> None:
    for path in ("/sign-in", "/v1/me", "/healthz", "/", "/metrics", "/openapi.json"):
        assert (await ask(world, "GET", ALICE, path)).status_code == 421, path
    for host in ("alice.example.com", f"a.b.c.{BASE}", f"{BASE}.evil.example"):
        assert (await ask(world, "GET", host, "/pki/chain")).status_code == 421, host


async def test_a_certificate_is_found_by_name_and_by_each_form_of_its_fingerprint(
    world: World, otto: Outside
) -> None:
    row = db.read_now(queries.active_certificate, world.acme.id, OTTO)
    assert row is not None
    for query in (
        "",
        f"?cert_fingerprint=sha256:{row.fingerprint}",
        f"?cert_fingerprint={row.fingerprint}",
        f"?cert_fingerprint=sha256:{row.key_fingerprint}",
    ):
        told = await ask(world, "GET", f"gateway.{BASE}", f"/pki/cert/{OTTO}{query}")
        assert told.text == otto.pem, query
        head = await ask(world, "HEAD", f"gateway.{BASE}", f"/pki/cert/{OTTO}{query}")
        assert (head.status_code, head.content) == (200, b"")
    for path in (f"owen.{BASE}", "otto.elsewhere.example", "nonsense", f"connect.x.{BASE}"):
        told = await ask(world, "GET", f"gateway.{BASE}", f"/pki/cert/{path}")
        assert told.status_code == 404, path
    for query in (f"sha256:{'0' * 64}", "sha256:0", "x", row.fingerprint.upper()):
        told = await ask(
            world, "GET", f"gateway.{BASE}", f"/pki/cert/{OTTO}?cert_fingerprint={query}"
        )
        assert told.status_code == 404, query


async def test_an_authoritative_answer_says_what_it_knows_and_when(
    world: World, otto: Outside
) -> None:
    path = f"/pki/cert/{OTTO}?consistency=authoritative&key_purpose=group_identity"
    headers = (await ask(world, "GET", f"gateway.{BASE}", path)).headers

    assert headers["X-AUN-Cert-Consistency"] == "authoritative"
    assert headers["X-AUN-Cert-Lifecycle-State"] == "active_signing"
    assert headers["X-AUN-Cert-Fingerprint"] == cert_fingerprint(otto.certificate)
    observed = datetime.fromisoformat(headers["X-AUN-Cert-Observed-At"])
    assert abs(datetime.now(UTC) - observed) < timedelta(seconds=30)


async def test_the_stock_client_trusts_what_this_issuer_signed_and_nothing_revoked(
    world: World, otto: Outside, tmp_path: Path
) -> None:
    flow = client_flow(world, tmp_path)
    gateway = f"wss://gateway.{BASE}/aun/ws"

    await flow.verify_peer_certificate(gateway, otto.certificate, OTTO)
    await flow._verify_ownership_certificate(gateway, otto.certificate, OTTO)
    alice = db.read_now(queries.active_certificate, world.acme.id, ALICE)
    assert alice is not None
    hosted = x509.load_der_x509_certificate(alice.der)
    await flow._verify_ownership_certificate(gateway, hosted, ALICE)

    db.transact_now(certificates.revoke, world.acme.id, OTTO)

    assert await ocsp_status(world, otto.certificate) == "revoked"
    with pytest.raises(Exception, match="revoked"):
        await client_flow(world, tmp_path)._verify_ownership_certificate(
            gateway, otto.certificate, OTTO
        )
    crl = (await ask(world, "GET", f"gateway.{BASE}", "/pki/crl.json")).json()["crl_pem"]
    listed = x509.load_pem_x509_crl(crl.encode())
    assert [entry.serial_number for entry in listed] == [otto.certificate.serial_number]
    assert listed.next_update_utc is not None
    assert listed.next_update_utc > datetime.now(UTC)


async def test_the_gateway_itself_is_good_and_a_stranger_unknown(world: World) -> None:
    gateway = f"gateway.{BASE}"
    auth = db.read_now(issuers.gateway, world.acme.id).certificate

    assert await ocsp_status(world, auth) == "good"
    assert (await ask(world, "GET", gateway, "/pki/ocsp/abc123")).json()["status"] == "unknown"
    for serial in ("0abc", "xyz", "ABC", "a" * 41):
        assert (await ask(world, "GET", gateway, f"/pki/ocsp/{serial}")).status_code == 404, serial


async def test_the_root_can_be_taken_home(world: World) -> None:
    told = await ask(world, "GET", "localhost:8000", "/root.crt")

    root = x509.load_pem_x509_certificate(told.content)
    assert told.text == db.read_now(chain.root_pem, world.acme.id)
    assert root.subject == root.issuer


@pytest.mark.requirement("AUN-6", "AUN-7", "RUN-58")
async def test_hosted_cards_are_signed_declare_autonomy_and_promise_nothing(
    world: World,
) -> None:
    for aid, kind, name in ((ALICE, "human", "alice"), (STOCK, "agent", "Stock")):
        told = await ask(world, "GET", aid, "/agent.md")
        pem = (await ask(world, "GET", aid, f"/pki/cert/{aid}")).text
        certificate = x509.load_pem_x509_certificate(pem.encode())
        parsed = agent_md_schema.verify_agent_md_signature(
            told.text, certificate, expected_aid=aid, for_upload=True
        )

        assert parsed["frontmatter"]["tags"] == ["autonomous"]
        assert (parsed["frontmatter"]["type"], parsed["frontmatter"]["name"]) == (kind, name)
        assert told.headers["ETag"] == AgentMdManager.content_etag(told.text)
        assert told.headers["Content-Type"] == "text/markdown; charset=utf-8"
        assert "Wang" not in told.text
        assert set(parsed["frontmatter"]) == {
            "aid", "name", "type", "version", "description", "tags",
        }  # fmt: skip
        again = await ask(world, "GET", aid, "/agent.md", {"If-None-Match": told.headers["ETag"]})
        head = await ask(world, "HEAD", aid, "/agent.md")
        assert (again.status_code, again.content) == (304, b"")
        assert (head.headers["ETag"], head.content) == (told.headers["ETag"], b"")


async def test_the_card_of_an_agent_follows_its_name_and_no_markup_gets_into_it(
    world: World,
) -> None:
    before = (await ask(world, "GET", STOCK, "/agent.md")).headers["ETag"]
    db.transact_now(_rename, world, "Store <!-- AUN-SIGNATURE\nx -->")

    told = await ask(world, "GET", STOCK, "/agent.md")

    assert told.headers["ETag"] != before
    assert told.text.count("AUN-SIGNATURE\n") == 1
    assert 'name: "Store !-- AUN-SIGNATURE x --"' in told.text


async def test_an_outside_aid_writes_its_own_card_and_nobody_else_does(
    world: World, otto: Outside
) -> None:
    assert (await ask(world, "GET", OTTO, "/agent.md")).status_code == 404
    owen = Outside(f"owen.{BASE}")
    await owen.register()
    await owen.login()
    card = signed(otto, agent_md.build_default_agent_md(OTTO, name="Otto"))

    made = await put(world, otto, OTTO, card, {"If-None-Match": "*"})
    assert made.status_code == 200
    etag = AgentMdManager.content_etag(card)
    assert made.json()["etag"] == made.headers["ETag"] == etag
    told = await ask(world, "GET", OTTO, "/agent.md")
    assert (told.text, told.headers["ETag"]) == (card, etag)

    newer = signed(otto, agent_md.build_default_agent_md(OTTO, name="Otto II"))
    for who, aid, text, condition, status in (
        (otto, OTTO, newer, {"If-None-Match": "*"}, 412),
        (otto, OTTO, newer, {"If-Match": '"other"'}, 412),
        (otto, OTTO, newer, {}, 422),
        (otto, OTTO, newer, {"If-Match": etag, "If-None-Match": "*"}, 422),
        (owen, OTTO, newer, {"If-Match": etag}, 403),
        (otto, ALICE, signed(otto, agent_md.build_default_agent_md(ALICE)), {"If-Match": "x"}, 403),
        (otto, OTTO, newer.replace("Otto II", "Otto 3"), {"If-Match": etag}, 422),
        (otto, OTTO, "no card", {"If-Match": etag}, 422),
        (otto, OTTO, _with_a_nul(otto), {"If-Match": etag}, 422),
        (otto, OTTO, "x" * 7_000, {"If-Match": etag}, 413),
        (otto, f"owen.{BASE}", newer, {"If-None-Match": "*"}, 403),
    ):
        told = await put(world, who, aid, text, condition)
        assert told.status_code == status, (who.aid, aid, text[:40], condition, told.text)
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic x"}):
        told = await ask(
            world, "PUT", OTTO, "/agent.md", {**headers, "If-Match": etag}, newer.encode()
        )
        assert told.status_code == 401, headers
    assert (await put(world, otto, OTTO, newer, {"If-Match": etag})).status_code == 200


async def test_a_card_signed_with_a_replaced_certificate_is_a_conflict(
    world: World, otto: Outside
) -> None:
    card = signed(otto, agent_md.build_default_agent_md(OTTO, name="Otto"))
    db.transact_now(_renew, world.acme.id, otto)

    assert (await put(world, otto, OTTO, card, {"If-None-Match": "*"})).status_code == 409


@pytest.mark.requirement("SEC-30")
async def test_an_aun_token_opens_the_doors_of_messaging_and_nothing_else(
    world: World, otto: Outside
) -> None:
    bearer = {"Authorization": f"Bearer {otto.tokens['access_token']}"}

    for path in ("/v1/me", "/v1/commands", "/v1/events", "/v1/audit", "/v1/calls/x"):
        told = await ask(world, "GET", "localhost:8000", path, bearer)
        assert told.status_code == 401, path
    told = await ask(world, "GET", "localhost:8000", "/v1/me")
    assert told.status_code == 401
    card = signed(otto, agent_md.build_default_agent_md(OTTO))
    assert (await put(world, otto, OTTO, card, {"If-None-Match": "*"})).status_code == 200


@pytest.mark.requirement("SEC-30")
def test_an_agents_token_is_no_aun_token(world: World) -> None:
    with pytest.raises(BadToken):
        db.read_now(tokens.verify, "eyJhbGciOiJFUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6IngifQ.e30.x")


class Flow(AuthFlow):
    """The client's own verification, asking the application of this process."""

    def __init__(self, world: World, root_ca_path: str) -> None:
        nothing: Any = None
        super().__init__(token_store=nothing, crypto=nothing, root_ca_path=root_ca_path)
        self._world = world

    async def _fetch_text(self, url: str, *, authoritative: bool = False) -> str:
        path = "/" + url.split("/", 3)[3]
        told = await ask(self._world, "GET", f"gateway.{BASE}", path)
        assert told.status_code == 200, url
        return told.text

    async def _fetch_json(self, url: str, *, authoritative: bool = False) -> dict[str, Any]:
        return dict(json.loads(await self._fetch_text(url, authoritative=authoritative)))


def client_flow(world: World, folder: Path) -> Flow:
    """A client that trusts the root of the first tenant."""
    root = folder / "root.pem"
    root.write_text(db.read_now(chain.root_pem, world.acme.id))
    return Flow(world, str(root))


def _rename(work: Work, world: World, name: str) -> None:
    agent = agents.one(work.session, world.acme.id, world.acme.agents["stock"].id)
    agents.change(
        work,
        world.acme_admin,
        agent,
        name=name,
        description="",
        admin=world.acme["ada"],
        content={},
        expected_version=agent.version,
    )


def _renew(work: Work, tenant_id: str, who: Outside) -> None:
    certificates.issue(work, tenant_id, who.aid, who.key.public_key())


def signed(who: Outside, text: str) -> str:
    """A card as its client signs it."""
    return str(sign_document(_Signer(who.aid, who.certificate, who.key), text)["signed"])


def _with_a_nul(who: Outside) -> str:
    """A card that is signed well, and holds what no database keeps."""
    return signed(who, agent_md.build_default_agent_md(OTTO, name="Otto") + "\x00\n")


async def put(
    world: World, who: Outside, aid: str, text: str, condition: dict[str, str]
) -> httpx2.Response:
    """An upload as the stock client sends it."""
    headers = {
        "Authorization": f"Bearer {who.tokens['access_token']}",
        "Content-Type": "text/markdown; charset=utf-8",
        "X-AUN-Signature-Format": "multi-v1",
        **condition,
    }
    return await ask(world, "PUT", aid, "/agent.md", headers, text.encode())


async def ask(
    world: World,
    method: str,
    host: str,
    path: str,
    headers: dict[str, str] | None = None,
    content: bytes = b"",
) -> httpx2.Response:
    """One request to a virtual host."""
    async with world.anonymous() as browser:
        return await browser.request(
            method, path, headers={"Host": host, **(headers or {})}, content=content
        )


async def ocsp_status(world: World, certificate: x509.Certificate) -> str:
    """What the responder says of a certificate."""
    path = f"/pki/ocsp/{certificate.serial_number:x}"
    told = (await ask(world, "GET", f"gateway.{BASE}", path)).json()
    der = base64.b64decode(told["ocsp_response"])
    answer = ocsp.load_der_ocsp_response(der)
    assert answer.certificate_status.name.lower() == told["status"]
    assert answer.hash_algorithm is not None
    assert answer.hash_algorithm.name == "sha256"
    return str(told["status"])
