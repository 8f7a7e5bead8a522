"""What a tenant is entitled to: by status and by time."""

from datetime import timedelta

import pytest

from app.access import entitlements
from app.identity.models import Entitlement, Feature, Tenant
from app.kernel import db, ids
from app.kernel.db import Work
from tests.clock import Clock


@pytest.mark.parametrize(
    ("status", "is_worth_something"),
    [("trial", True), ("active", True), ("grace", True), ("expired", False)],
)
def test_a_feature_counts_by_its_status(
    opened: str, clock: Clock, status: str, is_worth_something: bool
) -> None:
    tenant_id = db.transact_now(_entitle, clock, status)

    assert db.read_now(entitlements.has_feature, tenant_id, "f") is is_worth_something
    assert not db.read_now(entitlements.has_feature, tenant_id, "g")
    assert not db.read_now(entitlements.has_feature, ids.ulid(), "f")


def test_a_feature_begins_and_ends(opened: str, clock: Clock) -> None:
    tenant_id = db.transact_now(_entitle, clock, "active", starts_in_days=1, ends_in_days=3)

    assert not db.read_now(entitlements.has_feature, tenant_id, "f")
    clock.move(days=1)
    assert db.read_now(entitlements.has_feature, tenant_id, "f")
    clock.move(days=2)
    assert not db.read_now(entitlements.has_feature, tenant_id, "f")


def test_a_feature_nobody_declares_is_worth_nothing(opened: str, clock: Clock) -> None:
    tenant_id = db.transact_now(_entitle, clock, "active", is_declared=False)

    assert not db.read_now(entitlements.has_feature, tenant_id, "f")


def _entitle(
    work: Work,
    clock: Clock,
    status: str,
    *,
    starts_in_days: int = 0,
    ends_in_days: int | None = None,
    is_declared: bool = True,
) -> str:
    tenant_id = ids.ulid()
    work.session.add(Tenant(id=tenant_id, slug="acme", name="Acme", created_at=clock.now))
    if is_declared:
        work.session.add(Feature(code="f", pack="t", title={}))
    work.session.flush()
    ends_at = None if ends_in_days is None else clock.now + timedelta(days=ends_in_days)
    work.session.add(
        Entitlement(
            tenant_id=tenant_id,
            feature="f",
            status=status,
            starts_at=clock.now + timedelta(days=starts_in_days),
            ends_at=ends_at,
        )
    )
    return tenant_id
