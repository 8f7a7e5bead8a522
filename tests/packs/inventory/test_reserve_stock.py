"""`inventory.stock.reserve`: what is kept for somebody stays."""

import pytest

from tests.packs.inventory.warehouse import Warehouse

RESERVE = "inventory.stock.reserve"


@pytest.mark.requirement("CMD-25")
async def test_what_is_reserved_stays_until_it_is_released(warehouse: Warehouse) -> None:
    warehouse.receive(10)
    level = warehouse.level().id

    done = warehouse.do(RESERVE, at=level, quantity=8, purpose="SO 118")
    too_much = await warehouse.refused(RESERVE, at=level, quantity=3)
    kept = await warehouse.refused("inventory.stock.issue", **warehouse.where(), quantity=3)
    not_his = await warehouse.refused(RESERVE, "bob", at=level, quantity=1)

    assert (too_much.stage, too_much.reason) == ("assert", "assertion_failed")
    assert (kept.stage, kept.reason) == ("post_invariant", "invariant_failed")
    assert not_his.reason == "permission_denied"
    assert (warehouse.level().on_hand, warehouse.level().reserved) == (10, 8)
    warehouse.undo(done)
    assert warehouse.level().reserved == 0
