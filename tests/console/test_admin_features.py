"""Features: none while no pack has any; entitled, changed and run out once one does."""

import pytest

from app.access import entitlements
from app.identity import permissions
from app.identity.permissions import PLATFORM, Declared
from app.kernel import db
from tests.clock import Clock
from tests.people import World

PAYMENTS = Declared("expense.payments", "expenses", "Payments", "付款")
PATH = "/admin/features/expense.payments/entitlement"


def has_it(world: World) -> bool:
    return db.read_now(entitlements.has_feature, world.acme.id, PAYMENTS.code)


@pytest.mark.requirement("UI-31")
async def test_without_features_the_page_says_where_they_come_from(world: World) -> None:
    db.transact_now(permissions.write, PLATFORM, ())

    page = await world.client(world.acme["ada"]).get("/admin/features")

    assert "No features to entitle yet" in page.text
    assert "Features come with packs" in page.text


async def test_a_feature_is_entitled_until_its_end(world: World, clock: Clock) -> None:
    db.transact_now(permissions.write, PLATFORM, (PAYMENTS,))
    ada = world.client(world.acme["ada"])

    before = await ada.get("/admin/features")
    done = await ada.post(PATH, data={"status": "trial", "ends_at": "2026-03-02T11:00"})

    assert "Not entitled" in before.text
    assert done.status_code == 303
    assert has_it(world)
    clock.move(hours=2)
    assert not has_it(world)
    assert "Expired" in (await ada.get("/admin/features")).text


async def test_a_right_cannot_begin_over(world: World) -> None:
    db.transact_now(permissions.write, PLATFORM, (PAYMENTS,))
    ada = world.client(world.acme["ada"])

    passed = await ada.post(PATH, data={"status": "active", "ends_at": "2020-01-01T00:00"})
    odd = await ada.post(PATH, data={"status": "forever", "ends_at": "soon"})

    assert (passed.status_code, odd.status_code) == (422, 422)
    assert 'id="field-ends_at-error"' in passed.text
    assert 'id="field-status-error"' in odd.text
    assert 'value="soon"' in odd.text
    assert not has_it(world)


async def test_an_unknown_feature_and_a_reader_change_nothing(world: World) -> None:
    db.transact_now(permissions.write, PLATFORM, (PAYMENTS,))

    unknown = await world.client(world.acme["ada"]).post(
        "/admin/features/no.such/entitlement", data={"status": "active"}
    )
    reader = await world.client(world.acme["axel"]).post(PATH, data={"status": "active"})

    assert (unknown.status_code, reader.status_code) == (404, 403)
    assert not has_it(world)
