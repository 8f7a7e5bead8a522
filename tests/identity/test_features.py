"""Entitlements: worth something while they last, and nothing for what nobody declares."""

from datetime import timedelta

import pytest

from app.access import entitlements
from app.identity import features, permissions
from app.identity.models import EntitlementStatus
from app.identity.permissions import PLATFORM, Declared
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import Invalid, NotFound
from tests.clock import Clock
from tests.people import World

PAYMENTS = Declared("expense.payments", "expenses", "Payments", "付款")


def entitle(
    work: Work, world: World, status: EntitlementStatus, ends_in: timedelta | None, clock: Clock
) -> None:
    ends_at = clock.now + ends_in if ends_in else None
    features.entitle(
        work, world.acme_admin, world.acme.id, PAYMENTS.code, status=status, ends_at=ends_at
    )


@pytest.mark.parametrize("status", list(EntitlementStatus))
def test_a_right_is_worth_what_its_status_says_until_it_ends(
    world: World, clock: Clock, status: EntitlementStatus
) -> None:
    db.transact_now(permissions.write, PLATFORM, (PAYMENTS,))
    db.transact_now(entitle, world, status, timedelta(days=1), clock)
    live = status != EntitlementStatus.EXPIRED

    assert db.read_now(entitlements.has_feature, world.acme.id, PAYMENTS.code) is live
    assert not db.read_now(entitlements.has_feature, world.globex.id, PAYMENTS.code)
    clock.move(days=1, seconds=1)
    assert not db.read_now(entitlements.has_feature, world.acme.id, PAYMENTS.code)


def test_what_no_pack_declares_cannot_be_entitled(world: World, clock: Clock) -> None:
    db.transact_now(permissions.write, PLATFORM, ())

    with pytest.raises(NotFound):
        db.transact_now(entitle, world, EntitlementStatus.ACTIVE, None, clock)


def test_a_live_right_does_not_end_in_the_past(world: World, clock: Clock) -> None:
    db.transact_now(permissions.write, PLATFORM, (PAYMENTS,))

    with pytest.raises(Invalid) as refused:
        db.transact_now(entitle, world, EntitlementStatus.TRIAL, timedelta(seconds=-1), clock)

    assert refused.value.errors[0].pointer == "ends_at"
