"""The chain of signed membership states of a group."""

import base64
import json
from typing import Any

import pytest
from aun_core.v2.state.commitment import compute_state_commitment
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from sqlmodel import Session

from app.aun import identities, rpc
from app.aun.e2ee import states
from app.aun.errors import (
    BadParams,
    BadSignature,
    GroupNotFound,
    GroupRefused,
    NoSuchProposal,
    NotAParty,
    StateMismatch,
)
from app.aun.events import StateChanged
from app.aun.group_models import Group, Role
from app.aun.outgoing import Live
from app.aun.pki import keys
from app.aun.pushes import state as pushes
from app.kernel import db, events
from app.kernel.db import Work
from tests.aun.outsiders import Outsider, enter, group, leave, outsider
from tests.people import World

ECDSA = ec.ECDSA(hashes.SHA256())


def snapshot_of(*aids: str) -> str:
    """What an owner's client says of its group."""
    said = {
        "members": [{"aid": aid, "devices": [{"device_id": "phone", "ik_fp": ""}]} for aid in aids],
        "audit_aids": [],
        "admin_set": {"admin_aids": [aids[0]], "threshold": 1},
        "join_policy_hash": None,
        "recovery_quorum": None,
        "history_policy": "recent_7_days",
        "wrap_protocol": "3DH",
    }
    return json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def state(party: Outsider, group_id: str, version: int, before: str, snapshot: str) -> Any:
    """What an owner's client proposes."""
    said = json.loads(snapshot)
    is_legacy = isinstance(said, list)
    state_hash = "abc" if is_legacy else compute_state_commitment(group_id, version, said)
    words = {
        "group_id": group_id,
        "state_version": version,
        "state_hash": state_hash,
        "membership_snapshot": snapshot,
    }
    text = json.dumps(words, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    signature = keys.of_scalar(party.scalar).sign(text.encode(), ECDSA)
    return {
        **words,
        "key_epoch": 0,
        "prev_state_hash": before,
        "signature": base64.b64encode(signature).decode(),
        "reason": "membership_changed",
        "auto_confirm_seconds": 30,
    }


async def propose(party: Outsider, params: dict[str, Any]) -> dict[str, Any]:
    return await rpc.invoke(party.caller(), "group.v2.propose_state", params)


async def confirm(party: Outsider, group_id: str, proposal_id: str) -> dict[str, Any]:
    params = {"group_id": group_id, "proposal_id": proposal_id}
    return await rpc.invoke(party.caller(), "group.v2.confirm_state", params)


async def asked(party: Outsider, method: str, group_id: str) -> dict[str, Any]:
    return await rpc.invoke(party.caller(), method, {"group_id": group_id})


def verified(found: dict[str, Any], spki: bytes) -> bool:
    """Whether a bootstrap is one the stock client would encrypt under."""
    words = {
        "group_id": found["group_id"],
        "state_version": found["state_version"],
        "state_hash": found["state_hash_signed"],
        "membership_snapshot": found["state_membership_snapshot"],
    }
    text = json.dumps(words, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    keys.of_spki(spki).verify(base64.b64decode(found["state_signature"]), text.encode(), ECDSA)
    said = json.loads(found["state_membership_snapshot"])
    counted = compute_state_commitment(found["group_id"], found["state_version"], said)
    return bool(counted == found["state_hash"])


async def test_an_owner_proposes_and_confirms_one_state_after_the_other(world: World) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    team = group(acme, "team", tina.aid)
    first = await asked(tina, "group.get_state", team)
    assert (first["state_version"], first["state_hash"]) == (0, "")

    alone = state(tina, team, 1, "", snapshot_of(tina.aid))
    made = await propose(tina, alone)
    waiting = (await asked(tina, "group.v2.get_proposal", team))["proposal"]
    assert waiting["proposal_id"] == made["proposal_id"]
    assert waiting["membership_snapshot"] == alone["membership_snapshot"]
    assert waiting["auto_confirm_at"] == waiting["created_at"] + 30_000
    assert (await asked(tina, "group.get_state", team))["state_version"] == 0
    done = await confirm(tina, team, made["proposal_id"])
    assert done["state_chain"] == states.chained("", alone["state_hash"])
    assert (await asked(tina, "group.v2.get_proposal", team))["proposal"] is None

    enter(acme, team, otto.aid)
    found = await asked(otto, "group.v2.bootstrap", team)
    assert found["committed_member_aids"] == [tina.aid]
    assert found["pending_adds"] == [otto.aid]
    assert verified(found, tina.spki)
    both = state(tina, team, 2, alone["state_hash"], snapshot_of(tina.aid, otto.aid))
    made = await propose(tina, both)
    again = await confirm(tina, team, made["proposal_id"])
    assert again["state_chain"] == states.chained(done["state_chain"], both["state_hash"])
    assert await confirm(tina, team, made["proposal_id"]) == again, "a lost answer is asked again"

    now = await asked(otto, "group.get_state", team)
    assert (now["state_version"], now["state_hash"]) == (2, both["state_hash"])
    assert now["prev_state_hash"] == alone["state_hash"]
    assert now["membership_snapshot"] == both["membership_snapshot"]
    found = await asked(otto, "group.v2.bootstrap", team)
    assert (found["epoch"], found["pending_adds"]) == (2, [])
    assert found["state_actor_aid"] == tina.aid
    assert verified(found, tina.spki)
    envelope = otto.sealed_to_group(found, {"type": "text", "text": "hi"})
    assert envelope["aad"]["state_commitment"]["state_chain"] == again["state_chain"]


async def test_a_state_that_does_not_follow_the_last_one_is_refused(world: World) -> None:
    tina = outsider(world.acme.tenant, "tina")
    team = group(world.acme.tenant, "team", tina.aid)
    alone = state(tina, team, 1, "", snapshot_of(tina.aid))
    made = await propose(tina, alone)
    await confirm(tina, team, made["proposal_id"])

    for version, before in ((1, ""), (2, ""), (2, "0" * 64), (3, alone["state_hash"])):
        with pytest.raises(StateMismatch) as refused:
            await propose(tina, state(tina, team, version, before, snapshot_of(tina.aid)))
        assert refused.value.code == -33050
        assert refused.value.data["state_hash"] == alone["state_hash"]
    with pytest.raises(NoSuchProposal) as unknown:
        await confirm(tina, team, "nobody proposed this")
    assert unknown.value.code == -33052


async def test_the_newest_of_two_proposals_counts(world: World) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    team = group(acme, "team", tina.aid)
    enter(acme, team, otto.aid, Role.ADMIN)
    alone = state(tina, team, 1, "", snapshot_of(tina.aid))
    one = await propose(tina, alone)
    same = await propose(tina, alone)
    assert same["proposal_id"] == one["proposal_id"]

    two = await propose(otto, state(otto, team, 1, "", snapshot_of(otto.aid, tina.aid)))

    with pytest.raises(NoSuchProposal):
        await confirm(tina, team, one["proposal_id"])
    done = await confirm(tina, team, two["proposal_id"])
    assert done["state_version"] == 1
    assert verified(await asked(tina, "group.v2.bootstrap", team), otto.spki)


async def test_a_state_that_would_stop_the_members_clients_is_not_taken(world: World) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    team = group(acme, "team", tina.aid)
    good = state(tina, team, 1, "", snapshot_of(tina.aid))
    of_another = state(otto, team, 1, "", snapshot_of(tina.aid))

    for refused, changed in (
        (BadSignature, {"signature": of_another["signature"]}),
        (BadSignature, {"signature": "!"}),
        (BadParams, {"state_hash": "0" * 64}),
        (BadParams, {"membership_snapshot": "not json"}),
        (BadParams, {"membership_snapshot": '{"members":["x"]}'}),
        (BadParams, {"membership_snapshot": ""}),
        (BadParams, {"state_version": 0}),
        (BadParams, {"state_version": 2**32}),
        (BadParams, {"state_version": "1"}),
    ):
        with pytest.raises(refused):
            await propose(tina, {**good, **changed})
    assert (await asked(tina, "group.v2.get_proposal", team))["proposal"] is None

    legacy = state(tina, team, 1, "", json.dumps([tina.aid]))
    made = await propose(tina, {**legacy, "signature": ""})
    await confirm(tina, team, made["proposal_id"])
    found = await asked(tina, "group.v2.bootstrap", team)
    assert (found["committed_member_aids"], found["pending_adds"]) == ([tina.aid], [])


async def test_only_those_who_head_a_group_say_what_its_state_is(world: World) -> None:
    acme = world.acme.tenant
    tina, otto, owen = (outsider(acme, name) for name in ("tina", "otto", "owen"))
    team = group(acme, "team", tina.aid, otto.aid)
    made = await propose(tina, state(tina, team, 1, "", snapshot_of(tina.aid)))

    with pytest.raises(NotAParty):
        await propose(otto, state(otto, team, 1, "", snapshot_of(otto.aid)))
    with pytest.raises(NotAParty):
        await confirm(otto, team, made["proposal_id"])
    for method in ("group.get_state", "group.v2.get_proposal"):
        assert await asked(otto, method, team)
        with pytest.raises(GroupNotFound):
            await asked(owen, method, team)
    with pytest.raises((GroupNotFound, GroupRefused)):
        await confirm(owen, team, made["proposal_id"])
    elsewhere = group(acme, "elsewhere", tina.aid)
    with pytest.raises(NoSuchProposal):
        await confirm(tina, elsewhere, made["proposal_id"])


async def test_the_server_signs_for_a_hosted_owner_whenever_somebody_comes_or_goes(
    world: World,
) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    alice = str(world.user(world.acme["alice"]).aid)
    spki = keys.spki(keys.of_scalar(db.read_now(identities.key_of, acme.id, alice)).public_key())
    team = group(acme, "team", alice, tina.aid)

    db.transact_now(_follow, acme.id, team)
    one = await asked(tina, "group.v2.bootstrap", team)
    db.transact_now(_follow, acme.id, team)
    assert await asked(tina, "group.v2.bootstrap", team) == one, "nothing changed"
    assert (one["state_version"], one["state_actor_aid"]) == (1, alice)
    assert (one["committed_member_aids"], one["pending_adds"]) == (sorted([alice, tina.aid]), [])
    assert verified(one, spki)

    enter(acme, team, otto.aid, Role.ADMIN)
    db.transact_now(_follow, acme.id, team)
    two = await asked(tina, "group.v2.bootstrap", team)
    assert (two["state_version"], two["pending_adds"]) == (2, [])
    assert two["state_chain"] == states.chained(one["state_chain"], two["state_hash"])
    assert verified(two, spki)

    waiting = await propose(
        otto, state(otto, team, 3, two["state_hash"], snapshot_of(otto.aid, tina.aid, alice))
    )
    leave(acme, team, tina.aid)
    db.transact_now(_follow, acme.id, team)
    three = await asked(otto, "group.v2.bootstrap", team)
    assert (three["state_version"], three["pending_adds"]) == (3, [])
    assert verified(three, spki), "what an administrator proposed of before is forgotten"
    with pytest.raises(NoSuchProposal):
        await confirm(otto, team, waiting["proposal_id"])


async def test_every_change_of_a_hosted_owners_group_comes_with_its_state(world: World) -> None:
    acme = world.acme.tenant
    tina = outsider(acme, "tina")
    alice = db.read_now(identities.caller_of_user, world.person(world.acme["alice"]))
    of_alice = db.read_now(identities.key_of, acme.id, alice.aid)
    spki = keys.spki(keys.of_scalar(of_alice).public_key())
    made = await rpc.invoke(alice, "group.create", {"name": "Team"})
    team = made["group"]["group_id"]
    them = {"group_id": team, "aid": tina.aid}

    versions = []
    for method, params in (
        ("group.add_member", them),
        ("group.set_role", {**them, "role": "admin"}),
        ("group.update", {"group_id": team, "name": "Crew"}),
    ):
        await rpc.invoke(alice, method, params)
        found = await asked(tina, "group.v2.bootstrap", team)
        assert verified(found, spki)
        assert found["pending_adds"] == []
        versions.append(found["state_version"])

    assert versions == [2, 3, 3], "another name changes nobody"
    heads = json.loads(found["state_membership_snapshot"])["admin_set"]["admin_aids"]
    assert heads == sorted([alice.aid, tina.aid])


async def test_the_server_signs_for_nobody_else(world: World) -> None:
    acme = world.acme.tenant
    tina = outsider(acme, "tina")
    alice = str(world.user(world.acme["alice"]).aid)
    team = group(acme, "team", tina.aid, alice)

    db.transact_now(_follow, acme.id, team)

    assert (await asked(tina, "group.get_state", team))["state_version"] == 0


async def test_heads_hear_of_a_proposal_and_everybody_of_a_state(world: World) -> None:
    acme = world.acme.tenant
    tina, otto, owen = (outsider(acme, name) for name in ("tina", "otto", "owen"))
    team = group(acme, "team", tina.aid, otto.aid)
    heard: list[StateChanged] = []
    end = events.subscribe(StateChanged, heard.append)
    try:
        made = await propose(tina, state(tina, team, 1, "", snapshot_of(tina.aid)))
        await confirm(tina, team, made["proposal_id"])
        await confirm(tina, team, made["proposal_id"])
    finally:
        end()
    live = {
        party.aid: [Live(party.aid, acme.id, party.aid, "phone", "default")]
        for party in (tina, otto, owen)
    }

    told = [db.read_now(_composed, event, live) for event in heard]

    (proposed,), (confirmed,) = told
    assert [to.aid for to in proposed.to] == [tina.aid]
    assert proposed.name == "group.v2.state_proposed"
    assert proposed.params["proposal_id"] == made["proposal_id"]
    assert sorted(to.aid for to in confirmed.to) == sorted([tina.aid, otto.aid])
    assert confirmed.name == "group.v2.state_confirmed"
    now = await asked(tina, "group.get_state", team)
    assert confirmed.params == {
        "group_id": team,
        "group_aid": team,
        "state_version": 1,
        "state_chain": now["state_chain"],
    }


def _composed(session: Session, event: StateChanged, live: dict[str, list[Live]]) -> list[Any]:
    return list(pushes.PUSHES[StateChanged](session, event, lambda aid: live.get(aid, [])))


def _follow(work: Work, tenant_id: str, group_id: str) -> None:
    found = work.session.get(Group, (tenant_id, group_id))
    assert found is not None
    states.follow(work, found)
