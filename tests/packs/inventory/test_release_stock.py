"""`inventory.stock.release`: what was kept is free again."""

import pytest

from tests.packs.inventory.warehouse import Warehouse

RELEASE = "inventory.stock.release"


@pytest.mark.requirement("CMD-25")
async def test_only_what_is_reserved_is_released_and_it_can_be_kept_again(
    warehouse: Warehouse,
) -> None:
    warehouse.receive(10)
    level = warehouse.level().id
    warehouse.do("inventory.stock.reserve", at=level, quantity=8)

    done = warehouse.do(RELEASE, at=level, quantity=5)
    too_much = await warehouse.refused(RELEASE, at=level, quantity=4)

    assert (too_much.stage, too_much.reason) == ("assert", "assertion_failed")
    assert warehouse.level().reserved == 3
    warehouse.undo(done)
    assert (warehouse.level().on_hand, warehouse.level().reserved) == (10, 8)
