"""Reading an inbox: what a page covers, as the stock client checks it, and what moves a cursor."""

from dataclasses import dataclass
from typing import Any

import pytest
from aun_core._client.delivery import MessageDeliveryEngine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.aun import delivery, inbox, rpc
from app.aun.caller import Caller
from app.aun.delivery import Direct
from app.aun.errors import BadParams
from app.aun.events import Acknowledged
from app.aun.methods import message_inbox
from app.aun.models import IdentityKind
from app.kernel import db, events, json
from app.kernel.db import Work
from tests.aun import parties as people
from tests.aun.parties import Parties

SHARED_DATABASE = settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class StockEngine(MessageDeliveryEngine):
    """What receives in the stock client, of a device that acknowledged nothing."""

    def __init__(self) -> None:
        pass

    def _peer_durable_ack(self, ns: str) -> int:
        return 0

    @staticmethod
    def peer_namespace(sender_aid: str) -> str:
        return sender_aid


@pytest.fixture
def parties(opened: str) -> Parties:
    return people.gather()


@dataclass
class Told:
    """One message of a story: for all devices, one of two, the AID, or of somebody else."""

    kind: str
    size: int = 10


def envelope(message_id: str, sender: str, *wraps: tuple[str, str]) -> dict[str, Any]:
    return {
        "type": "e2ee.p2p_encrypted",
        "version": "v2",
        "recipients": [[aid, device, "peer", "", "", "", "", ""] for aid, device in sorted(wraps)],
        "aad": {"from": sender, "message_id": message_id},
    }


def tell(work: Work, parties: Parties, sender: str, receiver: str, told: list[Told]) -> list[int]:
    """Store them; gives the numbers that the phone may read of `sender`."""
    readable = []
    for number, each in enumerate(told):
        message_id = f"m-{number}"
        payload: dict[str, Any] | None = {"type": "text", "text": "x" * each.size}
        sealed = None
        if each.kind in {"phone", "tablet", "aid"}:
            device = "" if each.kind == "aid" else each.kind
            made = envelope(message_id, sender, (receiver, device), (parties.alice, "hosted"))
            payload, sealed = None, json.dumps(made).decode()
        stored = delivery.store_direct(
            work,
            Direct(
                tenant_id=parties.id,
                sender_aid=parties.alice if each.kind == "other" else sender,
                receiver_aid=receiver,
                message_id=f"{receiver[:30]}-{message_id}",
                payload=payload,
                envelope=sealed,
            ),
        )
        if each.kind in {"all", "phone", "aid"}:
            readable.append(stored.seq)
    return readable


async def pull(caller: Caller, sender: str, **params: Any) -> dict[str, Any]:
    told = {"cursor_scope": "peer", "sender_aid": sender, **params}
    return await rpc.invoke(caller, "message.v2.pull", told)


def checked(page: dict[str, Any], sender: str, after_seq: int, limit: int, mode: str = "") -> None:
    """The stock client's own check of a page; a page it refuses, it refuses for ever."""
    StockEngine()._peer_pull_proof(
        sender, page, {"after_seq": after_seq}, mode=mode or None, force=False, limit=limit
    )


def seqs(page: dict[str, Any]) -> list[int]:
    return [row["seq"] for row in page["messages"]]


STORY = st.lists(
    st.builds(
        Told,
        st.sampled_from(["all", "phone", "tablet", "aid", "other"]),
        st.sampled_from([10, 400_000]),
    ),
    max_size=9,
)


@pytest.mark.anyio
@pytest.mark.requirement("AUN-5")
async def test_every_page_of_any_inbox_passes_the_clients_check(parties: Parties) -> None:
    made = iter(range(1_000))

    @SHARED_DATABASE
    @given(STORY, st.integers(1, 5), st.integers(0, 12))
    def walk(told: list[Told], limit: int, after_seq: int) -> None:
        name = f"reader-{next(made)}"
        parties.add(name, IdentityKind.OUTSIDE)
        reader, sender = parties.caller(name), parties.tina
        readable = db.transact_now(tell, parties, sender, reader.aid, told)
        head = max([0, *_seqs_of_sender(told)])

        got, at = [], after_seq
        for _ in range(len(told) + 1):
            page = _read(reader, sender, after_seq=at, limit=limit)
            checked(page, sender, at, limit)
            assert page["head_seq"] == max(head, after_seq)
            assert page["server_ack_seq"] == 0
            assert len(json.dumps(page["messages"])) < 2 << 20
            if page["persistent_has_more"]:
                assert page["messages"], "never empty while there is more"
                assert page["covered_through_seq"] == seqs(page)[-1]
                assert page["next_pending_seq"] > seqs(page)[-1]
            else:
                assert page["covered_through_seq"] == page["head_seq"]
                assert "next_pending_seq" not in page
            got += seqs(page)
            at = page["next_after_seq"]
            if not page["has_more"]:
                break
        assert got == [seq for seq in readable if seq > after_seq]

        tail = _read(reader, sender, after_seq=after_seq, limit=limit, window_mode="tail")
        checked(tail, sender, after_seq, limit, "tail")
        later = [seq for seq in readable if seq > after_seq]
        assert seqs(tail) == later[len(later) - len(seqs(tail)) :]
        assert bool(seqs(tail)) == bool(later)
        assert "volatile_cursor" not in str(tail["messages"])

    walk()


def _seqs_of_sender(told: list[Told]) -> list[int]:
    return [seq for seq, each in enumerate(told, 1) if each.kind != "other"]


def _read(caller: Caller, sender: str, **params: Any) -> dict[str, Any]:
    asked = message_inbox.Pull(cursor_scope="peer", sender_aid=sender, **params)
    return db.read_now(message_inbox.pull, caller, asked)


@pytest.mark.anyio
async def test_an_acknowledgement_moves_forward_only_and_never_beyond_what_is_there(
    parties: Parties,
) -> None:
    made = iter(range(1_000))

    @SHARED_DATABASE
    @given(st.integers(0, 4), st.lists(st.integers(0, 9), max_size=6))
    def acknowledge(stored: int, asked: list[int]) -> None:
        name = f"acker-{next(made)}"
        parties.add(name, IdentityKind.OUTSIDE)
        reader = parties.caller(name)
        db.transact_now(tell, parties, parties.tina, reader.aid, [Told("all")] * stored)
        reached = 0
        for up_to_seq in asked:
            params = message_inbox.Ack(
                cursor_scope="peer", sender_aid=parties.tina, up_to_seq=up_to_seq
            )
            told = db.transact_now(message_inbox.ack, reader, params)

            assert told.peer_ack_seq == max(reached, min(up_to_seq, stored))
            assert told.effective_ack_seq >= up_to_seq  # else the client takes it for an error
            reached = told.peer_ack_seq
            page = _read(reader, parties.tina, after_seq=0)
            assert page["server_ack_seq"] == reached
            assert len(page["messages"]) == stored  # an acknowledgement hides nothing

    acknowledge()


@pytest.mark.anyio
async def test_each_device_and_slot_has_a_cursor_of_its_own(parties: Parties) -> None:
    told: list[Acknowledged] = []
    end = events.subscribe(Acknowledged, told.append)
    db.transact_now(tell, parties, parties.tina, parties.otto, [Told("all")] * 3)
    phone, work = parties.caller("otto"), parties.caller("otto", slot="work")
    tablet = parties.caller("otto", device="tablet")

    await ack(phone, parties.tina, 2)
    again = await ack(phone, parties.tina, 2)
    end()

    assert again["effective_ack_seq"] == 2
    assert len(told) == 1
    assert await pending(phone) == {parties.tina: (3, 2)}
    assert await pending(work) == {parties.tina: (3, 0)}
    assert await pending(tablet) == {parties.tina: (3, 0)}

    await ack(phone, parties.tina, 3)
    assert await pending(phone) == {}


@pytest.mark.anyio
async def test_parameters_choose_among_ones_own_cursors_alone(parties: Parties) -> None:
    db.transact_now(tell, parties, parties.tina, parties.otto, [Told("all")] * 2)
    phone = parties.caller("otto")

    await ack(phone, parties.tina, 1, device_id="tablet", slot_id="work/1")
    stranger = await pull(
        parties.caller("owen"), parties.tina, device_id="phone", after_seq=0, receiver=parties.otto
    )

    assert await pending(parties.caller("otto", "tablet", "work")) == {parties.tina: (2, 1)}
    assert await pending(phone) == {parties.tina: (2, 0)}
    assert stranger["messages"] == []


@pytest.mark.anyio
async def test_a_pull_acknowledges_first_and_reports_what_was_reached(parties: Parties) -> None:
    db.transact_now(tell, parties, parties.tina, parties.otto, [Told("all")] * 3)
    phone = parties.caller("otto")

    page = await pull(phone, parties.tina, after_seq=2, ack_up_to_seq=2)
    beyond = await pull(phone, parties.tina, after_seq=9, ack_up_to_seq=9)
    behind = await pull(phone, parties.tina, after_seq=0, ack_up_to_seq=1)
    unsaid = await pull(phone, parties.tina)

    assert (page["server_ack_seq"], seqs(page)) == (2, [3])
    assert beyond["server_ack_seq"] == 3
    assert beyond["head_seq"] == beyond["covered_through_seq"] == beyond["next_after_seq"] == 9
    assert (beyond["messages"], beyond["has_more"]) == ([], False)
    assert (behind["server_ack_seq"], seqs(behind)) == (3, [1, 2, 3])
    assert seqs(unsaid) == []  # from the acknowledged on


@pytest.mark.anyio
async def test_peers_are_told_whole_or_in_pages(parties: Parties) -> None:
    globex = people.gather("globex", "globex.example")
    for sender in (parties.tina, parties.owen):
        db.transact_now(tell, parties, sender, parties.otto, [Told("all")])
    otto = parties.caller("otto")
    assert await pending(globex.caller("otto")) == {}

    told = await rpc.invoke(otto, "message.peers", {"filter": "pending"})
    first = await rpc.invoke(otto, "message.peers", {"filter": "all", "limit": 1})
    second = await rpc.invoke(
        otto,
        "message.peers",
        {"filter": "all", "limit": 1, "page_token": first["next_page_token"]},
    )

    assert (told["cursor_scope"], told["catalog_ready"]) == ("peer", True)
    assert (told["bootstrap_floor_seq"], told["receiver_aid"]) == (0, parties.otto)
    assert told["device_id"] == "phone"
    assert "has_more" not in told
    assert [peer["sender_aid"] for peer in told["peers"]] == [parties.owen, parties.tina]
    assert told["peers"][0] == {
        "sender_aid": parties.owen,
        "head_seq": 2,
        "server_ack_seq": 0,
        "initial_after_seq": 0,
        "initialization_source": "peer",
        "next_pending_seq": 0,
        "volatile_has_more": False,
        "retention_floor_seq": 0,
        "earliest_available_seq": 1,
    }
    pages = [first, second]
    assert [page["peers"][0]["sender_aid"] for page in pages] == [parties.owen, parties.tina]
    assert [page["has_more"] for page in pages] == [True, False]
    for wrong in ({"filter": "pending", "limit": 5}, {"filter": "mine"}):
        with pytest.raises(BadParams):
            await rpc.invoke(otto, "message.peers", wrong)


@pytest.mark.anyio
async def test_rows_have_the_shape_that_clients_take(parties: Parties) -> None:
    otto = parties.caller("otto")
    db.transact_now(
        tell, parties, parties.tina, otto.aid, [Told("all"), Told("other"), Told("phone")]
    )

    page = await pull(otto, parties.tina, after_seq=0)

    plain, sealed = page["messages"]
    assert plain == {
        "seq": 1,
        "message_id": plain["message_id"],
        "from_aid": parties.tina,
        "sender_aid": parties.tina,
        "sender_device_id": "",
        "t_server": plain["t_server"],
        "type": "",
        "direction": "inbound",
        "need_render": True,
        "prev_peer_seq": 0,
        "version": "v1",
        "legacy_v1": {"payload": {"type": "text", "text": "x" * 10}, "to": otto.aid},
    }
    assert (sealed["seq"], sealed["prev_peer_seq"], sealed["version"]) == (3, 1, "v2")
    assert json.of_column(sealed["envelope_json"])["type"] == "e2ee.p2p_encrypted"
    assert not {"payload", "legacy_v1"} & sealed.keys()
    assert (page["count"], page["page_need_render_count"]) == (2, 2)
    assert page["page_non_render_count"] == 0


@pytest.mark.anyio
async def test_a_hosted_reader_gets_what_the_server_read_for_it(parties: Parties) -> None:
    sealed = json.dumps(envelope("m-1", parties.tina, (parties.clerk, "hosted"))).decode()
    for message_id, payload, reason in (("m-1", {"text": "hi"}, None), ("m-2", None, "no_key")):
        db.transact_now(
            delivery.store_direct,
            Direct(
                tenant_id=parties.id,
                sender_aid=parties.tina,
                receiver_aid=parties.clerk,
                message_id=message_id,
                payload=payload,
                envelope=sealed,
                unreadable=reason,
            ),
        )

    page = await pull(parties.caller("clerk"), parties.tina, after_seq=0)

    read, unread = page["messages"]
    assert (read["version"], read["encrypted"]) == ("v1", True)
    assert read["legacy_v1"]["payload"] == {"text": "hi"}
    assert unread["unreadable"] == "no_key"
    assert "envelope_json" not in str(page)


@pytest.mark.anyio
async def test_history_goes_back_page_by_page_and_moves_nothing(parties: Parties) -> None:
    otto = parties.caller("otto")
    story = [Told(kind) for kind in ("all", "other", "tablet", "all", "phone", "all")]
    db.transact_now(tell, parties, parties.tina, otto.aid, story)
    ask = {"cursor_scope": "peer", "sender_aid": parties.tina, "limit": 2}

    newest = await rpc.invoke(otto, "message.history", ask)
    older = await rpc.invoke(
        otto, "message.history", ask | {"before_seq": newest["next_before_seq"]}
    )
    oldest = await rpc.invoke(otto, "message.history", ask | {"before_seq": 1})
    snapshot = await rpc.invoke(otto, "message.history", ask | {"snapshot_head_seq": 4})

    assert (seqs(newest), newest["has_older"]) == ([5, 6], True)
    assert newest["window_start_seq"] == newest["next_before_seq"] == 5
    assert (seqs(older), older["has_older"]) == ([1, 4], False)
    assert (seqs(oldest), oldest["has_older"]) == ([], False)
    assert oldest["window_start_seq"] is None
    assert oldest["next_before_seq"] is None
    assert (seqs(snapshot), snapshot["snapshot_head_seq"]) == ([1, 4], 4)
    assert await pending(otto) == {parties.alice: (2, 0), parties.tina: (6, 0)}


@pytest.mark.anyio
async def test_limits_are_clamped_and_what_is_no_peer_scope_is_refused(parties: Parties) -> None:
    otto = parties.caller("otto")
    db.transact_now(tell, parties, parties.tina, otto.aid, [Told("all")] * 2)

    assert len((await pull(otto, parties.tina, after_seq=0, limit=0))["messages"]) == 1
    assert len((await pull(otto, parties.tina, after_seq=0, limit=10**6))["messages"]) == 2
    assert inbox.MOST_ROWS == 200
    for wrong in (
        {"cursor_scope": "global"},
        {"after_seq": -1},
        {"after_seq": "1"},
        {"window_mode": "head"},
        {"sender_aid": ""},
    ):
        with pytest.raises(BadParams):
            await pull(otto, parties.tina, **wrong)


@pytest.mark.anyio
async def test_a_copy_for_the_senders_other_devices_is_their_own_message(parties: Parties) -> None:
    tina = parties.tina
    made = envelope("m-1", tina, (parties.otto, "phone"), (tina, "tablet"))
    db.transact_now(
        delivery.store_direct,
        Direct(
            tenant_id=parties.id,
            sender_aid=tina,
            sender_device="phone",
            receiver_aid=parties.otto,
            message_id="m-1",
            envelope=json.dumps(made).decode(),
            is_copied=True,
        ),
    )

    tablet = await pull(parties.caller("tina", "tablet"), tina, after_seq=0)
    phone = await pull(parties.caller("tina"), tina, after_seq=0)

    [row] = tablet["messages"]
    assert (row["direction"], row["to"], row["sender_aid"]) == (
        "outbound_sync",
        parties.otto,
        tina,
    )
    assert (phone["messages"], phone["covered_through_seq"]) == ([], 1)


async def ack(caller: Caller, sender: str, up_to_seq: int, **params: Any) -> dict[str, Any]:
    told = {"cursor_scope": "peer", "sender_aid": sender, "up_to_seq": up_to_seq, **params}
    return await rpc.invoke(caller, "message.v2.ack", told)


async def pending(caller: Caller) -> dict[str, tuple[int, int]]:
    told = await rpc.invoke(caller, "message.peers", {"filter": "pending"})
    return {
        peer["sender_aid"]: (peer["head_seq"], peer["server_ack_seq"]) for peer in told["peers"]
    }
