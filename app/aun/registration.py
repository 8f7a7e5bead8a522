"""Outside AIDs: who may register one, and the names that administrators keep for them.

Registration is a request by a stranger. What comes of it is a contact: it can send and receive,
and has no user, no role and no delegation unless somebody links it (aun.md, 4.2 and 4.5).
"""

from datetime import timedelta

from sqlalchemy import update
from sqlmodel import Session, col, select

from app.aun import identities, names, queries
from app.aun.errors import NotAdmitted, VersionConflict
from app.aun.models import Identity, IdentityKind, IdentityStatus
from app.aun.pki import certificates, issuers, keys
from app.aun.pki.keys import PublicKey
from app.aun.pki_models import Certificate, Reservation
from app.identity import facts
from app.identity.principal import Principal
from app.kernel import clock, ids, settings
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_

RESERVED_FOR = timedelta(days=7)


def register(work: Work, tenant_id: str, aid: str, public_key: PublicKey) -> Certificate:
    """The certificate of an outside AID; asking again with the same key gives it again.

    Raises:
        VersionConflict: somebody else has the name.
        NotAdmitted: this server does not let the name register, or shut the AID out.
    """
    found = queries.identity(work.session, tenant_id, aid)
    if found is not None:
        return _again(work.session, found, public_key)
    if not identities.is_free(work.session, tenant_id, aid):
        raise VersionConflict(f"aid is taken: {aid}")
    _admit(work, tenant_id, aid)
    work.session.add(
        Identity(tenant_id=tenant_id, aid=aid, kind=IdentityKind.OUTSIDE, created_at=clock.now())
    )
    work.session.flush()
    facts.record(
        work,
        "identity.contact.register",
        None,
        tenant_id=tenant_id,
        target=("contact", aid),
        details={"key": keys.short_fingerprint(keys.spki(public_key))},
    )
    return certificates.issue(work, tenant_id, aid, public_key)


def reserve(work: Work, person: Principal, name: str) -> Reservation:
    """Let a stranger register `name`, once, within seven days.

    Raises:
        Invalid: it is no name, or somebody's already.
    """
    aid = f"{name}.{issuers.domain_of(work.session, person.tenant_id)}"
    if not names.is_aid(aid):
        says = N_("Use 4 to 64 small letters, digits, hyphens and underscores; not guest….")
        raise Invalid(FieldError("name", says))
    if not identities.is_free(work.session, person.tenant_id, aid):
        raise Invalid(FieldError("name", N_("This name is taken.")))
    if _live(work.session, person.tenant_id, name) is not None:
        raise Invalid(FieldError("name", N_("This name is reserved already.")))
    made = Reservation(
        tenant_id=person.tenant_id,
        id=ids.ulid(),
        name=name,
        created_by=person.user_id,
        created_at=clock.now(),
        expires_at=clock.now() + RESERVED_FOR,
    )
    work.session.add(made)
    facts.record(work, "identity.contact.reserve", person, target=("contact", aid))
    return made


def withdraw(work: Work, person: Principal, reservation_id: str) -> None:
    """Take a reservation back.

    Raises:
        NotFound: there is none that still counts.
    """
    found = work.session.get(Reservation, (person.tenant_id, reservation_id))
    if found is None or not _is_live(found):
        raise NotFound
    found.withdrawn_at = clock.now()
    work.session.add(found)
    domain = issuers.domain_of(work.session, person.tenant_id)
    aid = f"{found.name}.{domain}"
    facts.record(work, "identity.contact.withdraw", person, target=("contact", aid))


def reservations(session: Session, tenant_id: str) -> list[Reservation]:
    """Those that still count, the one that ends first in front."""
    query = select(Reservation).where(
        Reservation.tenant_id == tenant_id,
        col(Reservation.used_at).is_(None),
        col(Reservation.withdrawn_at).is_(None),
        Reservation.expires_at > clock.now(),
    )
    return list(session.exec(query.order_by(col(Reservation.expires_at), col(Reservation.id))))


def _again(session: Session, found: Identity, public_key: PublicKey) -> Certificate:
    row = queries.active_certificate(session, found.tenant_id, found.aid)
    if found.kind != IdentityKind.OUTSIDE or (row and certificates.public_key(row) != public_key):
        raise VersionConflict(f"aid is taken: {found.aid}")
    if found.status != IdentityStatus.ACTIVE or row is None:
        raise NotAdmitted("aid is blocked")
    return row


def _admit(work: Work, tenant_id: str, aid: str) -> None:
    """Whether a stranger may have this name; a reservation is used up.

    Raises:
        NotAdmitted: they may not.
    """
    policy = settings.current().aun_registration
    if policy == "open":
        return
    name, _ = names.split(aid)
    found = _live(work.session, tenant_id, name) if policy == "reserved" else None
    if found is None or not _take(work, found):
        raise NotAdmitted("registration is not open for this name", retryable=False)


def _take(work: Work, found: Reservation) -> bool:
    taken = work.session.execute(
        update(Reservation)
        .where(col(Reservation.tenant_id) == found.tenant_id, col(Reservation.id) == found.id)
        .where(col(Reservation.used_at).is_(None), col(Reservation.withdrawn_at).is_(None))
        .values(used_at=clock.now())
    )
    return bool(taken.rowcount == 1)  # type: ignore[attr-defined]


def _live(session: Session, tenant_id: str, name: str) -> Reservation | None:
    query = select(Reservation).where(Reservation.tenant_id == tenant_id, Reservation.name == name)
    return next((row for row in session.exec(query) if _is_live(row)), None)


def _is_live(row: Reservation) -> bool:
    is_open = row.used_at is None and row.withdrawn_at is None
    return is_open and row.expires_at > clock.now()
