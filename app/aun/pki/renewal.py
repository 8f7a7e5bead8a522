"""Certificates that this server looks after itself get new ones before they end."""

from datetime import timedelta

from sqlmodel import col, select

from app.aun.models import Identity
from app.aun.pki import building, certificates, issuers
from app.aun.pki_models import Certificate, CertificateState, IssuerAuthority
from app.kernel import clock
from app.kernel.db import Work

BEFORE = timedelta(days=30)
AT_ONCE = 200


def renew_due(work: Work) -> int:
    """Renew gateways and hosted identities whose certificate ends within 30 days; how many."""
    soon = clock.now() + BEFORE
    gateways = [
        issuer
        for issuer in work.session.exec(select(IssuerAuthority)).all()
        if building.parsed(issuer.auth_certificate).not_valid_after_utc < soon
    ]
    for issuer in gateways:
        issuers.renew_gateway(work, issuer)
    query = (
        select(Certificate)
        .join(
            Identity,
            (col(Identity.tenant_id) == Certificate.tenant_id)
            & (col(Identity.aid) == Certificate.aid),
        )
        .where(
            col(Identity.key_sealed).is_not(None),
            Certificate.state == CertificateState.ACTIVE,
            Certificate.not_after < soon,
        )
        .limit(AT_ONCE)
    )
    hosted = work.session.exec(query).all()
    for row in hosted:
        certificates.issue(work, row.tenant_id, row.aid, certificates.public_key(row))
    return len(gateways) + len(hosted)
