"""`inventory.item.get`: one item, and where it lies."""

import pytest

from tests.packs.inventory.warehouse import Warehouse

GET = "inventory.item.get"


@pytest.mark.requirement("CMD-25", "CMD-F18")
async def test_an_item_is_shown_with_what_lies_where(warehouse: Warehouse) -> None:
    warehouse.receive(10)
    warehouse.receive(3, warehouse.other)
    warehouse.do("inventory.stock.reserve", at=warehouse.level().id, quantity=4)

    found = warehouse.do(GET, "bob", at=warehouse.item).result
    foreign = await warehouse.refused(GET, "gina", at=warehouse.item)
    nobodys = await warehouse.refused(GET, "gina", at="0" * 26)

    assert (found["item"]["sku"], found["item"]["onHand"]) == ("TAPE-50", 13)
    assert [(each["locationCode"], each["available"]) for each in found["stock"]] == [
        ("A-01", 6),
        ("B-01", 3),
    ]
    assert (foreign.reason, foreign.status) == (nobodys.reason, nobodys.status)
    assert foreign.reason == "record_not_found"
