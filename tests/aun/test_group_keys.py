"""The directory of device keys for messages to a group."""

import base64
from typing import Any

import pytest

from app.aun import rpc
from app.aun.errors import BadParams, BadSignature, GroupNotFound, GroupRefused
from app.aun.group_models import Group, Visibility
from app.kernel import db
from app.kernel.db import Work
from tests.aun.outsiders import Outsider, enter, group, outsider, text
from tests.people import World

PUT, BOOTSTRAP = "group.v2.put_group_pk", "group.v2.bootstrap"
SOURCE = "group_device_prekey"


async def put(party: Outsider, group_id: str, device: str = "phone", **changed: Any) -> str:
    params = {"group_id": group_id, **party.prekey(SOURCE), **changed}
    found = await rpc.invoke(party.caller(device), PUT, params)
    return str(found["spk_id"])


async def put_peer(party: Outsider, device: str = "phone") -> str:
    params = {"peer_aid": party.aid, **party.prekey()}
    found = await rpc.invoke(party.caller(device), "message.v2.put_peer_pk", params)
    return str(found["spk_id"])


async def bootstrap(party: Outsider, group_id: str) -> dict[str, Any]:
    return await rpc.invoke(party.caller(), BOOTSTRAP, {"group_id": group_id})


async def test_of_each_device_the_key_for_this_group_comes_before_its_general_one(
    world: World,
) -> None:
    acme = world.acme.tenant
    tina, otto, owen = (outsider(acme, name) for name in ("tina", "otto", "owen"))
    alice = str(world.user(world.acme["alice"]).aid)
    team = group(acme, "team", tina.aid, otto.aid, owen.aid, alice)
    elsewhere = group(acme, "elsewhere", otto.aid)
    await put_peer(tina)
    await put_peer(otto, "phone")
    for_tablet = await put_peer(otto, "tablet")
    await put(otto, elsewhere, "phone")
    for_phone = await put(otto, team, "phone")
    for_watch = await put(otto, team, "watch")

    found = await bootstrap(tina, team)

    rows = {(row["aid"], row["device_id"]): row for row in found["devices"]}
    assert {place: row["spk_id"] for place, row in rows.items() if place[0] != tina.aid} == {
        (alice, "hosted"): "",
        (otto.aid, "phone"): for_phone,
        (otto.aid, "tablet"): for_tablet,
        (otto.aid, "watch"): for_watch,
        (owen.aid, ""): "",
    }
    assert rows[otto.aid, "phone"]["key_source"] == SOURCE
    assert rows[otto.aid, "tablet"]["key_source"] == "peer_device_prekey"
    assert rows[owen.aid, ""]["key_source"] == "aid_master"
    assert (tina.aid, "phone") in rows
    assert found["e2ee_wrap_policy"] == {"protocol": "3DH", "scope": "device"}
    assert found["audit_recipients"] == []
    assert found["e2ee_security_level"] == "end_to_end"

    envelope = tina.sealed_to_group(found, text("all"))
    assert envelope["aad"]["wrap_protocol"] == "1DH+3DH"
    for device in ("phone", "tablet", "watch"):
        assert otto.opened(envelope, tina.spki, device) == text("all")
    assert owen.opened(envelope, tina.spki, "first") == text("all")


async def test_a_group_without_a_state_says_so_and_stock_members_still_encrypt(
    world: World,
) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    team = group(acme, "team", tina.aid, otto.aid)

    found = await bootstrap(tina, team)

    assert found["group_id"] == found["group_aid"] == team
    assert (found["epoch"], found["state_version"]) == (0, 0)
    assert found["state_signature"] == found["state_hash"] == found["state_chain"] == ""
    assert found["member_aids"] == found["pending_adds"] == sorted([tina.aid, otto.aid])
    assert found["committed_member_aids"] == []
    assert [row["aid"] for row in found["devices"]] == [otto.aid], "her own is none yet"
    assert otto.opened(tina.sealed_to_group(found, text("hi")), tina.spki) == text("hi")


async def test_only_members_put_keys_and_see_them(world: World) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    gunther = outsider(world.globex.tenant, "gunther")
    team = group(acme, "team", tina.aid)

    for stranger in (otto, gunther):
        with pytest.raises(GroupNotFound):
            await bootstrap(stranger, team)
        with pytest.raises(GroupNotFound):
            await put(stranger, team)
    db.transact_now(_publish, acme.id, team)
    with pytest.raises(GroupRefused, match="not a member"):
        await put(otto, team)
    enter(acme, team, otto.aid)
    spk_id = await put(otto, team)

    assert [row["spk_id"] for row in (await bootstrap(tina, team))["devices"]] == [spk_id]


async def test_a_false_key_does_not_come_into_the_directory_of_a_group(world: World) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    team = group(acme, "team", tina.aid, otto.aid)
    with pytest.raises(BadParams):
        await put(otto, team, spk_id="sha256:" + "0" * 16)
    with pytest.raises(BadParams):
        await put(otto, team, key_source="peer_device_prekey")
    with pytest.raises(BadSignature):
        await put(otto, team, spk_signature=tina.prekey(SOURCE)["spk_signature"])

    (row,) = (await bootstrap(tina, team))["devices"]

    assert (row["device_id"], row["spk_id"]) == ("", "")
    assert base64.b64decode(row["ik_pk"]) == otto.spki


def _publish(work: Work, tenant_id: str, group_id: str) -> None:
    found = work.session.get(Group, (tenant_id, group_id))
    assert found is not None
    found.visibility = Visibility.PUBLIC
    work.session.add(found)
