"""Groups themselves: made once, found by whom they are for, handed on, suspended, over."""

import base64
import hashlib
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from app.aun import queries
from app.aun.pki import certificates, keys
from app.aun.pki.keys import PrivateKey
from app.kernel import clock, db
from app.kernel.db import Work
from tests.aun.group_calls import BASE, Calls, calls_in
from tests.people import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def calls(world: World) -> Calls:
    return calls_in(world)


def public(key: PrivateKey) -> str:
    return base64.b64encode(keys.spki(key.public_key())).decode()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def consent(key: PrivateKey, *parts: str, issued_ms: int | None = None) -> dict[str, Any]:
    at = issued_ms or int(clock.now().timestamp() * 1000)
    said = "|".join([*parts, "nonce-1", str(at)])
    return {"nonce": "nonce-1", "issued_ms": at, "signature": keys.sign(key, said)}


async def test_a_new_group_has_a_number_its_maker_owns_it_and_a_lost_answer_makes_no_second(
    calls: Calls,
) -> None:
    asked = {"name": "Team", "_create_request_id": "anon:1", "metadata": {"colour": "blue"}}
    made = await calls("tina", "group.create", **asked)
    again = await calls("tina", "group.create", **asked)
    others = await calls("otto", "group.create", **asked)
    third = await calls("tina", "group.create", name="Another")

    group = made["group"]
    assert group["group_id"] == group["group_aid"] == f"10001.{BASE}"
    assert group["owner_aid"] == group["creator_aid"] == calls.parties.tina
    assert (group["visibility"], group["join_mode"], group["status"]) == (
        "private",
        "approval",
        "active",
    )
    assert (group["member_count"], group["message_seq"], group["event_seq"]) == (1, 0, 1)
    assert group["metadata"] == {"colour": "blue"}
    assert again["group"] == group
    assert others["group"]["group_id"] == f"10002.{BASE}"
    assert third["group"]["group_id"] == f"10003.{BASE}"
    assert "aid_cert" not in made


async def test_a_named_group_has_a_certificate_and_the_same_key_finds_it_again(
    calls: Calls,
) -> None:
    key, other = keys.generate(), keys.generate()
    asked = {"name": "Named", "group_name": "sales-team", "visibility": "public"}
    made = await calls("tina", "group.create", public_key=public(key), **asked)

    assert made["group"]["group_aid"] == f"sales-team.{BASE}"
    assert made["group"]["join_mode"] == "open", "what is public lets people in"
    leaf = x509.load_pem_x509_certificate(made["aid_cert"]["cert"].encode())
    [name] = leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert name.value == f"sales-team.{BASE}"
    assert leaf.public_key() == key.public_key()
    assert made["aid_cert"]["cert_sn"] == format(leaf.serial_number, "x")
    issuer = x509.load_pem_x509_certificate(made["aid_cert"]["ca_cert"].encode())
    leaf.verify_directly_issued_by(issuer)

    again = await calls("tina", "group.create", public_key=public(key), **asked)
    assert again["group"] == made["group"]
    assert again["aid_cert"]["cert"] == made["aid_cert"]["cert"]
    differs = await calls.refused("tina", "group.create", public_key=public(other), **asked)
    assert differs.text == "group_aid_already_bound_different_key"
    taken = await calls.refused("otto", "group.create", public_key=public(other), **asked)
    assert (taken.code, taken.data["retryable"]) == (-33002, False)
    for name_of_one in ("otto", "alice", "gateway", "group"):
        asked["group_name"] = name_of_one
        refused = await calls.refused("tina", "group.create", public_key=public(key), **asked)
        assert refused.code == -33002, "people and groups share their names"
    for bad in ("Abc", "abc", "12345", "a.bcd", "team@x"):
        asked["group_name"] = bad
        refused = await calls.refused("tina", "group.create", public_key=public(key), **asked)
        assert refused.code == -32602
    p384 = ec.generate_private_key(ec.SECP384R1())
    for no_key in ("AAAA", "", base64.b64encode(keys.spki(p384.public_key())).decode()):
        asked["group_name"] = "other-team"
        refused = await calls.refused("tina", "group.create", public_key=no_key, **asked)
        assert refused.code == -32602


async def test_a_numbered_group_gets_a_key_once(calls: Calls) -> None:
    group = await calls.group("tina", "otto")
    key = keys.generate()
    bound = await calls("tina", "group.bind_group_aid", group_id=group, public_key=public(key))
    again = await calls("tina", "group.bind_group_aid", group_id=group, public_key=public(key))
    assert bound["aid_cert"]["cert"] == again["aid_cert"]["cert"]

    other = {"group_id": group, "public_key": public(keys.generate())}
    refused = await calls.refused("tina", "group.bind_group_aid", **other)
    assert refused.text == "group_aid_already_bound_different_key"
    refused = await calls.refused("otto", "group.bind_group_aid", **other)
    assert refused.code == -32004


async def test_who_holds_the_old_key_gives_the_group_a_new_one(calls: Calls) -> None:
    group = await calls.group("tina")
    old, new = keys.generate(), keys.generate()
    await calls("tina", "group.bind_group_aid", group_id=group, public_key=public(old))
    asked = {"group_id": group, "old_public_key": public(old), "new_public_key": public(new)}
    parts = ["aun-group-aid-renew-v1", group, group, digest(public(old)), digest(public(new))]
    for bad in (
        consent(new, *parts),
        consent(old, *parts[:-1], digest("another")),
        consent(old, *parts, issued_ms=1),
    ):
        refused = await calls.refused("tina", "group.renew_group_aid", renew_proof=bad, **asked)
        assert refused.code == -32051

    good = consent(old, *parts)
    renewed = await calls("tina", "group.renew_group_aid", renew_proof=good, **asked)
    leaf = x509.load_pem_x509_certificate(renewed["aid_cert"]["cert"].encode())
    assert leaf.public_key() == new.public_key()
    again = await calls("tina", "group.renew_group_aid", renew_proof=good, **asked)
    assert again["aid_cert"]["cert"] == renewed["aid_cert"]["cert"]
    rows = db.read_now(queries.certificates, calls.parties.id, group)
    assert sorted(row.state for row in rows) == ["active", "revoked"]


async def test_a_stranger_does_not_learn_of_a_private_group(calls: Calls) -> None:
    private = await calls.group("tina", "alice", name="Secret plans")
    open_one = await calls.group("tina", name="Open house", visibility="public")

    asked: dict[str, dict[str, Any]] = {
        "group.get_info": {},
        "group.get_members": {},
        "group.v2.pull": {"after_seq": 0},
        "group.pull_events": {},
        "group.get_settings": {},
        "group.request_join": {},
        "group.leave": {},
        "group.get_master": {},
        "group.send": {"payload": {"type": "text", "text": "x"}},
        "group.history": {"before_seq": 9},
        "group.get_member_statuses": {},
    }
    for name, more in asked.items():
        there = await calls.refused("owen", name, group_id=private, **more)
        nowhere = await calls.refused("owen", name, group_id=f"nowhere.{BASE}", **more)
        assert (there.code, there.text, there.data) == (nowhere.code, nowhere.text, nowhere.data)
        assert (there.code, there.data["retryable"]) == (-33001, False), name

    shown = await calls("owen", "group.get_info", group_id=open_one)
    assert (shown["found"], shown["name"]) == (True, "Open house")
    assert "event_seq" not in shown
    assert "my_role" not in shown
    assert (await calls("tina", "group.get_info", group_id=private))["my_role"] == "owner"
    refused = await calls.refused("owen", "group.get_members", group_id=open_one)
    assert (refused.code, refused.data["retryable"]) == (-33005, False)
    assert "not a member" in refused.text

    found = await calls("owen", "group.search", query="O")
    assert [each["group_id"] for each in found["items"]] == [open_one]
    assert (await calls("owen", "group.search", query="Secret"))["items"] == []
    assert (await calls("owen", "group.search", query="%"))["items"] == []


async def test_the_other_way_to_write_a_groups_id_is_understood_and_others_are_not(
    calls: Calls,
) -> None:
    group = await calls.group("tina")
    base = group.partition(".")[0]

    shown = await calls("tina", "group.get_info", group_id=f"group.{BASE}/{base}")
    assert shown["group_id"] == group
    assert (await calls("tina", "group.get_info", group_aid=group))["group_aid"] == group
    for bad in (f"{base}@{BASE}", base, f"Abcd.{BASE}", "", f"abc.{BASE}"):
        assert (await calls.refused("tina", "group.get_info", group_id=bad)).code == -32602


async def test_lists_tell_which_groups_are_suspended_or_over(calls: Calls) -> None:
    active, suspended, dissolved = [
        await calls.group("tina", "otto", name=name) for name in ("One", "Two", "Three")
    ]
    await calls("tina", "group.suspend", group_id=suspended)
    assert (await calls("tina", "group.suspend", group_id=suspended))["status"] == "unchanged"
    await calls("tina", "group.dissolve", group_id=dissolved)

    for name in ("group.list_my", "group.list"):
        listed = await calls("otto", name)
        assert {each["group_id"]: each["status"] for each in listed["items"]} == {
            active: "active",
            suspended: "suspended",
            dissolved: "dissolved",
        }
        assert {each["role"] for each in listed["items"]} == {"member"}
        assert listed["total"] == 3


async def test_in_a_suspended_group_owner_and_administrators_write(calls: Calls) -> None:
    group = await calls.group("tina", "otto", "owen")
    await calls("tina", "group.set_role", group_id=group, aid=calls.parties.otto, role="admin")
    assert (await calls.refused("owen", "group.suspend", group_id=group)).code == -32004
    await calls("otto", "group.suspend", group_id=group)

    await calls.say("tina", group, "owner")
    await calls.say("otto", group, "admin")
    refused = await calls.refused(
        "owen", "group.send", group_id=group, payload={"type": "text", "text": "member"}
    )
    assert refused.code == -33002
    assert await calls.texts("owen", group) == ["owner", "admin"]
    alice = calls.parties.alice
    refused = await calls.refused("tina", "group.add_member", group_id=group, aid=alice)
    assert refused.code == -33002

    await calls("tina", "group.resume", group_id=group)
    assert (await calls.say("owen", group, "again"))["seq"] == 3, "no number was lost"


async def test_a_dissolved_group_can_be_read_and_nothing_else(calls: Calls) -> None:
    group = await calls.group("tina", "otto")
    key = keys.generate()
    await calls("tina", "group.bind_group_aid", group_id=group, public_key=public(key))
    await calls.say("otto", group, "before")
    invited = await calls("tina", "group.invite_member", group_id=group, aid=calls.parties.owen)
    assert (await calls.refused("otto", "group.dissolve", group_id=group)).code == -32004

    over = await calls("tina", "group.dissolve", group_id=group)
    again = await calls("tina", "group.dissolve", group_id=group)

    assert over["status"] == again["status"] == "dissolved"
    assert again["group"]["event_seq"] == over["group"]["event_seq"]
    assert await calls.texts("otto", group) == ["before"]
    writes: dict[str, dict[str, Any]] = {
        "group.send": {"payload": {"type": "text", "text": "x"}},
        "group.resume": {},
        "group.update": {"name": "New"},
        "group.add_member": {"aid": calls.parties.owen},
    }
    for name, more in writes.items():
        refused = await calls.refused("tina", name, group_id=group, **more)
        assert (refused.code, refused.data["retryable"]) == (-33003, False)
        assert "dissolved" in refused.text
    refused = await calls.refused("owen", "group.accept_invite", invite_id=invited["invite_id"])
    assert "not pending" in refused.text
    [row] = db.read_now(queries.certificates, calls.parties.id, group)
    assert row.state == "revoked"
    with_name = {"name": "Again", "group_name": group.partition(".")[0]}
    refused = await calls.refused("owen", "group.create", public_key=public(key), **with_name)
    assert refused.code == -32602, "a number is never a name of somebody's choice"


async def test_a_group_without_a_key_is_handed_on_at_once(calls: Calls) -> None:
    group = await calls.group("tina", "alice", metadata={"colour": "blue"})
    await calls("alice", "group.block", group_id=group, aid=calls.parties.alice)
    for bad in (calls.parties.tina, calls.parties.owen):
        await calls.refused("tina", "group.transfer_owner", group_id=group, new_owner=bad)
    refused = await calls.refused(
        "alice", "group.transfer_owner", group_id=group, new_owner=calls.parties.alice
    )
    assert refused.code == -32004

    told = await calls(
        "tina", "group.transfer_owner", group_id=group, new_owner=calls.parties.alice
    )

    assert (told["status"], told["group"]["owner_aid"]) == ("transferred", calls.parties.alice)
    members = await calls("alice", "group.get_members", group_id=group)
    assert [(each["aid"], each["role"]) for each in members["members"]] == [
        (calls.parties.alice, "owner"),
        (calls.parties.tina, "admin"),
    ]
    assert told["group"]["metadata"] == {"colour": "blue"}
    row = db.read_now(queries.identity, calls.parties.id, group)
    assert row is not None
    assert row.owner_id == calls.parties.alice, "whose token publishes its card"


async def test_a_group_with_a_key_changes_hands_with_the_key(calls: Calls) -> None:
    group, otto = await calls.group("tina", "otto", "owen"), calls.parties.otto
    old, new = keys.generate(), keys.generate()
    own = _certify(calls, otto)
    await calls("tina", "group.bind_group_aid", group_id=group, public_key=public(old))
    parts = ["aun-group-owner-transfer-v1", group, group, otto]
    asked = {"group_id": group, "new_owner": otto}
    refused = await calls.refused("tina", "group.transfer_owner", **asked)
    assert refused.code == -32051
    refused = await calls.refused(
        "tina", "group.transfer_owner", transfer_auth=consent(new, *parts), **asked
    )
    assert refused.code == -32051

    told = await calls("tina", "group.transfer_owner", transfer_auth=consent(old, *parts), **asked)
    assert (told["status"], told["group"]["owner_aid"]) == ("pending_rekey", calls.parties.tina)

    accept = ["aun-group-owner-transfer-accept-v1", group, group]
    taken = {"group_id": group, "public_key": public(new)}
    for who, signer, key in (("owen", own, new), ("otto", new, new), ("otto", own, old)):
        given = {"group_id": group, "public_key": public(key)}
        aid = getattr(calls.parties, who)
        bad = consent(signer, *accept, aid, digest(public(key)))
        await calls.refused(who, "group.complete_transfer", transfer_accept=bad, **given)
    good = consent(own, *accept, otto, digest(public(new)))
    done = await calls("otto", "group.complete_transfer", transfer_accept=good, **taken)
    again = await calls("otto", "group.complete_transfer", transfer_accept=good, **taken)

    assert (done["status"], done["old_owner"]) == ("transferred", calls.parties.tina)
    assert done["group"]["owner_aid"] == otto
    leaf = x509.load_pem_x509_certificate(done["aid_cert"]["cert"].encode())
    assert leaf.public_key() == new.public_key()
    assert again["aid_cert"]["cert"] == done["aid_cert"]["cert"]
    assert again["old_owner"] == calls.parties.tina
    events = await calls("otto", "group.pull_events", group_id=group)
    told_of = [each for each in events["events"] if each["action"].startswith("owner_")]
    assert [(each["action"], each["status"]) for each in told_of] == [
        ("owner_transfer_rekey_pending", "pending_rekey"),
        ("owner_transferred", "transferred"),
    ]


async def test_administrators_say_what_a_group_is_called(calls: Calls) -> None:
    group = await calls.group("tina", "otto", metadata={"a": 1})
    new = {"name": "Renamed", "description": "About it", "metadata": {"b": 2}}
    assert (await calls.refused("otto", "group.update", group_id=group, **new)).code == -32004

    told = (await calls("tina", "group.update", group_id=group, **new))["group"]

    assert (told["name"], told["description"], told["metadata"]) == (
        "Renamed",
        "About it",
        {"b": 2},
    )
    bads: list[dict[str, Any]] = [
        {"name": ""},
        {"name": "x" * 201},
        {"visibility": "secret"},
        {"metadata": []},
    ]
    for bad in bads:
        assert (await calls.refused("tina", "group.update", group_id=group, **bad)).code == -32602
    big = {"metadata": {"x": "y" * 20_000}}
    assert (await calls.refused("tina", "group.update", group_id=group, **big)).code == -32602


async def test_no_group_takes_a_name_that_passes_for_another(calls: Calls) -> None:
    group = await calls.group("tina", name="Team")
    for hidden in (
        "Te\u200bam",
        "Team\u202e",
        "\u2800\u2800",
        "\ufeffTeam",
        "Team\n",
        "Te\u00adam",
    ):
        made = await calls.refused("tina", "group.create", name=hidden)
        changed = await calls.refused("tina", "group.update", group_id=group, name=hidden)
        assert (made.code, changed.code) == (-32602, -32602)
        for refused in (made, changed):
            assert str(refused).endswith("a name can hold no characters that nobody sees")
    for seen in ("Team \u56e2\u961f", "\U0001f469\u200d\U0001f4bb Team"):
        await calls("tina", "group.create", name=seen)


async def test_members_named_in_the_making_are_in_it(calls: Calls) -> None:
    named = [calls.parties.alice, {"aid": calls.parties.stock}, calls.parties.tina]
    made = await calls("tina", "group.create", name="All at once", members=named)

    assert made["group"]["member_count"] == 3
    members = await calls("alice", "group.get_members", group_id=made["group"]["group_id"])
    kinds = {each["aid"]: each["member_type"] for each in members["items"]}
    assert (kinds[calls.parties.alice], kinds[calls.parties.stock]) == ("human", "ai")


def _certify(calls: Calls, aid: str) -> PrivateKey:
    key = keys.generate()
    db.transact_now(_issue, calls.parties.id, aid, key)
    return key


def _issue(work: Work, tenant_id: str, aid: str, key: PrivateKey) -> None:
    certificates.issue(work, tenant_id, aid, key.public_key())
