"""`inventory.location.list`: where stock can lie."""

import pytest

from tests.packs.inventory.warehouse import Warehouse


@pytest.mark.requirement("CMD-25")
def test_locations_are_found_by_a_part_of_code_or_name(warehouse: Warehouse) -> None:
    warehouse.receive(7)
    warehouse.do("inventory.location.close", at=warehouse.other)

    def codes(by: str = "bob", **wanted: object) -> list[tuple[str, int]]:
        rows = warehouse.do("inventory.location.list", by, **wanted).result["rows"]
        return [(each["code"], each["onHand"]) for each in rows]

    assert codes() == codes(text="aisle") == [("A-01", 7)]
    assert codes(state="closed") == [("B-01", 0)]
    assert codes(state="", text="-01") == [("A-01", 7), ("B-01", 0)]
    assert codes("gina", state="") == [], "another tenant's"
