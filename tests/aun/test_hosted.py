"""Hosted AIDs read what stock clients encrypt to them, and answer in kind."""

import base64
import copy
import json
from datetime import timedelta
from typing import Any

import pytest
from aun_core.v2.crypto.canonical import canonical_json

from app.aun import delivery, identities, rpc
from app.aun.delivery import Direct
from app.aun.e2ee import envelopes, hosted
from app.aun.e2ee.crypto import Sealer
from app.aun.e2ee.hosted import NoUsableKey, Opened
from app.aun.errors import BadParams, NoSuchParty
from app.aun.group_models import Member
from app.aun.models import Identity, Message
from app.aun.pki import certificates
from app.aun.pki.keys import of_scalar, spki
from app.kernel import clock, db
from app.kernel.db import Work
from tests.aun.outsiders import Outsider, group, new_id, outsider, text
from tests.people import World

CANARY = {"type": "canary"}


def alice_of(world: World) -> str:
    return str(world.user(world.acme["alice"]).aid)


def key_of(world: World, aid: str) -> bytes:
    """The public key of a hosted AID."""
    scalar = db.read_now(identities.key_of, world.acme.id, aid)
    return spki(of_scalar(scalar).public_key())


async def sealed(party: Outsider, peer: str, payload: Any, message_id: str = "") -> dict[str, Any]:
    rows = await rpc.invoke(party.caller(), "message.v2.bootstrap", {"peer_aid": peer})
    return party.sealed(rows, payload, message_id)


async def sealed_to_group(party: Outsider, group_id: str, payload: Any) -> dict[str, Any]:
    rows = await rpc.invoke(party.caller(), "group.v2.bootstrap", {"group_id": group_id})
    return party.sealed_to_group(rows, payload)


async def put(party: Outsider, device: str = "phone") -> None:
    params = {"peer_aid": party.aid, **party.prekey()}
    await rpc.invoke(party.caller(device), "message.v2.put_peer_pk", params)


async def test_mail_goes_both_ways_between_a_stock_client_and_people_and_agents_here(
    world: World,
) -> None:
    tina = outsider(world.acme.tenant, "tina")
    said = {
        "type": "text",
        "text": "受け取って 🍵",
        "count": 3,
        "ratio": 0.5,
        "deep": [{"a": None}],
    }
    for device in ("phone", "tablet"):
        await put(tina, device)

    for aid in (alice_of(world), str(world.acme.agents["stock"].aid)):
        envelope = await sealed(tina, aid, said, "m-1")
        await envelopes.checked_direct(tina.caller(), aid, "m-1", envelope)
        assert await hosted.opened(world.acme.id, aid, tina.aid, envelope) == Opened(said)

        answer = await hosted.sealed_direct(world.acme.id, aid, tina.aid, said, "m-2")
        assert (answer["aad"]["to"], answer["aad"]["message_id"]) == (tina.aid, "m-2")
        assert answer["aad"]["wrap_protocol"] == "3DH"
        for device in ("phone", "tablet"):
            assert tina.opened(answer, key_of(world, aid), device) == said


async def test_a_first_word_from_here_reaches_who_never_connected(world: World) -> None:
    tina = outsider(world.acme.tenant, "tina")
    alice = alice_of(world)

    envelope = await hosted.sealed_direct(world.acme.id, alice, tina.aid, text("hi"), "m-1")

    assert [row[1] for row in envelope["recipients"]] == [""]
    assert tina.opened(envelope, key_of(world, alice), "first") == text("hi")


async def test_between_outside_parties_nothing_is_opened(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    envelope = await sealed(tina, otto.aid, text("canary"))

    assert await hosted.opened(world.acme.id, otto.aid, tina.aid, envelope) == Opened()

    team = group(world.acme.tenant, "team", tina.aid, otto.aid)
    envelope = await sealed_to_group(tina, team, text("canary"))
    assert await hosted.opened_group(world.acme.id, team, tina.aid, envelope) == Opened()


@pytest.mark.requirement("AUN-5")
async def test_what_cannot_be_opened_says_why_and_raises_nothing(world: World) -> None:
    tina, otto = outsider(world.acme.tenant, "tina"), outsider(world.acme.tenant, "otto")
    alice = alice_of(world)
    good = await sealed(tina, alice, text("secret"))

    def changed(**parts: Any) -> dict[str, Any]:
        return {**copy.deepcopy(good), **parts}

    def row(place: int, value: str) -> dict[str, Any]:
        made = copy.deepcopy(good)
        made["recipients"][0][place] = value
        return made

    stranger = await sealed(otto, alice, text("secret"))
    for_another = await sealed(tina, otto.aid, text("secret"))
    other_key = base64.b64encode(bytes(48)).decode()
    for reason, envelope in (
        ("unknown_sender_key", changed(sender_cert_fingerprint="sha256:" + "0" * 16)),
        ("unknown_sender_key", stranger),
        ("bad_signature", changed(sender_signature=stranger["sender_signature"])),
        ("bad_signature", changed(ciphertext=stranger["ciphertext"])),
        ("bad_signature", changed(aad={**good["aad"], "timestamp": 1})),
        ("bad_signature", changed(recipients_digest=stranger["recipients_digest"])),
        ("recipients_changed", row(7, other_key)),
        ("recipients_changed", row(1, "")),
        ("cannot_decrypt", changed(sender_session_pk=stranger["sender_session_pk"])),
        ("cannot_decrypt", changed(nonce=stranger["nonce"])),
        ("cannot_decrypt", changed(nonce="!")),
        ("cannot_decrypt", changed(recipients_digest="no hex")),
        ("not_a_recipient", for_another),
    ):
        found = await hosted.opened(world.acme.id, alice, tina.aid, envelope)
        assert found == Opened(reason=reason), reason
        assert len(reason) <= 40

    assert await hosted.opened(world.acme.id, alice, tina.aid, good) == Opened(text("secret"))


@pytest.mark.requirement("AUN-5")
async def test_what_no_frame_may_hold_does_not_come_in_encrypted_either(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tina = outsider(world.acme.tenant, "tina")
    alice = alice_of(world)
    rows = await rpc.invoke(tina.caller(), "message.v2.bootstrap", {"peer_aid": alice})

    for inside in (
        '{"type":"text","n":NaN}',
        '{"type":"text","n":1e999}',
        '{"type":"text","n":9007199254740993}',
        '{"type":"text","text":"\\ud800"}',
        '{"type":"text","text":"\\u0000"}',
        '{"type":"text","deep":' + "[" * 70 + "]" * 70 + "}",
        "[1]",
        '"text"',
        "null",
    ):
        _writing(monkeypatch, inside)
        envelope = tina.sealed(rows, CANARY)
        found = await hosted.opened(world.acme.id, alice, tina.aid, envelope)
        assert found == Opened(reason="bad_payload"), inside
    for inside in ("not json", ""):
        _writing(monkeypatch, inside)
        envelope = tina.sealed(rows, CANARY)
        found = await hosted.opened(world.acme.id, alice, tina.aid, envelope)
        assert found == Opened(reason="cannot_decrypt"), inside


async def test_a_key_the_sender_had_before_still_proves_what_it_signed(world: World) -> None:
    tina = outsider(world.acme.tenant, "tina")
    alice = alice_of(world)
    on_its_way = await sealed(tina, alice, text("in flight"))
    tina.new_key()

    found = await hosted.opened(world.acme.id, alice, tina.aid, on_its_way)

    assert found == Opened(text("in flight"))


async def test_a_key_we_cannot_get_at_makes_mail_unreadable_and_no_more(world: World) -> None:
    tina = outsider(world.acme.tenant, "tina")
    alice = alice_of(world)
    envelope = await sealed(tina, alice, text("secret"))
    db.transact_now(_lose_key, world.acme.id, alice)

    found = await hosted.opened(world.acme.id, alice, tina.aid, envelope)

    assert found == Opened(reason="key_unusable")


async def test_a_group_is_opened_once_for_all_its_hosted_members(world: World) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    alice, stock = alice_of(world), str(world.acme.agents["stock"].aid)
    await put(otto)
    team = group(acme, "team", tina.aid, otto.aid, alice, stock)
    envelope = await sealed_to_group(tina, team, text("all"))
    await envelopes.checked_group(tina.caller(), team, envelope["aad"]["message_id"], envelope)

    assert await hosted.opened_group(acme.id, team, tina.aid, envelope) == Opened(text("all"))
    assert otto.opened(envelope, tina.spki) == text("all")

    rows = await rpc.invoke(tina.caller(), "group.v2.bootstrap", {"group_id": team})
    for left_out, expected in (
        ({alice}, Opened(text("some"))),  # a member, though its sender forgot it
        ({alice, stock}, Opened(reason="not_a_recipient")),
    ):
        fewer = {**rows, "devices": [row for row in rows["devices"] if row["aid"] not in left_out]}
        envelope = tina.sealed_to_group(fewer, text("some"))
        assert await hosted.opened_group(acme.id, team, tina.aid, envelope) == expected


async def test_hosted_members_encrypt_to_everybody_else_in_a_mixed_group(world: World) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    alice, stock = alice_of(world), str(world.acme.agents["stock"].aid)
    for device in ("phone", "tablet"):
        await put(tina, device)
    team = group(acme, "team", alice, stock, tina.aid, otto.aid)
    assert await hosted.should_encrypt_group(acme.id, team)

    envelope = await hosted.sealed_group(acme.id, alice, team, text("all"), "m-1")

    assert [(row[0], row[1]) for row in envelope["recipients"]] == sorted(
        [(otto.aid, ""), (stock, "hosted"), (tina.aid, "phone"), (tina.aid, "tablet")]
    )
    assert envelope["aad"]["wrap_protocol"] == "1DH+3DH"
    for device in ("phone", "tablet"):
        assert tina.opened(envelope, key_of(world, alice), device) == text("all")
    assert otto.opened(envelope, key_of(world, alice), "first") == text("all")
    assert await hosted.opened_group(acme.id, team, alice, envelope) == Opened(text("all"))


async def test_a_group_of_hosted_members_alone_needs_no_encryption(world: World) -> None:
    acme = world.acme.tenant
    alice, stock = alice_of(world), str(world.acme.agents["stock"].aid)

    team = group(acme, "team", alice, stock)

    assert not await hosted.should_encrypt_group(acme.id, team)


async def test_whoever_turned_a_group_off_gets_no_row(world: World) -> None:
    acme = world.acme.tenant
    tina, otto = outsider(acme, "tina"), outsider(acme, "otto")
    alice = alice_of(world)
    team = group(acme, "team", alice, tina.aid, otto.aid)
    db.transact_now(_block, acme.id, team, otto.aid)

    envelope = await hosted.sealed_group(acme.id, alice, team, text("all"), "m-1")

    assert {row[0] for row in envelope["recipients"]} == {tina.aid}


async def test_an_answer_is_encrypted_as_the_latest_message_of_the_peer_was(world: World) -> None:
    acme = world.acme.id
    tina = outsider(world.acme.tenant, "tina")
    alice, stock = alice_of(world), str(world.acme.agents["stock"].aid)

    async def answers() -> bool:
        return await hosted.should_encrypt(acme, alice, tina.aid)

    assert await answers(), "the first word is encrypted"
    assert not await hosted.should_encrypt(acme, alice, stock), "it never leaves the server"
    assert await hosted.leaves_server(acme, tina.aid)
    assert not await hosted.leaves_server(acme, stock)
    assert not await hosted.leaves_server(acme, f"nobody{tina.aid[4:]}")
    past, soon = clock.now() - timedelta(seconds=1), clock.now() + timedelta(hours=1)
    for sender, receiver, said, expected in (
        (tina.aid, alice, {"payload": text("plain")}, False),
        (tina.aid, alice, {"payload": text("secret"), "envelope": "{}"}, True),
        (alice, tina.aid, {"payload": text("plain")}, True),  # her own tells nothing
        (tina.aid, alice, {"payload": text("plain again")}, False),
        (tina.aid, alice, {"envelope": "{}", "unreadable": "cannot_decrypt"}, True),
        (tina.aid, alice, {"payload": text("recalled")}, True),
        (tina.aid, alice, {"payload": text("expired"), "expires_at": past}, True),
        (tina.aid, alice, {"payload": text("plain"), "expires_at": soon}, False),
    ):
        db.transact_now(_stored, acme, sender, receiver, said)
        assert await answers() is expected, said


async def test_nothing_falls_back_to_plain_text_where_there_is_no_key(world: World) -> None:
    acme = world.acme.tenant
    tina = outsider(acme, "tina")
    alice = alice_of(world)
    team = group(acme, "team", alice, tina.aid)
    db.transact_now(certificates.revoke, acme.id, tina.aid)

    with pytest.raises(NoUsableKey) as refused:
        await hosted.sealed_direct(acme.id, alice, tina.aid, text("hi"), "m-1")
    assert refused.value.code == -33054
    with pytest.raises(NoUsableKey):
        await hosted.sealed_group(acme.id, alice, team, text("hi"), "m-1")
    with pytest.raises(NoSuchParty):
        await hosted.sealed_direct(acme.id, alice, f"nobody{tina.aid[4:]}", text("hi"), "m-1")


async def test_a_large_payload_is_sealed_and_opened_as_long_as_it_fits_a_frame(
    world: World,
) -> None:
    acme = world.acme.id
    tina = outsider(world.acme.tenant, "tina")
    alice = alice_of(world)
    large, too_large = text("x" * ((1 << 20) - 100)), text("x" * 1_400_000)

    envelope = await hosted.sealed_direct(acme, alice, tina.aid, large, "m-1")
    assert tina.opened(envelope, key_of(world, alice)) == large
    with pytest.raises(BadParams):
        await hosted.sealed_direct(acme, alice, tina.aid, too_large, "m-2")

    envelope = await sealed(tina, alice, text("x" * 700_000), "m-3")
    await envelopes.checked_direct(tina.caller(), alice, "m-3", envelope)
    assert await hosted.opened(acme, alice, tina.aid, envelope) == Opened(text("x" * 700_000))


async def test_a_private_key_shows_in_no_answer_and_no_traceback(world: World) -> None:
    acme = world.acme.tenant
    tina = outsider(acme, "tina")
    alice = alice_of(world)
    team = group(acme, "team", alice, tina.aid)
    scalar = db.read_now(identities.key_of, acme.id, alice)
    caller = db.read_now(identities.caller_of_user, world.person(world.acme["alice"]))

    told = [
        await rpc.invoke(who, name, params)
        for who in (tina.caller(), caller)
        for name, params in (
            ("message.v2.bootstrap", {"peer_aid": alice}),
            ("message.v2.bootstrap", {"peer_aid": tina.aid}),
            ("group.v2.bootstrap", {"group_id": team}),
            ("group.get_state", {"group_id": team}),
            ("group.v2.get_proposal", {"group_id": team}),
        )
    ]
    told += [await hosted.sealed_group(acme.id, alice, team, text("hi"), "m-1")]
    shown = [*map(json.dumps, told), repr(hosted._Reader(alice, scalar))]
    shown += [repr(Sealer(alice, scalar))]

    number = int.from_bytes(scalar, "big")
    forms = {scalar.hex(), base64.b64encode(scalar).decode(), str(number), repr(scalar)}
    assert not [text for text in shown for form in forms if form in text]


def _writing(monkeypatch: pytest.MonkeyPatch, inside: str) -> None:
    """Let the stock client write this text where a payload belongs."""

    def written(value: Any) -> bytes:
        return inside.encode() if value == CANARY else canonical_json(value)

    monkeypatch.setattr("aun_core.v2.e2ee.encrypt_p2p.canonical_json", written)


def _lose_key(work: Work, tenant_id: str, aid: str) -> None:
    found = work.session.get(Identity, (tenant_id, aid))
    assert found is not None
    found.key_sealed = b"\0" * 60
    work.session.add(found)


def _block(work: Work, tenant_id: str, group_id: str, aid: str) -> None:
    found = work.session.get(Member, (tenant_id, group_id, aid))
    assert found is not None
    found.blocked_at = clock.now()
    work.session.add(found)


def _stored(work: Work, tenant_id: str, sender: str, receiver: str, said: dict[str, Any]) -> None:
    sending = Direct(
        tenant_id=tenant_id,
        sender_aid=sender,
        receiver_aid=receiver,
        message_id=new_id(),
        **said,
    )
    made = delivery.store_direct(work, sending)
    if said.get("payload") == text("recalled"):
        row = work.session.get(Message, (tenant_id, made.id))
        assert row is not None
        row.recalled_at = clock.now()
        work.session.add(row)
