"""`inventory.stock.adjust`: what is written becomes what was counted, with the reason."""

import pytest

from app.packs.inventory.models import Move
from tests.packs.inventory.warehouse import Warehouse, contents

ADJUST = "inventory.stock.adjust"


@pytest.mark.requirement("CMD-25")
async def test_a_difference_is_booked_with_its_reason_and_taken_back(warehouse: Warehouse) -> None:
    warehouse.receive(10)

    done = warehouse.do(ADJUST, **warehouse.where(), change=-3, reason="loss")
    assert warehouse.sums() == (7, 7, 0)
    warehouse.undo(done)

    assert warehouse.sums() == (10, 10, 0)
    kept = [(each["kind"], each["quantity"], each["reason"]) for each in contents(Move)]
    assert kept[1:] == [("adjustment", -3, "loss"), ("adjustment", 3, "correction")]


@pytest.mark.requirement("CMD-25")
async def test_a_difference_that_makes_no_sense_is_refused_at_its_field(
    warehouse: Warehouse,
) -> None:
    warehouse.receive(10)
    for wanted, fields in (
        ({"change": 0, "reason": "count"}, ["change"]),
        ({"change": 1, "reason": "damage"}, ["change", "reason"]),
        ({"change": -1, "reason": "found"}, ["change", "reason"]),
        ({"change": 100, "reason": "count"}, ["note"]),
    ):
        refusal = await warehouse.refused(ADJUST, **warehouse.where(), **wanted)
        assert refusal.reason == "cross_field_failed", wanted
        assert [each.pointer for each in refusal.errors] == fields
    below = await warehouse.refused(ADJUST, **warehouse.where(), change=-11, reason="loss")
    unknown = await warehouse.refused(ADJUST, **warehouse.where(), change=-1, reason="theft")

    assert below.stage == "post_invariant"
    assert unknown.reason == "invalid_input"
    assert warehouse.sums() == (10, 10, 0)
