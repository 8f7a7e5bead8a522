"""`inventory.stock.set_minimum`: from when on somebody should order."""

from tests.packs.inventory.warehouse import Warehouse


async def test_what_falls_below_its_minimum_is_found(warehouse: Warehouse) -> None:
    warehouse.receive(10)
    level = warehouse.level().id
    below = {"belowMinimum": True}

    done = warehouse.do("inventory.stock.set_minimum", at=level, minLevel=11)
    found = warehouse.do("inventory.stock.list", "bob", **below).result["rows"]
    warehouse.undo(done)
    found_then = warehouse.do("inventory.stock.list", "bob", **below).result["rows"]
    refusal = await warehouse.refused("inventory.stock.set_minimum", at=level, minLevel=-1)

    assert [(each["id"], each["minLevel"]) for each in found] == [(level, 11)]
    assert found_then == []
    assert refusal.reason == "invalid_input"
