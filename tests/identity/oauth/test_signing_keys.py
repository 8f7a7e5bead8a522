"""Signing keys: one signs, the next is announced, the old one verifies for its time (SEC-81)."""

import asyncio
from typing import Any

import pytest
from joserfc.jwk import ECKey
from sqlmodel import Session, select

from app.identity import signing_keys
from app.identity.models import KeyState, KeyUse, SigningKey
from app.kernel import db, sealing
from app.kernel.db import Work
from tests.clock import Clock
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import OFFLINE, Flow


def kids(state: KeyState, use: KeyUse = KeyUse.ACCESS_TOKEN) -> list[str]:
    return [row.kid for row in db.read_now(_rows) if row.state == state and row.use == use]


async def published(flow: Flow) -> set[str]:
    return {key["kid"] for key in (await flow.http.get("/oauth/jwks")).json()["keys"]}


@pytest.mark.requirement("SEC-81", "SEC-80")
async def test_each_use_has_one_active_key_sealed_and_named_by_its_thumbprint(flow: Flow) -> None:
    rows = db.read_now(_rows)

    assert {(row.use, row.state) for row in rows} == {(use, KeyState.ACTIVE) for use in KeyUse}
    for row in rows:
        assert row.kid == ECKey.import_key({**row.public_jwk}).thumbprint()
        assert row.private is not None
        assert b'"d"' not in row.private
        assert b'"d"' in sealing.unseal(row.private, f"signing_key:{row.kid}")
        with pytest.raises(sealing.CannotUnseal):
            sealing.unseal(row.private, "signing_key:another")


@pytest.mark.requirement("SEC-81")
async def test_starts_at_once_make_one_key_of_each_use(flow: Flow) -> None:
    db.transact_now(_forget_all)

    await asyncio.gather(*(db.transaction(signing_keys._make_missing) for _ in range(4)))

    assert sorted(row.use for row in db.read_now(_rows)) == sorted(KeyUse)


@pytest.mark.requirement("SEC-81")
async def test_the_key_set_shows_public_parts_of_keys_that_count(flow: Flow) -> None:
    answered = await flow.http.get("/oauth/jwks")

    keys = answered.json()["keys"]
    assert {key["kid"] for key in keys} == {row.kid for row in db.read_now(_rows)}
    for key in keys:
        assert key.keys() == {"kty", "crv", "x", "y", "kid", "use", "alg"}
        assert (key["kty"], key["crv"], key["alg"], key["use"]) == ("EC", "P-256", "ES256", "sig")
    assert answered.headers["cache-control"] == "public, max-age=3600"
    assert answered.headers["access-control-allow-origin"] == "*"


@pytest.mark.requirement("SEC-81", "SEC-T45")
async def test_a_successor_is_published_for_a_day_then_signs_and_the_old_one_fades(
    clock: Clock, flow: Flow
) -> None:
    client_id, _ = flow.register()
    (old,) = kids(KeyState.ACTIVE)
    db.transact_now(signing_keys.rotate_due)
    assert kids(KeyState.NEXT) == []

    clock.move(days=89)
    db.transact_now(signing_keys.rotate_due)
    (following,) = kids(KeyState.NEXT)
    early = await flow.tokens(client_id, resource=flow.resource("v1"))
    assert f.header_of(early["access_token"])["kid"] == old
    assert following in await published(flow)

    clock.move(hours=23, minutes=59)
    db.transact_now(signing_keys.rotate_due)
    assert kids(KeyState.ACTIVE) == [old]
    last = await flow.tokens(client_id, resource=flow.resource("v1"))

    clock.move(minutes=1)
    db.transact_now(signing_keys.rotate_due)
    first = await flow.tokens(client_id, resource=flow.resource("v1"))
    assert f.header_of(first["access_token"])["kid"] == following
    assert (kids(KeyState.ACTIVE), kids(KeyState.RETIRING)) == ([following], [old])
    assert (await flow.me(last["access_token"])).status_code == 200
    assert old in await published(flow)

    clock.move(minutes=10)
    forged = f.claims_of(first["access_token"])
    assert (await flow.me(last["access_token"])).status_code == 401
    assert old not in await published(flow)
    db.transact_now(signing_keys.rotate_due)
    assert kids(KeyState.RETIRED) == [old]
    assert forged["iss"] == flow.origin


@pytest.mark.requirement("SEC-81", "SEC-T45")
async def test_an_old_key_verifies_for_ten_minutes_and_no_longer(clock: Clock, flow: Flow) -> None:
    (old,) = kids(KeyState.ACTIVE)
    old_key = db.read_now(signing_keys.signs_with, KeyUse.ACCESS_TOKEN)
    db.transact_now(signing_keys.rotate)
    clock.move(hours=24)
    db.transact_now(signing_keys.rotate_due)
    token = await flow.access_token()

    def by_the_old_key() -> str:
        now = int(clock.now.timestamp())
        claims = {**f.claims_of(token), "iat": now, "exp": now + 300}
        header = {"typ": "at+jwt", "alg": "ES256", "kid": old}
        import orjson

        return f.compact(header, orjson.dumps(claims), old_key, "ES256")

    clock.move(minutes=9, seconds=59)
    assert (await flow.me(by_the_old_key())).status_code == 200
    clock.move(seconds=1)
    assert (await flow.me(by_the_old_key())).status_code == 401


@pytest.mark.requirement("SEC-81", "SEC-T45", "SEC-82")
async def test_a_rotation_and_a_restart_cost_no_session_and_no_connection(
    clock: Clock, flow: Flow, opened: str
) -> None:
    client_id, _ = flow.register()
    first = await flow.tokens(client_id, scope=OFFLINE, resource=flow.resource("v1"))
    browser = flow.world.client(flow.alice)
    db.transact_now(signing_keys.rotate)

    db.close()
    signing_keys.close()
    db.open(opened)
    signing_keys.prepare()

    assert (await flow.me(first["access_token"])).status_code == 200
    assert (await browser.get("/v1/me")).status_code == 200
    assert (await flow.refresh(client_id, first["refresh_token"])).status_code == 200


@pytest.mark.requirement("SEC-81")
async def test_an_emergency_drops_the_key_and_every_family_at_once(flow: Flow) -> None:
    client_id, _ = flow.register()
    first = await flow.tokens(client_id, scope=OFFLINE, resource=flow.resource("v1"))
    (old,) = kids(KeyState.ACTIVE)
    (checkpoint,) = kids(KeyState.ACTIVE, KeyUse.CHECKPOINT)
    entry = db.transact_now(_checkpoint)

    db.transact_now(_emergency)

    assert (await flow.me(first["access_token"])).status_code == 401
    assert (await flow.refresh(client_id, first["refresh_token"])).status_code == 400
    assert old not in await published(flow)
    assert all(row.private is None for row in db.read_now(_rows) if row.kid == old)
    assert [row.revoked_why for row in db.read_now(f.families)] == ["keys_replaced"]
    assert checkpoint in await published(flow)
    assert signing_keys.verified(KeyUse.CHECKPOINT, entry) is not None
    assert (await flow.me(await flow.access_token())).status_code == 200
    assert "identity.token.revoke_all" in db.read_now(f.actions)


@pytest.mark.requirement("SEC-81", "SEC-T43")
async def test_a_key_signs_for_its_use_alone(flow: Flow) -> None:
    token = await flow.access_token()
    checkpoint_key = db.read_now(signing_keys.signs_with, KeyUse.CHECKPOINT)

    import orjson

    header = {"typ": "at+jwt", "alg": "ES256", "kid": checkpoint_key.kid}
    forged = f.compact(header, orjson.dumps(f.claims_of(token)), checkpoint_key, "ES256")

    assert (await flow.me(forged)).status_code == 401


@pytest.mark.requirement("SEC-81")
async def test_keys_are_read_again_while_news_of_others_does_not_arrive(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await flow.access_token()
    if not db.is_sqlite():  # where it never does
        monkeypatch.setattr(db, "hears_others", lambda: False)
    monkeypatch.setattr(signing_keys, "LOOK_AGAIN_S", -1.0)
    db.transact_now(_retire_silently)

    assert (await flow.me(token)).status_code == 401


def _rows(session: Session) -> Any:
    return session.exec(select(SigningKey)).all()


def _forget_all(work: Work) -> None:
    for row in _rows(work.session):
        work.session.delete(row)


def _retire_silently(work: Work) -> None:
    for row in _rows(work.session):
        row.state = KeyState.RETIRED
        work.session.add(row)


def _checkpoint(work: Work) -> str:
    return signing_keys.sign(work.session, KeyUse.CHECKPOINT, b"{}", "checkpoint+jws")


def _emergency(work: Work) -> None:
    signing_keys.rotate(work, emergency=True)
