"""`inventory.stock.move`: from one shelf to the other, and back."""

import pytest

from tests.packs.inventory.warehouse import Warehouse

MOVE = "inventory.stock.move"


@pytest.mark.requirement("CMD-25")
async def test_what_is_carried_leaves_one_shelf_and_lies_on_the_other(warehouse: Warehouse) -> None:
    warehouse.receive(10)
    there = {"fromLocationId": warehouse.shelf, "toLocationId": warehouse.other}
    nowhere = {"fromLocationId": warehouse.shelf, "toLocationId": warehouse.shelf}

    done = warehouse.do(MOVE, itemId=warehouse.item, **there, quantity=4)
    assert warehouse.sums() == (10, 6, 4)
    too_much = await warehouse.refused(MOVE, itemId=warehouse.item, **there, quantity=7)
    no_way = await warehouse.refused(MOVE, itemId=warehouse.item, **nowhere, quantity=1)
    warehouse.undo(done)

    assert too_much.stage == "post_invariant"
    assert (no_way.stage, no_way.reason) == ("cross_field_validation", "cross_field_failed")
    assert [each.pointer for each in no_way.errors] == ["fromLocationId", "toLocationId"]
    assert warehouse.sums() == (10, 10, 0)
