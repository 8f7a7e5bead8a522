"""Features: what a tenant is entitled to, and until when."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, select

from app.identity import facts
from app.identity.facts import AccessChanged
from app.identity.models import Entitlement, EntitlementStatus, Feature
from app.identity.principal import Principal
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_


def entitle(
    work: Work,
    actor: Principal | None,
    tenant_id: str,
    feature: str,
    *,
    status: EntitlementStatus,
    ends_at: datetime | None = None,
    source: str = "",
) -> Entitlement:
    """Say what a tenant's right to `feature` is worth from now on.

    Raises:
        NotFound: no pack declares the feature.
        Invalid: the end has passed already, for a right that shall be live.
    """
    if work.session.get(Feature, feature) is None:
        raise NotFound
    now = clock.now()
    if ends_at is not None and ends_at <= now and status != EntitlementStatus.EXPIRED:
        raise Invalid(FieldError("ends_at", N_("This moment has passed already.")))
    row = work.session.get(Entitlement, (tenant_id, feature))
    before = (row.status, row.ends_at) if row else (None, None)
    row = row or Entitlement(tenant_id=tenant_id, feature=feature, status=status, starts_at=now)
    row.status, row.ends_at, row.source = status, ends_at, source
    work.session.add(row)
    facts.record(
        work,
        "identity.feature.entitle",
        actor,
        tenant_id=tenant_id,
        target=("feature", feature),
        changes={
            "status": (before[0], status.value),
            "ends_at": (_text(before[1]), _text(ends_at)),
        },
        details={"source": source},
    )
    work.announce(AccessChanged(tenant_id=tenant_id, ends=False, why="entitlement_changed"))
    return row


def of_tenant(session: Session, tenant_id: str) -> Sequence[tuple[Feature, Entitlement | None]]:
    """Every feature there is, with the tenant's right to it."""
    query = (
        select(Feature, Entitlement)
        .outerjoin(
            Entitlement,
            (col(Entitlement.feature) == Feature.code) & (col(Entitlement.tenant_id) == tenant_id),
        )
        .order_by(col(Feature.pack), col(Feature.code))
    )
    return session.exec(query).all()


def _text(moment: datetime | None) -> str | None:
    return clock.rfc3339(moment) if moment else None
