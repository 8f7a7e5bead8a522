"""`inventory.period.list`: which months are closed."""

import pytest

from tests.packs.inventory.warehouse import Warehouse


@pytest.mark.requirement("CMD-25")
async def test_closed_months_are_listed_the_latest_first(warehouse: Warehouse) -> None:
    for period in ("2026-01", "2026-02"):
        await warehouse.agreed("inventory.period.close", "fiona", "frank", period=period)

    rows = warehouse.do("inventory.period.list", "bob").result["rows"]

    assert [(each["period"], each["moves"]) for each in rows] == [("2026-02", 0), ("2026-01", 0)]
    assert warehouse.do("inventory.period.list", "gina").result["rows"] == []
