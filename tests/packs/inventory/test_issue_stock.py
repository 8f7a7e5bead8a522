"""`inventory.stock.issue`: what is there goes out, and never more."""

import pytest

from app.packs.inventory.models import Item, Location, Move, Stock
from tests.packs.inventory.warehouse import Warehouse, contents

ISSUE = "inventory.stock.issue"


@pytest.mark.requirement("CMD-25")
async def test_what_is_there_goes_out_and_never_more(warehouse: Warehouse) -> None:
    warehouse.receive(10)
    done = warehouse.do(ISSUE, **warehouse.where(), quantity=4, note="SO 118")
    assert warehouse.sums() == (6, 6, 0)
    before = contents(Item, Location, Stock, Move)

    too_much = await warehouse.refused(ISSUE, **warehouse.where(), quantity=7)
    nothing_there = await warehouse.refused(ISSUE, **warehouse.where(warehouse.other), quantity=1)

    assert (too_much.stage, too_much.reason) == ("post_invariant", "invariant_failed")
    assert (too_much.status, too_much.advice) == (422, "report_to_user")
    assert too_much.words("zh-CN") == "该库位没有这么多未被预留的库存。"
    assert nothing_there.stage == "post_invariant"
    assert contents(Item, Location, Stock, Move) == before
    warehouse.undo(done)
    assert warehouse.sums() == (10, 10, 0)
