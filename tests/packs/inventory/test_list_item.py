"""`inventory.item.list`: what there is."""

import pytest

from tests.packs.inventory.warehouse import Warehouse

LIST = "inventory.item.list"


@pytest.mark.requirement("CMD-25")
def test_items_are_found_by_a_part_of_sku_or_name_whatever_its_case(warehouse: Warehouse) -> None:
    for sku, name in (("PAPER-A4", "Copy paper 100%"), ("PEN-BLUE", "Blue pen")):
        warehouse.made("inventory.item.create", sku=sku, name=name, unit="box")
    warehouse.do("inventory.item.retire", at=warehouse.item)

    def skus(by: str = "bob", **wanted: object) -> list[str]:
        return [each["sku"] for each in warehouse.do(LIST, by, **wanted).result["rows"]]

    assert skus() == ["PAPER-A4", "PEN-BLUE"]
    assert skus(text="a4") == skus(text="COPY") == skus(text="0%") == ["PAPER-A4"]
    assert skus(text="%a") == [], "a sign of LIKE is a sign like any other"
    assert skus(state="retired") == ["TAPE-50"]
    assert skus(state="") == ["PAPER-A4", "PEN-BLUE", "TAPE-50"]
    assert skus("gina", state="") == [], "another tenant's"
