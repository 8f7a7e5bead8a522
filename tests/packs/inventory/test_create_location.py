"""`inventory.location.create`: a place, and whose it is."""

import pytest

from app.packs.inventory.models import Location
from tests.packs.inventory.warehouse import Warehouse, contents

CREATE = "inventory.location.create"


@pytest.mark.requirement("CMD-25", "CMD-F18")
async def test_a_location_belongs_where_it_is_said_to_if_that_is_in_reach(
    warehouse: Warehouse,
) -> None:
    sales, beijing = warehouse.acme.orgs["sales"].id, warehouse.acme.orgs["beijing"].id
    berlin = warehouse.world.globex.orgs["berlin"].id

    done = warehouse.do(CREATE, code="S-01", name="Showroom", orgId=sales)
    before = contents(Location)
    refusals = [
        await warehouse.refused(CREATE, code="S-02", name="Elsewhere", orgId=org)
        for org in (beijing, berlin, "0" * 26)
    ]
    twice = await warehouse.refused(CREATE, code="A-01", name="Again")

    assert warehouse.row(Location, done.result["locationId"]).org_id == sales
    assert warehouse.row(Location, warehouse.shelf).org_id == warehouse.acme.orgs["shanghai"].id
    assert {(each.reason, each.errors[0].pointer) for each in refusals} == {
        ("record_not_found", "orgId")
    }
    assert (twice.reason, twice.status) == ("duplicate_value", 409)
    assert contents(Location) == before
    warehouse.undo(done)
    assert warehouse.row(Location, done.result["locationId"]).state == "closed"
