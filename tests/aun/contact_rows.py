"""An outside AID that is linked to somebody, as rows."""

from app.aun import registration
from app.aun.models import Identity, IdentityKind
from app.aun.pki import certificates, issuers, keys
from app.identity.models import PeerLink, User
from app.identity.principal import Principal
from app.kernel import clock
from app.kernel.db import Work


def something(work: Work, person: Principal) -> dict[str, str]:
    """A contact of the person's own, and a name that is reserved; their ids."""
    user = work.session.get_one(User, (person.tenant_id, person.user_id))
    aid = contact(work, person.tenant_id, f"of-{user.login}")
    link(work, person, aid)
    kept = registration.reserve(work, person, f"for-{user.login}")
    return {"aid": aid, "reservation_id": kept.id}


def contact(work: Work, tenant_id: str, name: str) -> str:
    """An outside AID with a certificate."""
    aid = f"{name}.{issuers.domain_of(work.session, tenant_id)}"
    made = Identity(tenant_id=tenant_id, aid=aid, kind=IdentityKind.OUTSIDE, created_at=clock.now())
    work.session.add(made)
    work.session.flush()
    certificates.issue(work, tenant_id, aid, keys.generate().public_key())
    return aid


def link(work: Work, person: Principal, aid: str) -> None:
    """It is the person's."""
    work.session.add(
        PeerLink(
            tenant_id=person.tenant_id,
            aid=aid,
            user_id=person.user_id,
            linked_by_session=person.session_id,
            linked_at=clock.now(),
        )
    )
    work.session.flush()
