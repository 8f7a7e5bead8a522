"""`inventory.stock.receive`: what came is there, and each sum knows."""

import pytest

from app.packs.inventory.models import Move, Stock
from tests.packs.inventory.warehouse import Warehouse, contents

RECEIVE = "inventory.stock.receive"


@pytest.mark.requirement("CMD-25")
def test_what_came_is_there_with_its_move_and_is_taken_back(warehouse: Warehouse) -> None:
    warehouse.receive(10)
    done = warehouse.do(RECEIVE, **warehouse.where(), quantity=30, note="Delivery note 4711")

    (_, move) = contents(Move)
    assert warehouse.sums() == (40, 40, 0)
    assert warehouse.level().on_hand == 40
    assert (done.result["number"], done.result["stock"][0]["onHand"]) == ("MOV-2", 40)
    assert (move["kind"], move["quantity"], move["note"]) == ("receipt", 30, "Delivery note 4711")
    assert move["period"] == move["booked_on"][:7] == done.result["bookedOn"][:7]

    warehouse.undo(done)

    assert warehouse.sums() == (10, 10, 0)


@pytest.mark.requirement("CMD-25", "CMD-F18")
async def test_nobody_receives_where_they_may_not_or_what_is_not_theirs(
    warehouse: Warehouse,
) -> None:
    foreign_item = warehouse.made(
        "inventory.item.create", "gina", sku="SPOON", name="Spoons", unit="box"
    )
    foreign_shelf = warehouse.made("inventory.location.create", "gina", code="G-01", name="Globex")
    beijing = warehouse.made(
        "inventory.location.create",
        "olga",
        code="BJ-01",
        name="Beijing",
        orgId=warehouse.acme.orgs["beijing"].id,
    )

    denied = await warehouse.refused(RECEIVE, "bob", **warehouse.where(), quantity=1)
    elsewhere = await warehouse.refused(RECEIVE, **warehouse.where(beijing), quantity=1)
    foreign = [
        await warehouse.refused(RECEIVE, **{**warehouse.where(), **wanted}, quantity=1)
        for wanted in (
            {"itemId": foreign_item},
            {"locationId": foreign_shelf},
            {"locationId": "0" * 26},
            {"orderId": foreign_item},
        )
    ]

    assert (denied.stage, denied.reason) == ("authorize", "permission_denied")
    assert (elsewhere.reason, elsewhere.errors[0].pointer) == ("record_not_found", "locationId")
    assert {(each.reason, each.status) for each in foreign} == {("record_not_found", 404)}
    assert contents(Stock, Move) == []
    warehouse.do(RECEIVE, "olga", **warehouse.where(beijing), quantity=1)
    (move,) = contents(Move)
    assert move["org_id"] == warehouse.acme.orgs["beijing"].id, "where it lies, not who booked it"


@pytest.mark.requirement("CMD-25")
async def test_nothing_is_received_ahead_of_time_or_on_what_is_out_of_use(
    warehouse: Warehouse,
) -> None:
    early = await warehouse.refused(RECEIVE, **warehouse.where(), quantity=1, bookedOn="2099-01-01")
    retired = warehouse.do("inventory.item.retire", at=warehouse.item)
    no_item = await warehouse.refused(RECEIVE, **warehouse.where(), quantity=1)
    warehouse.undo(retired)
    warehouse.do("inventory.location.close", at=warehouse.shelf)
    no_shelf = await warehouse.refused(RECEIVE, **warehouse.where(), quantity=1)

    assert (early.stage, early.reason, early.status) == ("handler", "future_date", 422)
    assert (no_item.stage, no_item.reason) == ("handler", "item_retired")
    assert "TAPE-50" in no_item.words("en")
    assert (no_shelf.stage, no_shelf.reason) == ("handler", "location_closed")
    assert no_shelf.words("zh-CN") == "库位 A-01 已关闭。"
    assert contents(Stock, Move) == []


async def test_quantities_are_whole_and_within_reason(warehouse: Warehouse) -> None:
    for quantity in (0, -1, 1.5, "1", 10**9, None, True):
        refusal = await warehouse.refused(RECEIVE, **warehouse.where(), quantity=quantity)
        assert (refusal.stage, refusal.reason) == ("schema_validate", "invalid_input"), quantity
    assert contents(Stock, Move) == []
