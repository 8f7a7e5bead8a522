"""Strangers register, prove their key and get tokens; nothing counts twice or for another."""

import base64
from typing import Any

import pytest
from aun_core import _cert_utils
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from sqlmodel import select

from app.aun import registration, tokens
from app.aun.errors import (
    AunError,
    BadParams,
    BadToken,
    LoginFailed,
    NotAdmitted,
    Throttled,
    VersionConflict,
)
from app.aun.pki import building, certificates, keys
from app.aun.pki.building import Signer
from app.aun.pki_models import CertificateState, RefreshToken, TokenKey
from app.identity import tenants
from app.identity.models import Tenant
from app.kernel import db, settings
from app.kernel.db import Work
from app.kernel.errors import Invalid, NotFound
from app.kernel.settings import Settings
from tests.aun.outside import Outside, call
from tests.clock import Clock
from tests.people import World

BASE = "assent.localhost"


@pytest.fixture
def open_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any name may register."""
    chosen = Settings(aun_registration="open", rate_aun_auth="6000/minute")
    monkeypatch.setattr(settings, "current", lambda: chosen)
    return


@pytest.fixture
async def otto(world: World, open_door: None) -> Outside:
    """A registered outside AID."""
    made = Outside(f"otto.{BASE}")
    await made.register()
    return made


async def test_a_stranger_gets_a_certificate_and_tokens_that_prove_the_aid(
    world: World, otto: Outside
) -> None:
    begun = await otto.begin()
    told = await otto.finish(begun)

    assert _cert_utils.cert_common_name(otto.certificate) == otto.aid
    gateway = x509.load_pem_x509_certificate(begun["auth_cert"].encode())
    assert _cert_utils.verify_bytes(
        gateway.public_key(), b"MTIzNDU2Nzg5MDEy", begun["client_nonce_signature"]
    )
    assert told["expires_in"] >= 3_600
    assert db.read_now(tokens.verify, told["access_token"]) == (world.acme.id, otto.aid)


@pytest.mark.filterwarnings("ignore:Attribute's length")  # a name of 64 characters and a domain
async def test_only_well_formed_names_of_an_issuer_here_may_register(
    world: World, open_door: None
) -> None:
    for name in ("bob", "Otto", "guest1", "otto smith", "-otto", "x" * 65):
        with pytest.raises(BadParams):
            await Outside(f"{name}.{BASE}").register()
    with pytest.raises(BadParams):
        await Outside("otto.elsewhere.example").register()
    for taken in ("alice", "gateway", "connect", "globex"):
        with pytest.raises(VersionConflict):
            await Outside(f"{taken}.{BASE}").register()
    longest = Outside(f"{'x' * 64}.{BASE}")
    await longest.register()
    assert _cert_utils.cert_common_name(longest.certificate) == longest.aid


async def test_the_same_key_gets_its_certificate_again_and_another_key_does_not(
    otto: Outside,
) -> None:
    again = await Outside(otto.aid, otto.key).register()

    assert again["cert"] == otto.pem
    with pytest.raises(VersionConflict):
        await Outside(otto.aid).register()


async def test_a_key_of_another_kind_is_refused(world: World, open_door: None) -> None:
    for key in ("", "x", base64.b64encode(b"1" * 91).decode()):
        with pytest.raises(BadParams):
            await call("auth.create_aid", {"aid": f"otto.{BASE}", "public_key": key})
    curve = {"aid": f"otto.{BASE}", "public_key": Outside("x").public_key, "curve": "P-384"}
    with pytest.raises(BadParams):
        await call("auth.create_aid", curve)


async def test_by_default_only_a_reserved_name_may_register_once(
    clock: Clock, world: World
) -> None:
    ada = world.acme_admin
    with pytest.raises(NotAdmitted):
        await Outside(f"otto.{BASE}").register()

    db.transact_now(registration.reserve, ada, "otto")
    kept = db.transact_now(registration.reserve, ada, "owen")
    db.transact_now(registration.reserve, ada, "late")
    await Outside(f"otto.{BASE}").register()
    db.transact_now(registration.withdraw, ada, kept.id)

    with pytest.raises(NotAdmitted):
        await Outside(f"owen.{BASE}").register()
    with pytest.raises(NotAdmitted):
        await Outside(f"otto.globex.{BASE}").register()
    clock.move(days=8)
    with pytest.raises(NotAdmitted):
        await Outside(f"late.{BASE}").register()


def test_a_name_is_reserved_once_and_only_if_it_is_free(world: World) -> None:
    ada = world.acme_admin
    db.transact_now(registration.reserve, ada, "otto")

    for name in ("otto", "alice", "bob", "connect", "globex", "Otto"):
        with pytest.raises(Invalid):
            db.transact_now(registration.reserve, ada, name)
    other = world.person(world.globex["gina"])
    reserved = db.read_now(registration.reservations, world.acme.id)
    with pytest.raises(NotFound):
        db.transact_now(registration.withdraw, other, reserved[0].id)
    assert [row.name for row in reserved] == ["otto"]


async def test_nobody_registers_where_the_door_is_closed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.transact_now(registration.reserve, world.acme_admin, "otto")
    monkeypatch.setattr(settings, "current", lambda: Settings(aun_registration="closed"))

    with pytest.raises(NotAdmitted):
        await Outside(f"otto.{BASE}").register()


async def test_a_nonce_counts_once_for_a_minute_and_for_one_aid(
    clock: Clock, otto: Outside
) -> None:
    owen = Outside(f"owen.{BASE}")
    await owen.register()
    await otto.login()
    begun = await otto.begin()

    with pytest.raises(LoginFailed):
        await owen.finish(begun)
    with pytest.raises(LoginFailed):
        await Outside(otto.aid, pem=otto.pem).finish(begun)
    with pytest.raises(LoginFailed):
        await otto.finish({**begun, "nonce": "another"})
    await otto.finish(begun)
    with pytest.raises(LoginFailed, match="aid_login2_failed"):
        await otto.finish(begun)
    late = await otto.begin()
    clock.move(seconds=61)
    with pytest.raises(LoginFailed):
        await otto.finish(late)


async def test_the_first_step_takes_certificates_of_this_issuer_and_aid_alone(
    otto: Outside,
) -> None:
    owen = Outside(f"owen.{BASE}")
    await owen.register()

    for pem in (owen.pem, "nonsense", _foreign(otto)):
        with pytest.raises(LoginFailed, match="aid_login1_failed"):
            await Outside(otto.aid, otto.key, pem).begin()
    with pytest.raises(LoginFailed):
        await Outside(f"alice.{BASE}", otto.key, otto.pem).begin()


async def test_a_refresh_gives_the_next_tokens_once(
    clock: Clock, world: World, otto: Outside
) -> None:
    first = await otto.login()
    second = await _refresh(first["refresh_token"])
    soon = await _refresh(second["refresh_token"])
    clock.move(seconds=11)
    third = await _refresh(second["refresh_token"])
    repeated = await _refresh(second["refresh_token"])

    assert second["success"] is third["success"] is True
    assert soon == {"success": False, "error": "refresh_too_soon", "relogin_required": False}
    assert repeated["success"] is False
    assert repeated["relogin_required"] is True
    for told in (first, second, third):
        assert db.read_now(tokens.verify, told["access_token"]) == (world.acme.id, otto.aid)
    assert len({told["access_token"] for told in (first, second, third)}) == 3
    for nonsense in ("", "x", f"{world.acme.id}.{'x' * 43}"):
        assert (await _refresh(nonsense))["success"] is False


async def test_a_chain_ends_after_thirty_days(clock: Clock, otto: Outside) -> None:
    told = await otto.login()
    clock.move(days=29)
    told = await _refresh(told["refresh_token"])
    assert told["success"]

    clock.move(days=1, seconds=1)
    assert not (await _refresh(told["refresh_token"]))["success"]


async def test_no_refresh_token_is_stored_in_the_clear(otto: Outside) -> None:
    told = await otto.login()

    rows = db.read_now(lambda session: session.exec(select(RefreshToken)).all())

    assert rows
    assert told["refresh_token"] not in str(rows)


async def test_tokens_outlive_a_restart_and_a_new_key(otto: Outside, world: World) -> None:
    told = await otto.login()
    db.transact_now(tokens.replace_keys)
    tokens._jwk.cache_clear()
    later = await otto.login()

    for each in (told, later):
        assert db.read_now(tokens.verify, each["access_token"]) == (world.acme.id, otto.aid)
    kids = db.read_now(lambda session: session.exec(select(TokenKey.kid)).all())
    assert len(kids) == 2


async def test_a_token_proves_nothing_when_it_is_over_or_changed_or_its_tenant_is_suspended(
    clock: Clock, world: World, otto: Outside
) -> None:
    token = (await otto.login())["access_token"]
    head, claims, signature = token.split(".")

    for broken in (f"{head}.{claims}.{signature[:-4]}AAAA", f"{head}.{claims}", "", "a.b.c"):
        with pytest.raises(BadToken):
            db.read_now(tokens.verify, broken)
    db.transact_now(_suspend, world.acme.id)
    with pytest.raises(BadToken):
        db.read_now(tokens.verify, token)
    db.transact_now(_resume, world.acme.id)
    clock.move(seconds=tokens.LIFE_S)
    with pytest.raises(BadToken):
        db.read_now(tokens.verify, token)


async def test_renewing_keeps_the_key_and_what_was_made_with_it(
    world: World, otto: Outside
) -> None:
    old = otto.pem
    begun = await otto.begin()
    told = await call("auth.renew_cert", otto.proof(begun, begun["nonce"]))
    otto.pem = told["cert"]

    assert otto.pem != old
    assert otto.certificate.public_key() == otto.key.public_key()
    await otto.login()
    with_old = await Outside(otto.aid, otto.key, old).login()
    assert with_old["active_cert"] == otto.pem


async def test_rekeying_revokes_the_old_key_and_only_its_holder_may(
    world: World, otto: Outside
) -> None:
    token = (await otto.login())["access_token"]
    new = Outside(otto.aid)
    begun = await otto.begin()
    thief = Outside(otto.aid, pem=otto.pem)
    params = {"new_public_key": new.public_key}
    signed = begun["nonce"] + new.public_key
    with pytest.raises(LoginFailed):
        await call("auth.rekey", {**thief.proof(begun, signed), **params})

    new.pem = (await call("auth.rekey", {**otto.proof(begun, signed), **params}))["cert"]

    assert new.certificate.public_key() == new.key.public_key()
    with pytest.raises(LoginFailed):
        await otto.begin()
    await new.login()
    fingerprint = _cert_utils.cert_fingerprint(otto.certificate)
    row = db.read_now(certificates.by_fingerprint, world.acme.id, otto.aid, fingerprint)
    assert row is not None
    assert row.state == CertificateState.REVOKED
    assert db.read_now(tokens.verify, token), "a cached token lets the client come back"


async def test_a_login_gives_a_new_certificate_before_the_old_one_ends(
    clock: Clock, otto: Outside
) -> None:
    clock.move(days=340)

    told = await otto.login()

    renewed = x509.load_pem_x509_certificate(told["new_cert"].encode())
    assert renewed.public_key() == otto.key.public_key()
    assert renewed.not_valid_after_utc > otto.certificate.not_valid_after_utc


async def test_strangers_are_counted_by_their_address(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(60):
        with pytest.raises(AunError):
            await Outside(f"otto.{BASE}").register()

    with pytest.raises(Throttled) as refused:
        await Outside(f"otto.{BASE}").register()
    assert refused.value.data["retryable"] is True
    assert refused.value.data["retry_after_ms"] > 0


async def test_only_the_methods_of_strangers_run_before_a_connection(world: World) -> None:
    for method in ("message.send", "meta.ping", "auth.nonsense"):
        with pytest.raises(AunError) as refused:
            await call(method, {})
        assert refused.value.code == -32013


async def _refresh(token: str) -> dict[str, Any]:
    return await call("auth.refresh_token", {"refresh_token": token, "sdk_lang": "python"})


def _foreign(otto: Outside) -> str:
    """A certificate for the same name and key that somebody else signed."""
    key = keys.generate()
    root = building.root(key, "Another root")
    made = building.leaf(Signer(root, key), otto.key.public_key(), otto.aid)
    return made.public_bytes(Encoding.PEM).decode()


def _suspend(work: Work, tenant_id: str) -> None:
    tenants.suspend(work, work.session.get_one(Tenant, tenant_id))


def _resume(work: Work, tenant_id: str) -> None:
    tenants.resume(work, work.session.get_one(Tenant, tenant_id))
