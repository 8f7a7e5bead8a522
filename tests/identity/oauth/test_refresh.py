"""Refresh tokens: used once, and a second use ends the family (SEC-27)."""

import asyncio
import threading
from typing import Any

import pytest

from app.identity import delegations as delegating
from app.identity import signing_keys, users
from app.identity.models import User
from app.identity.oauth.grants import RefreshGrant
from app.kernel import db
from app.kernel.db import Work
from tests.clock import Clock
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import OFFLINE, READS, Flow


async def connected(flow: Flow, **more: Any) -> tuple[str, dict[str, Any]]:
    client_id, _ = flow.register()
    return client_id, await flow.tokens(
        client_id, scope=OFFLINE, resource=flow.resource("v1"), **more
    )


@pytest.mark.requirement("SEC-27")
async def test_a_refresh_token_is_for_offline_access_alone(flow: Flow) -> None:
    client_id, _ = flow.register()
    without_grant, _ = flow.register(grant_types=["authorization_code"])

    online = await flow.tokens(client_id, scope=READS)
    unregistered = await flow.tokens(without_grant, scope=OFFLINE)
    offline = await flow.tokens(client_id, scope=OFFLINE)

    assert "refresh_token" not in online
    assert "refresh_token" not in unregistered
    assert offline["refresh_token"].startswith(flow.alice.tenant_id + ".")


@pytest.mark.requirement("SEC-27", "SEC-20")
async def test_each_use_gives_a_new_refresh_token(flow: Flow) -> None:
    client_id, first = await connected(flow)

    second = await flow.refresh(client_id, first["refresh_token"])
    third = await flow.refresh(client_id, second.json()["refresh_token"])

    assert third.status_code == 200, third.text
    tokens = {first["refresh_token"], second.json()["refresh_token"], third.json()["refresh_token"]}
    assert len(tokens) == 3
    assert (await flow.me(third.json()["access_token"])).status_code == 200
    (family,) = db.read_now(f.families)
    assert f.claims_of(third.json()["access_token"])["fam"] == family.id
    stored = " ".join(row.secret_sha256 for row in db.read_now(f.refresh_tokens))
    assert not any(token in stored for token in tokens)


@pytest.mark.requirement("SEC-27", "SEC-18", "SEC-T42")
async def test_a_rotated_token_that_comes_back_ends_the_family(flow: Flow) -> None:
    client_id, first = await connected(flow)
    second = (await flow.refresh(client_id, first["refresh_token"])).json()
    assert (await flow.me(second["access_token"])).status_code == 200

    again = await flow.refresh(client_id, first["refresh_token"])
    after = await flow.refresh(client_id, second["refresh_token"])

    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert after.json()["error"] == "invalid_grant"
    assert (await flow.me(second["access_token"])).status_code == 401
    (family,) = db.read_now(f.families)
    assert family.revoked_why == "reuse"
    assert "identity.token.reuse" in db.read_now(f.actions)


@pytest.mark.requirement("SEC-27", "SEC-18", "SEC-T42")
async def test_of_two_uses_at_once_one_wins_and_the_family_ends(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_id, first = await connected(flow)
    if not db.is_sqlite():  # which has one writer; here both have checked before one takes
        together = threading.Barrier(2, timeout=60)
        save = RefreshGrant.save_token

        def wait_then_save(self: RefreshGrant, token: dict[str, Any]) -> None:
            together.wait()
            save(self, token)

        monkeypatch.setattr(RefreshGrant, "save_token", wait_then_save)

    answers = await asyncio.gather(
        *(flow.refresh(client_id, first["refresh_token"]) for _ in range(2))
    )

    assert sorted(answer.status_code for answer in answers) == [200, 400]
    (family,) = db.read_now(f.families)
    assert family.revoked_why == "reuse"


@pytest.mark.requirement("SEC-27", "SEC-T42")
async def test_reuse_is_seen_after_a_restart_and_when_the_clock_went_back(
    clock: Clock,
    flow: Flow,
    opened: str,
) -> None:
    client_id, first = await connected(flow)
    await flow.refresh(client_id, first["refresh_token"])

    db.close()
    signing_keys.close()
    db.open(opened)
    signing_keys.prepare()
    clock.move(hours=-1)
    again = await flow.refresh(client_id, first["refresh_token"])

    assert again.json()["error"] == "invalid_grant"
    (family,) = db.read_now(f.families)
    assert family.revoked_why == "reuse"


@pytest.mark.requirement("SEC-27", "SEC-T42")
async def test_a_clock_that_went_back_an_hour_costs_no_refresh_token(
    clock: Clock, flow: Flow
) -> None:
    client_id, first = await connected(flow)

    clock.move(hours=-1)
    stale = await flow.me(first["access_token"])
    refreshed = await flow.refresh(client_id, first["refresh_token"])

    assert stale.status_code == 401, "it claims to be from the future"
    assert (await flow.me(refreshed.json()["access_token"])).status_code == 200


@pytest.mark.requirement("SEC-27")
async def test_a_token_unused_for_30_days_ends_and_the_family_after_90(
    clock: Clock, flow: Flow
) -> None:
    client_id, first = await connected(flow)
    other_id, idle = await connected(flow)
    token = first["refresh_token"]

    for _ in range(3):
        clock.move(days=29)
        refreshed = await flow.refresh(client_id, token)
        assert refreshed.status_code == 200, refreshed.text
        token = refreshed.json()["refresh_token"]
    late = await flow.refresh(other_id, idle["refresh_token"])
    clock.move(days=3, seconds=1)
    last = await flow.refresh(client_id, token)

    assert late.json()["error"] == last.json()["error"] == "invalid_grant"


@pytest.mark.requirement("SEC-27")
async def test_a_refresh_token_belongs_to_one_client(flow: Flow) -> None:
    _client_id, first = await connected(flow)
    other_id, _ = flow.register(name="Other")

    answered = await flow.refresh(other_id, first["refresh_token"])

    assert answered.json()["error"] == "invalid_grant"
    (family,) = db.read_now(f.families)
    assert family.revoked_at is None, "a stranger does not end it"


@pytest.mark.parametrize(
    "token", ["x", "01ARZ3NDEKTSV4RRFFQ69G5FAV." + "a" * 43, "." * 70, "a" * 5000]
)
@pytest.mark.requirement("SEC-27", "SEC-5")
async def test_what_is_no_refresh_token_is_an_invalid_grant(flow: Flow, token: str) -> None:
    client_id, _ = flow.register()

    answered = await flow.refresh(client_id, token)

    assert (answered.status_code, answered.json()["error"]) == (400, "invalid_grant")


@pytest.mark.requirement("SEC-27")
async def test_a_refresh_may_narrow_the_scope_and_never_widen_it(flow: Flow) -> None:
    client_id, first = await connected(flow)

    wider = await flow.refresh(client_id, first["refresh_token"], scope="audit.read")
    narrow = await flow.refresh(client_id, first["refresh_token"], scope="catalog.read")
    whole = await flow.refresh(client_id, narrow.json()["refresh_token"])

    assert wider.json()["error"] == "invalid_scope"
    assert narrow.json()["scope"] == "catalog.read"
    assert whole.json()["scope"] == OFFLINE


@pytest.mark.requirement("SEC-27", "SEC-32", "SEC-9")
async def test_a_changed_epoch_is_no_obstacle_and_the_old_token_is(flow: Flow) -> None:
    client_id, first = await connected(flow)

    flow.world.give(flow.alice, "auditor")
    stale = await flow.me(first["access_token"])
    refreshed = await flow.refresh(client_id, first["refresh_token"])

    assert stale.status_code == 401
    assert (await flow.me(refreshed.json()["access_token"])).status_code == 200


@pytest.mark.requirement("SEC-27", "SEC-31", "SEC-32")
async def test_a_disabled_user_gets_nothing_and_reactivation_revives_nothing(flow: Flow) -> None:
    client_id, first = await connected(flow)
    olga = flow.world.person(flow.world.acme["olga"])

    db.transact_now(_disable, olga, flow.alice)
    disabled = await flow.refresh(client_id, first["refresh_token"])
    db.transact_now(_enable, olga, flow.alice)
    enabled = await flow.refresh(client_id, first["refresh_token"])

    assert disabled.json()["error"] == enabled.json()["error"] == "invalid_grant"
    assert (await flow.me(first["access_token"])).status_code == 401


@pytest.mark.requirement("SEC-27", "SEC-31")
async def test_a_refresh_reads_the_delegation_again(flow: Flow) -> None:
    client_id, first = await connected(flow)
    alice = flow.world.person(flow.alice)
    (delegation,) = [row for row in db.read_now(f.delegations) if OFFLINE.split()[2] in row.scopes]

    db.transact_now(_narrow, alice, delegation.id, ["catalog.read", "offline_access"])
    narrowed = await flow.refresh(client_id, first["refresh_token"])
    db.transact_now(_pause, alice, delegation.id)
    paused = await flow.refresh(client_id, narrowed.json()["refresh_token"])
    db.transact_now(_revoke, alice, delegation.id)
    revoked = await flow.refresh(client_id, paused.json()["refresh_token"])

    assert narrowed.json()["scope"] == "catalog.read offline_access"
    assert paused.status_code == 200, "tokens live on while an agent is paused"
    assert (await flow.me(paused.json()["access_token"])).status_code == 401
    assert revoked.json()["error"] == "invalid_grant"


@pytest.mark.requirement("SEC-17")
async def test_a_refresh_keeps_its_resource(flow: Flow) -> None:
    client_id, first = await connected(flow)

    other = await flow.refresh(client_id, first["refresh_token"], resource=flow.resource("mcp"))
    same = await flow.refresh(client_id, first["refresh_token"], resource=flow.resource("v1"))

    assert other.json()["error"] == "invalid_target"
    assert f.claims_of(same.json()["access_token"])["aud"] == flow.resource("v1")


def _disable(work: Work, actor: Any, user: User) -> None:
    users.disable(work, actor, users.one(work.session, user.tenant_id, user.id))


def _enable(work: Work, actor: Any, user: User) -> None:
    users.enable(work, actor, users.one(work.session, user.tenant_id, user.id))


def _narrow(work: Work, actor: Any, delegation_id: str, scopes: list[str]) -> None:
    delegating.set_scopes(work, actor, delegating.own(work.session, actor, delegation_id), scopes)


def _pause(work: Work, actor: Any, delegation_id: str) -> None:
    delegating.pause(work, actor, delegating.own(work.session, actor, delegation_id), "test")


def _revoke(work: Work, actor: Any, delegation_id: str) -> None:
    delegating.revoke(work, actor, delegating.own(work.session, actor, delegation_id))
