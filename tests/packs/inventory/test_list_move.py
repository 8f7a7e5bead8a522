"""`inventory.move.list`: how a level came about."""

import pytest

from tests.packs.inventory.warehouse import Warehouse

LIST = "inventory.move.list"


@pytest.mark.requirement("CMD-25")
def test_moves_tell_what_was_booked_the_newest_first(warehouse: Warehouse) -> None:
    warehouse.receive(10)
    warehouse.do("inventory.stock.issue", **warehouse.where(), quantity=1, note="SO 118")
    warehouse.do(
        "inventory.stock.move",
        itemId=warehouse.item,
        fromLocationId=warehouse.shelf,
        toLocationId=warehouse.other,
        quantity=2,
    )

    every = warehouse.do(LIST, "bob").result["rows"]
    there = warehouse.do(LIST, "bob", locationId=warehouse.other).result["rows"]
    issues = warehouse.do(LIST, "bob", kind="issue", period=every[0]["bookedOn"][:7])
    before = warehouse.do(LIST, "bob", period="2001-01", itemId=warehouse.item)

    assert [(each["kind"], each["quantity"]) for each in every] == [
        ("transfer", -2),
        ("issue", -1),
        ("receipt", 10),
    ]
    assert [each["toLocationId"] for each in there] == [warehouse.other]
    assert [each["note"] for each in issues.result["rows"]] == ["SO 118"]
    assert before.result == {"rows": [], "next": None}
    assert every[0]["createdBy"] == warehouse.acme["alice"].id
