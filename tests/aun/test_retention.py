"""What goes with time, what stays, and that a reader is told from where on there is something."""

from typing import Any

import pytest
from sqlmodel import Session, select

from app.aun import delivery, retention, rpc
from app.aun.delivery import Direct
from app.aun.models import Conversation, InboxEntry, Message
from app.identity.models import Tenant
from app.kernel import db
from app.kernel.db import Work
from tests.aun import parties as people
from tests.aun.parties import Parties
from tests.clock import Clock


@pytest.fixture
def parties(clock: Clock, opened: str) -> Parties:
    return people.gather()


def say(parties: Parties, sender: str, receiver: str, *message_ids: str) -> None:
    for message_id in message_ids:
        sending = Direct(
            tenant_id=parties.id,
            sender_aid=sender,
            receiver_aid=receiver,
            message_id=message_id,
            payload={"text": message_id},
        )
        db.transact_now(delivery.store_direct, sending)


@pytest.mark.anyio
async def test_what_outsiders_said_a_month_ago_goes_and_the_floor_rises(
    parties: Parties, clock: Clock
) -> None:
    say(parties, parties.tina, parties.otto, "m-1", "m-2")
    say(parties, parties.tina, parties.alice, "h-1")
    clock.move(days=20)
    say(parties, parties.tina, parties.otto, "m-3")
    clock.move(days=11)

    assert retention.trim() == 2
    assert retention.trim() == 0

    assert _kept() == {"h-1", "m-3"}
    otto = parties.caller("otto")
    asked = {"cursor_scope": "peer", "sender_aid": parties.tina, "after_seq": 0}
    page = await rpc.invoke(otto, "message.v2.pull", asked)
    history = await rpc.invoke(
        otto, "message.history", {"cursor_scope": "peer", "sender_aid": parties.tina}
    )
    peers = await rpc.invoke(otto, "message.peers", {})
    assert (page["scan_after_seq"], page["retention_floor_seq"]) == (2, 2)
    assert [row["seq"] for row in page["messages"]] == [3]
    assert (history["has_older"], history["earliest_available_seq"]) == (False, 3)
    assert peers["peers"][0]["retention_floor_seq"] == 2
    assert peers["bootstrap_floor_seq"] == 0  # clients keep it for ever

    clock.move(days=30)
    assert retention.trim() == 1
    empty = await rpc.invoke(otto, "message.v2.pull", asked)
    assert (empty["messages"], empty["covered_through_seq"], empty["head_seq"]) == ([], 3, 3)
    assert {row.last_message_id for row in _all(Conversation)} == {None, _id("h-1")}
    assert [row.message for row in _all(InboxEntry)] == [_id("h-1")]


def test_what_people_here_take_part_in_stays_as_long_as_their_tenant_says(
    parties: Parties, clock: Clock
) -> None:
    globex = people.gather("globex", "globex.example")
    for each in (parties, globex):
        say(each, each.tina, each.alice, "m-1")
        say(each, each.alice, each.clerk, "m-2")
    clock.move(days=400)
    assert retention.trim() == 0

    db.transact_now(_keep_for, parties.id, 365)
    say(parties, parties.tina, parties.alice, "m-3")

    assert retention.trim() == 2
    assert {(row.tenant_id, row.message_id) for row in _all(Message)} == {
        (parties.id, "m-3"),
        (globex.id, "m-1"),
        (globex.id, "m-2"),
    }


def _keep_for(work: Work, tenant_id: str, days: int) -> None:
    tenant = work.session.get(Tenant, tenant_id)
    assert tenant is not None
    tenant.settings = {**tenant.settings, retention.SETTING: days}
    work.session.add(tenant)


def _kept() -> set[str]:
    return {row.message_id for row in _all(Message)}


def _id(message_id: str) -> str:
    return {str(row.message_id): str(row.id) for row in _all(Message)}[message_id]


def _all(model: type[Any]) -> list[Any]:
    def found(session: Session) -> list[Any]:
        return list(session.exec(select(model)))

    return db.read_now(found)
