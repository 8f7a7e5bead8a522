"""What the server checks of an envelope it cannot read, and how it takes one apart."""

import copy
import json
from typing import Any

import pytest
from aun_core.v2.crypto.recipients import compute_merkle_proof

from app.aun import rpc
from app.aun.e2ee import envelopes
from app.aun.errors import BadParams, NoSuchParty, StaleKeys
from app.aun.models import IdentityKind
from tests.aun.outsiders import Outsider, enter, group, leave, outsider, text
from tests.people import World


async def rows_for(party: Outsider, peer: str) -> dict[str, Any]:
    return await rpc.invoke(party.caller(), "message.v2.bootstrap", {"peer_aid": peer})


async def rows_of(party: Outsider, group_id: str) -> dict[str, Any]:
    return await rpc.invoke(party.caller(), "group.v2.bootstrap", {"group_id": group_id})


async def put(party: Outsider, device: str = "phone") -> None:
    params = {"peer_aid": party.aid, **party.prekey()}
    await rpc.invoke(party.caller(device), "message.v2.put_peer_pk", params)


async def test_an_envelope_that_does_not_fit_its_request_is_refused(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    for device in ("phone", "tablet"):
        await put(otto, device)
    good = tina.sealed(await rows_for(tina, otto.aid), text("secret"), "m-1")
    await envelopes.checked_direct(tina.caller(), otto.aid, "m-1", good)
    await envelopes.checked_direct(tina.caller(), otto.aid, "m-1", good, "tablet")

    def changed(**parts: Any) -> dict[str, Any]:
        return {**copy.deepcopy(good), **parts}

    def without(name: str) -> dict[str, Any]:
        return {part: value for part, value in good.items() if part != name}

    def aad(**parts: Any) -> dict[str, Any]:
        return changed(aad={**good["aad"], **parts})

    refused = {
        "from another": aad(**{"from": otto.aid}),
        "to another": aad(to=tina.aid),
        "under another id": aad(message_id="m-2"),
        "without an aad": without("aad"),
        "of no version": without("version"),
        "of another version": changed(version="v1"),
        "of another kind": changed(type="e2ee.group_encrypted"),
        "without recipients": changed(recipients=[]),
        "with recipients of another form": changed(recipients={}),
        "with a short row": changed(recipients=[row[:7] for row in good["recipients"]]),
        "with a number in a row": changed(recipients=[[*good["recipients"][0][:7], 1]]),
        "out of order": changed(recipients=good["recipients"][::-1]),
        "without a signature": without("sender_signature"),
        "without a text": changed(ciphertext=None),
        "too large": changed(more="x" * (1 << 20)),
    }
    for what, envelope in refused.items():
        try:
            await envelopes.checked_direct(tina.caller(), otto.aid, "m-1", envelope)
        except BadParams:
            continue
        pytest.fail(f"{what} went through")
    with pytest.raises(BadParams, match="target device"):
        await envelopes.checked_direct(tina.caller(), otto.aid, "m-1", good, "watch")
    own = [[tina.aid, *row[1:]] for row in good["recipients"]]
    with pytest.raises(BadParams, match="receiver"):
        await envelopes.checked_direct(tina.caller(), otto.aid, "m-1", changed(recipients=own))


async def test_keys_of_before_a_new_one_are_refused_as_stale_and_fresh_ones_are_read(
    world: World,
) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    kept = await rows_for(tina, otto.aid)
    otto.new_key()

    sealed = tina.sealed(kept, text("lost?"), "m-1")
    with pytest.raises(StaleKeys) as refused:
        await envelopes.checked_direct(tina.caller(), otto.aid, "m-1", sealed)
    assert refused.value.code == -33011

    again = tina.sealed(await rows_for(tina, otto.aid), text("not lost"), "m-1")
    await envelopes.checked_direct(tina.caller(), otto.aid, "m-1", again)
    assert otto.opened(again, tina.spki) == text("not lost")


async def test_copies_for_ones_own_devices_need_keys_of_today_too(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    for device in ("phone", "tablet"):
        await put(tina, device)
    kept = await rows_for(tina, otto.aid)
    tina.new_key()

    sealed = tina.sealed(kept, text("mine"), "m-1")
    with pytest.raises(StaleKeys):
        await envelopes.checked_direct(tina.caller(), otto.aid, "m-1", sealed)


async def test_nobody_unknown_is_encrypted_to(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    gunther = outsider(world.globex.tenant, "gunther")
    rows = await rows_for(tina, otto.aid)
    rows["peer_devices"][0]["aid"] = gunther.aid

    sealed = tina.sealed(rows, text("hello"), "m-1")
    with pytest.raises(NoSuchParty):
        await envelopes.checked_direct(tina.caller(), gunther.aid, "m-1", sealed)


async def test_a_hosted_party_sends_no_envelopes_of_its_own(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    sealed = tina.sealed(await rows_for(tina, otto.aid), text("hello"), "m-1")
    hosted = tina.caller()
    object.__setattr__(hosted, "kind", IdentityKind.USER)

    with pytest.raises(BadParams, match="hosted"):
        await envelopes.checked_direct(hosted, otto.aid, "m-1", sealed)


async def test_a_group_is_encrypted_to_its_members_of_now(world: World) -> None:
    acme = world.acme.tenant
    tina, otto, owen = (outsider(acme, name) for name in ("tina", "otto", "owen"))
    team = group(acme, "team", tina.aid, otto.aid, owen.aid)
    kept = await rows_of(tina, team)
    good = tina.sealed_to_group(kept, text("all of you"), "m-1")
    await envelopes.checked_group(tina.caller(), team, "m-1", good)

    with pytest.raises(BadParams):
        await envelopes.checked_group(tina.caller(), f"x{team}", "m-1", good)
    with pytest.raises(BadParams):
        await envelopes.checked_group(tina.caller(), team, "m-2", good)
    leave(acme, team, owen.aid)
    with pytest.raises(StaleKeys) as refused:
        await envelopes.checked_group(tina.caller(), team, "m-1", good)
    assert refused.value.data == {"stale_aids": [owen.aid]}

    otto.new_key()
    enter(acme, team, owen.aid)
    with pytest.raises(StaleKeys) as refused:
        await envelopes.checked_group(tina.caller(), team, "m-1", good)
    assert refused.value.data == {"stale_aids": [otto.aid]}

    again = tina.sealed_to_group(await rows_of(tina, team), text("all of you"), "m-1")
    await envelopes.checked_group(tina.caller(), team, "m-1", again)
    assert otto.opened(again, tina.spki) == owen.opened(again, tina.spki) == text("all of you")
    leave(acme, team, tina.aid)
    await envelopes.checked_group(tina.caller(), team, "m-1", good)  # for the send itself to refuse


async def test_each_device_gets_its_own_row_with_a_proof_the_client_accepts(world: World) -> None:
    acme = world.acme.tenant
    tina = outsider(acme, "tina")
    readers = [outsider(acme, name) for name in ("otto", "owen", "paul", "quin", "rosa")]
    team = group(acme, "team", tina.aid, *[reader.aid for reader in readers])
    for reader in readers[:2]:
        for device in ("phone", "tablet"):
            await put(reader, device)
    envelope = tina.sealed_to_group(await rows_of(tina, team), text("each of you"))
    rows = envelope["recipients"]
    before = json.dumps(envelope)

    for count in range(1, len(rows) + 1):  # trees of every width
        split = envelopes.Split({**envelope, "recipients": rows[:count]})
        for place, row in enumerate(rows[:count]):
            part = split.for_device(row[0], row[1] or "any")
            assert part is not None
            assert part["merkle_proof"] == compute_merkle_proof(rows[:count], place)
    for reader in readers:
        part = envelopes.projection(envelope, reader.aid, "phone")
        assert part is not None
        assert "recipients" not in part
        has_prekey = bool(part["recipient"]["device_id"])
        assert has_prekey or part["delivery_device_id"] == "phone"
        assert reader.opened(part, tina.spki) == text("each of you")
    assert envelopes.projection(envelope, readers[0].aid, "watch") is None
    assert envelopes.projection(envelope, tina.aid, "phone") is None
    assert json.dumps(envelope) == before

    assert envelopes.has_wrap(envelope, readers[0].aid, "tablet")
    assert not envelopes.has_wrap(envelope, readers[0].aid, "watch")
    assert envelopes.has_wrap(envelope, readers[4].aid, "watch"), "a row for all of the AID"
    assert (tina.aid, "phone") not in envelopes.wraps(envelope)


async def test_a_row_of_another_cannot_be_slipped_to_a_device(world: World) -> None:
    acme = world.acme.tenant
    tina, otto, owen = (outsider(acme, name) for name in ("tina", "otto", "owen"))
    team = group(acme, "team", tina.aid, otto.aid, owen.aid)
    rows = await rows_of(tina, team)
    one = tina.sealed_to_group(rows, text("one"))
    two = tina.sealed_to_group(rows, text("two"))
    part, other = (envelopes.projection(each, otto.aid, "phone") for each in (one, two))
    assert part is not None
    assert other is not None

    part["recipient"] = other["recipient"]

    assert otto.opened(part, tina.spki) is None


def test_plain_payloads_are_no_envelopes() -> None:
    assert not envelopes.is_envelope(text("e2ee.p2p_encrypted"))
    assert not envelopes.is_envelope({"type": ["e2ee.p2p_encrypted"]})
    assert not envelopes.is_envelope({})
    assert envelopes.is_envelope({"type": "e2ee.p2p_encrypted"})
    assert envelopes.is_envelope({"type": "e2ee.group_encrypted"})
