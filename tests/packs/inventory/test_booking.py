"""Many at once on one shelf: nothing is lost, nothing goes below zero, and nobody gets a fault."""

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import col, func, select

from app.commands import numbers, pipeline
from app.commands.call import Call
from app.commands.outcome import Done
from app.commands.refused import Refused
from app.kernel import clock, db
from app.kernel.db import Work
from app.packs.inventory.models import Item, Move
from tests.packs.inventory.warehouse import Warehouse

CLIENTS, ROUNDS = 64, 2
BLOCKS = text("SELECT 1 FROM pg_locks WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)) LIMIT 1")
LONGEST_S = 20


@pytest.mark.requirement("CMD-25", "CMD-F10")
async def test_many_clients_on_one_shelf_lose_nothing_and_take_no_more_than_there_is(
    warehouse: Warehouse,
) -> None:
    warehouse.receive(30)
    began = asyncio.Barrier(CLIENTS)
    outcomes: Counter[str] = Counter()
    moved = 0

    async def client(number: int) -> None:
        nonlocal moved
        code, sign = ("issue", -1) if number % 3 else ("receive", 1)
        await began.wait()
        for _ in range(ROUNDS):
            quantity = 1 + number % 4
            wanted = {**warehouse.where(), "quantity": quantity}
            try:
                await pipeline.execute(warehouse.call(f"inventory.stock.{code}", **wanted))
            except Refused as refusal:
                outcomes[f"{refusal.stage} {refusal.reason}"] += 1
            else:
                outcomes["done"] += 1
                moved += sign * quantity

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))

    total = select(func.sum(col(Move.quantity))).where(col(Move.item_id) == warehouse.item)
    booked = db.read_now(lambda session: session.exec(total).one())
    left = warehouse.level().on_hand
    assert set(outcomes) == {"done", "post_invariant invariant_failed"}, outcomes
    assert sum(outcomes.values()) == CLIENTS * ROUNDS
    assert left >= 0
    assert left == 30 + moved == booked
    assert warehouse.sums() == (left, left, 0)


@pytest.mark.requirement("CMD-25")
async def test_those_who_carry_back_and_forth_do_not_wait_in_a_circle(
    warehouse: Warehouse,
) -> None:
    warehouse.receive(20)
    warehouse.receive(20, warehouse.other)
    ways = [(warehouse.shelf, warehouse.other), (warehouse.other, warehouse.shelf)]

    await asyncio.gather(
        *(
            pipeline.execute(
                warehouse.call(
                    "inventory.stock.move",
                    itemId=warehouse.item,
                    fromLocationId=ways[number % 2][0],
                    toLocationId=ways[number % 2][1],
                    quantity=2,
                )
            )
            for number in range(CLIENTS)
        )
    )

    assert warehouse.sums() == (40, 20, 20)


@pytest.mark.requirement("CMD-25", "CMD-F10")
async def test_many_who_reserve_the_last_units_get_as_many_as_there_are(
    warehouse: Warehouse,
) -> None:
    warehouse.receive(5)
    level = warehouse.level().id

    async def reserve() -> str:
        try:
            call = warehouse.call("inventory.stock.reserve", at=level, quantity=1)
            return (await pipeline.execute(call)).outcome
        except Refused as refusal:
            return refusal.reason

    outcomes = Counter(await asyncio.gather(*(reserve() for _ in range(CLIENTS))))

    assert outcomes == {"done": 5, "assertion_failed": CLIENTS - 5}
    assert (warehouse.level().on_hand, warehouse.level().reserved) == (5, 5)


@pytest.mark.requirement("CMD-25")
@pytest.mark.parametrize("second", ["inventory.order.create", "inventory.order.receive"])
async def test_a_booking_and_a_call_on_its_order_do_not_wait_for_each_other(
    warehouse: Warehouse, second: str
) -> None:
    order = await warehouse.ordered()
    booking = warehouse.call(
        "inventory.stock.receive", **warehouse.where(), quantity=1, orderId=order
    )
    if second == "inventory.order.create":
        wanted = {**warehouse.where(), "supplier": "Suzhou Paper", "unitPriceMinor": 250}
        other = warehouse.call(second, "mia", quantity=1, **wanted)
    else:
        other = warehouse.call(second, at=order, quantity=40)
    is_under_way = threading.Event()
    tries: list[str] = []

    def book(work: Work) -> Done:
        """A booking that just took its number and refers to its item, as stage `field_map` does."""
        tries.append("booking")
        if second == "inventory.order.create":
            item = select(Item.id).where(Item.id == warehouse.item)
            work.session.exec(item.with_for_update(read=True, key_share=True)).one()
        else:
            numbers.take(work, warehouse.acme.id, "MOV")
        is_under_way.set()
        until_s = clock.monotonic_s() + 3
        while not db.is_sqlite() and work.connection.execute(BLOCKS).first() is None:
            if clock.monotonic_s() > until_s:
                break  # it does not even wait
        return pipeline.perform(work, booking)

    def then(_work: Work) -> Call:
        assert is_under_way.wait(LONGEST_S)
        tries.append("other")
        return other

    ends: Any = await asyncio.gather(
        db.transaction(book), pipeline.execute_as(then), return_exceptions=True
    )

    assert [type(end) for end in ends] == [Done, Done], ends
    assert sorted(tries) == ["booking", "other"]  # neither had to start over
