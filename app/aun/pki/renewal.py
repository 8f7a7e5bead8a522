"""Certificates that this server looks after itself get new ones before they end."""

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select

from app.aun.models import Identity
from app.aun.pki import building, certificates, issuers
from app.aun.pki_models import Certificate, CertificateState, IssuerAuthority
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.due import Due

BEFORE = timedelta(days=30)
AT_ONCE = 200

_GATEWAYS, _HOSTED = Due("gateway_certificate"), Due("certificate")


def renew_due() -> int:
    """Renew gateways and hosted identities whose certificate ends within 30 days; how many.

    It waits for the database: for threads, not for a unit or the event loop.
    """
    gateways = _GATEWAYS.together_now(renew_gateways, _gateways)
    return gateways + _HOSTED.together_now(renew_hosted, _ending)


def renew_gateways(work: Work, only: tuple[str, ...] | None = None) -> int:
    """Renew the gateways that need it, or the one of a tenant; how many."""
    query = select(IssuerAuthority)
    if only is not None:
        query = query.where(IssuerAuthority.tenant_id == only[0])
    soon = clock.now() + BEFORE
    ending = [
        issuer
        for issuer in work.session.exec(query).all()
        if building.parsed(issuer.auth_certificate).not_valid_after_utc < soon
    ]
    for issuer in ending:
        issuers.renew_gateway(work, issuer)
    return len(ending)


def renew_hosted(work: Work, only: tuple[str, ...] | None = None) -> int:
    """Renew the certificates of hosted identities that need it, or the one of a key; how many."""
    query = select(Certificate).join(Identity, _holder()).where(*_ends())
    if only is not None:
        query = query.where(Certificate.tenant_id == only[0], Certificate.serial == only[1])
    ending = work.session.exec(query.order_by(col(Certificate.not_after)).limit(AT_ONCE)).all()
    for row in ending:
        certificates.issue(work, row.tenant_id, row.aid, certificates.public_key(row))
    return len(ending)


def _gateways(session: Session, _more: int) -> Sequence[tuple[str, ...]]:
    return [(tenant_id,) for tenant_id in session.exec(select(IssuerAuthority.tenant_id))]


def _ending(session: Session, more: int) -> Sequence[tuple[str, str]]:
    query = select(Certificate.tenant_id, Certificate.serial).join(Identity, _holder())
    ordered = query.where(*_ends()).order_by(col(Certificate.not_after))
    return session.exec(ordered.limit(AT_ONCE + more)).all()


def _holder() -> ColumnElement[bool]:
    return (col(Identity.tenant_id) == Certificate.tenant_id) & (
        col(Identity.aid) == Certificate.aid
    )


def _ends() -> list[ColumnElement[bool]]:
    return [
        col(Identity.key_sealed).is_not(None),
        col(Certificate.state) == CertificateState.ACTIVE,
        col(Certificate.not_after) < clock.now() + BEFORE,
    ]
