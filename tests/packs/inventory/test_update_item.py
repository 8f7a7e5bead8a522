"""`inventory.item.update`: another name, and the former one back."""

import pytest

from app.packs.inventory.models import Item
from tests.packs.inventory.warehouse import Warehouse

UPDATE = "inventory.item.update"


@pytest.mark.requirement("CMD-25")
async def test_an_item_reads_otherwise_and_as_before_again(warehouse: Warehouse) -> None:
    done = warehouse.do(UPDATE, at=warehouse.item, name="Tape 50 m", description="brown")
    item = warehouse.row(Item, warehouse.item)
    assert (item.name, item.description, item.sku) == ("Tape 50 m", "brown", "TAPE-50")

    warehouse.undo(done)
    item = warehouse.row(Item, warehouse.item)
    assert (item.name, item.description) == ("Tape", "")

    warehouse.do("inventory.item.retire", at=warehouse.item)
    refusal = await warehouse.refused(UPDATE, at=warehouse.item, name="Tape 50 m")
    assert (refusal.stage, refusal.reason) == ("pre_invariant", "invariant_failed")
