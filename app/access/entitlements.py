"""What a tenant is entitled to: a feature in trial, active or in grace, now."""

from sqlmodel import Session, col, or_, select
from sqlmodel.sql.expression import SelectOfScalar

from app.identity.models import Entitlement, EntitlementStatus, Feature
from app.kernel import clock

WORTH_SOMETHING = (
    EntitlementStatus.TRIAL.value,
    EntitlementStatus.ACTIVE.value,
    EntitlementStatus.GRACE.value,
)


def has_feature(session: Session, tenant_id: str, feature: str) -> bool:
    """Whether `tenant_id` may use `feature` now; a code nobody declares is worth nothing."""
    return feature in features_of(session, tenant_id)


def features_of(session: Session, tenant_id: str) -> frozenset[str]:
    """Every feature the tenant may use now."""
    return frozenset(session.exec(entitled(tenant_id)))


def entitled(tenant_id: str) -> SelectOfScalar[str]:
    """A SELECT of them, for other queries."""
    now = clock.now()
    return (
        select(Entitlement.feature)
        .join(Feature, col(Feature.code) == Entitlement.feature)
        .where(
            Entitlement.tenant_id == tenant_id,
            col(Entitlement.status).in_(WORTH_SOMETHING),
            Entitlement.starts_at <= now,
            or_(col(Entitlement.ends_at).is_(None), col(Entitlement.ends_at) > now),
        )
    )
