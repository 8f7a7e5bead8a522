"""`inventory.order.list`: what is on its way."""

import pytest

from tests.packs.inventory.warehouse import Warehouse


@pytest.mark.requirement("CMD-25")
async def test_orders_are_found_by_state_item_number_and_supplier(warehouse: Warehouse) -> None:
    await warehouse.ordered()
    warehouse.draft(supplier="Ningbo Tapes")

    def numbers(by: str = "bob", **wanted: object) -> list[str]:
        rows = warehouse.do("inventory.order.list", by, **wanted).result["rows"]
        return [each["number"] for each in rows]

    assert numbers() == numbers(itemId=warehouse.item) == ["PO-2", "PO-1"]
    assert numbers(state="ordered") == numbers(text="suzhou") == ["PO-1"]
    assert numbers(state="draft") == numbers(text="po-2") == ["PO-2"]
    assert numbers("gina") == [], "another tenant's"
