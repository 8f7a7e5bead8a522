"""The directory of device keys for messages between two."""

import base64
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from cryptography import x509
from sqlmodel import select

from app.aun import identities, rpc
from app.aun.errors import BadParams, BadSignature, NoSuchParty
from app.aun.models import Identity, IdentityStatus
from app.aun.pki_models import DeviceKey
from app.kernel import clock, db
from app.kernel.db import Work
from tests.aun.outsiders import Outsider, outsider, text
from tests.people import World

PUT, BOOTSTRAP = "message.v2.put_peer_pk", "message.v2.bootstrap"


async def put(party: Outsider, device: str = "phone", **changed: Any) -> dict[str, Any]:
    params = {"peer_aid": party.aid, **party.prekey(), **changed}
    return await rpc.invoke(party.caller(device), PUT, params)


async def bootstrap(party: Outsider, peer: str) -> dict[str, Any]:
    return await rpc.invoke(party.caller(), BOOTSTRAP, {"peer_aid": peer})


async def test_two_clients_find_each_others_devices_and_read_each_other(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    for device in ("phone", "tablet"):
        await put(tina, device)
        answer = await put(otto, device)
    assert answer == {"success": True, "spk_id": [*otto.prekeys][-1]}

    found = await bootstrap(tina, otto.aid)

    assert [row["device_id"] for row in found["peer_devices"]] == ["phone", "tablet"]
    assert [row["device_id"] for row in found["self_devices"]] == ["phone", "tablet"]
    assert found["e2ee_wrap_policy"] == {"protocol": "3DH", "scope": "device"}
    assert found["audit_recipients"] == []
    envelope = tina.sealed(found, text("secret"))
    assert envelope["aad"]["wrap_protocol"] == "3DH"
    for device in ("phone", "tablet"):
        assert otto.opened(envelope, tina.spki, device) == text("secret")
    assert tina.opened(envelope, tina.spki, "tablet") == text("secret"), "her other device"


async def test_certificates_come_with_their_whole_chain(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")

    found = (await bootstrap(tina, otto.aid))["certs"]

    assert list(found) == [otto.aid]
    chain = [found[otto.aid]["cert_pem"], *found[otto.aid]["ca_chain"]]
    leaf, issuer, root = (x509.load_pem_x509_certificate(pem.encode()) for pem in chain)
    leaf.verify_directly_issued_by(issuer)
    issuer.verify_directly_issued_by(root)
    root.verify_directly_issued_by(root)
    assert len(found[otto.aid]["cert_fingerprint"].removeprefix("sha256:")) == 64


async def test_a_peer_that_never_connected_can_be_written_to_and_reads_it_at_its_first_login(
    world: World,
) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")

    found = await bootstrap(tina, otto.aid)

    (row,) = found["peer_devices"]
    assert (row["device_id"], row["key_source"], row["spk_id"]) == ("", "aid_master", "")
    assert base64.b64decode(row["ik_pk"]) == otto.spki
    assert found["e2ee_wrap_policy"] == {"protocol": "1DH", "scope": "aid"}
    assert found["self_devices"] == [], "what does not exist is no device of hers"
    envelope = tina.sealed(found, text("welcome"))
    assert otto.opened(envelope, tina.spki, "any") == text("welcome")


async def test_a_hosted_peer_has_one_device_and_never_a_prekey(world: World) -> None:
    tina = outsider(world.acme.tenant, "tina")
    await put(tina, "phone")
    await put(tina, "tablet")
    domain = tina.aid.partition(".")[2]

    for name in ("alice", "stock", "connect"):
        found = await bootstrap(tina, f"{name}.{domain}")
        (row,) = found["peer_devices"]
        assert (row["device_id"], row["key_source"], row["spk_id"]) == ("hosted", "aid_master", "")
        assert "spk_pk" not in row
        assert found["e2ee_wrap_policy"] == {"protocol": "3DH", "scope": "device"}
    envelope = tina.sealed(found, text("hello"))
    assert envelope["aad"]["wrap_protocol"] == "1DH+3DH", "her other device has a prekey"


async def test_of_a_device_the_latest_key_is_kept(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    for _ in range(3):
        last = await put(otto)

    (row,) = (await bootstrap(tina, otto.aid))["peer_devices"]

    assert row["spk_id"] == last["spk_id"]


async def test_a_false_key_does_not_come_into_the_directory(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    good = otto.prekey()
    other = otto.prekey()

    for refused, changed in (
        (BadParams, {"peer_aid": tina.aid}),
        (BadParams, {"spk_id": other["spk_id"]}),
        (BadParams, {"spk_id": good["spk_id"][:-1]}),
        (BadParams, {"spk_pk": "!"}),
        (BadParams, {"spk_pk": base64.b64encode(b"no key").decode()}),
        (BadParams, {"spk_signature": "!"}),
        (BadParams, {"spk_timestamp": "now"}),
        (BadParams, {"spk_timestamp": -1}),
        (BadParams, {"key_source": "group_device_prekey"}),
        (BadSignature, {"spk_signature": other["spk_signature"]}),
        (BadSignature, {"spk_signature": good["spk_signature"][:8]}),
        (BadSignature, {"spk_timestamp": good["spk_timestamp"] + 1}),
        (BadSignature, {name: tina.prekey()[name] for name in ("spk_signature",)}),
    ):
        params = {"peer_aid": otto.aid, **good, **changed}
        with pytest.raises(refused):
            await rpc.invoke(otto.caller(), PUT, params)

    assert (await bootstrap(tina, otto.aid))["peer_devices"][0]["device_id"] == ""
    assert await rpc.invoke(otto.caller(), PUT, {"peer_aid": otto.aid, **good})


async def test_a_key_signed_before_a_new_aid_key_is_neither_taken_nor_handed_out(
    world: World,
) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    await put(otto)
    late = {"peer_aid": otto.aid, **otto.prekey()}
    otto.new_key()

    with pytest.raises(BadSignature):
        await rpc.invoke(otto.caller(), PUT, late)

    (row,) = (await bootstrap(tina, otto.aid))["peer_devices"]
    assert (row["device_id"], row["key_source"], row["spk_id"]) == ("phone", "aid_master", "")
    assert base64.b64decode(row["ik_pk"]) == otto.spki


async def test_an_aid_has_at_most_fifty_devices_and_the_oldest_goes(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    start = clock.now()
    for number in range(52):
        with time_machine.travel(start + timedelta(seconds=number), tick=False):
            await put(otto, f"device-{number:02}")

    rows = (await bootstrap(tina, otto.aid))["peer_devices"]

    assert [row["device_id"] for row in rows] == [f"device-{number:02}" for number in range(2, 52)]
    assert len(db.read_now(lambda session: session.exec(select(DeviceKey)).all())) == 50


async def test_nobody_unknown_of_another_tenant_or_shut_out_has_keys_here(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    gunther = outsider(world.globex.tenant, "gunther")
    db.transact_now(_block, otto)

    for aid in (otto.aid, gunther.aid, f"nobody.{tina.aid.partition('.')[2]}"):
        with pytest.raises(NoSuchParty):
            await bootstrap(tina, aid)


async def test_a_key_needs_a_device(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    with pytest.raises(BadParams, match="device"):
        await put(otto, "")

    (row,) = (await bootstrap(tina, otto.aid))["peer_devices"]

    assert row["spk_id"] == ""


async def test_a_hosted_party_puts_no_keys_and_finds_those_of_others(world: World) -> None:
    tina = outsider(world.acme.tenant, "tina")
    alice = db.read_now(identities.caller_of_user, world.person(world.acme["alice"]))
    with pytest.raises(BadParams):
        await rpc.invoke(alice, PUT, {"peer_aid": alice.aid, **tina.prekey()})

    found = await rpc.invoke(alice, BOOTSTRAP, {"peer_aid": tina.aid})

    assert found["self_devices"] == []
    assert found["peer_devices"][0]["aid"] == tina.aid


def _block(work: Work, party: Outsider) -> None:
    found = work.session.get(Identity, (party.tenant_id, party.aid))
    assert found is not None
    found.status = IdentityStatus.BLOCKED
    work.session.add(found)
