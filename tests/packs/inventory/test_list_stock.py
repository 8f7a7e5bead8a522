"""`inventory.stock.list`: what lies where."""

import pytest

from tests.packs.inventory.warehouse import Warehouse

LIST = "inventory.stock.list"


@pytest.mark.requirement("CMD-25", "CMD-3")
def test_levels_are_listed_by_item_and_place_a_page_at_a_time(warehouse: Warehouse) -> None:
    warehouse.receive(10)
    warehouse.receive(3, warehouse.other)

    of_item = warehouse.do(LIST, "bob", itemId=warehouse.item).result
    there = warehouse.do(LIST, "bob", locationId=warehouse.other).result
    first = warehouse.do(LIST, "bob", limit=1).result
    second = warehouse.do(LIST, "bob", limit=1, cursor=first["next"]).result

    assert [each["available"] for each in of_item["rows"]] == [10, 3]
    assert [each["onHand"] for each in there["rows"]] == [3]
    assert [each["onHand"] for each in (*first["rows"], *second["rows"])] == [10, 3]
    assert second["next"] is None
    assert warehouse.do(LIST, "gina").result["rows"] == [], "another tenant's"
