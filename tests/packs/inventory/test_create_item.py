"""`inventory.item.create`: something new, under a SKU of its own."""

import pytest

from app.packs.inventory.models import Item
from tests.packs.inventory.warehouse import Warehouse, contents

CREATE = "inventory.item.create"


@pytest.mark.requirement("CMD-25", "CMD-F8")
async def test_an_item_is_there_at_once_and_its_sku_is_its_own(warehouse: Warehouse) -> None:
    pen = {"sku": "PEN-BLUE", "name": "Blue pen", "unit": "box"}

    done = warehouse.do(CREATE, **pen, description="Ink")
    found = warehouse.do("inventory.item.get", at=done.result["itemId"]).result["item"]
    before = contents(Item)
    twice = await warehouse.refused(CREATE, **pen)
    wordless = await warehouse.refused(CREATE, **{**pen, "sku": "X", "name": "X"})
    small = await warehouse.refused(CREATE, **{**pen, "sku": "pen blue"})
    denied = await warehouse.refused(CREATE, "bob", **{**pen, "sku": "X"})

    assert {name: found[name] for name in pen} == pen
    assert (found["onHand"], found["state"]) == (0, "active")
    assert (twice.reason, twice.status) == ("duplicate_value", 409)
    assert wordless.reason == "cross_field_failed"
    assert [each.pointer for each in small.errors] == ["sku"]
    assert denied.reason == "permission_denied"
    assert contents(Item) == before
    warehouse.undo(done)
    assert warehouse.row(Item, done.result["itemId"]).state == "retired"
    assert warehouse.made(CREATE, "gina", **pen), "SKUs are a tenant's own"
