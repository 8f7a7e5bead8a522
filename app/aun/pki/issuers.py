"""The issuer of each tenant: its domain, the authority that signs its AIDs, the gateway's proof.

The first tenant has `ASSENT_AUN_ISSUER` itself, each other one a name below it. Domains stay in
memory, because every request asks whose name it came to; keys are opened where they sign.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import structlog
from cryptography.hazmat.primitives.serialization import Encoding
from sqlalchemy import text
from sqlmodel import Session, col, select

from app.aun import names
from app.aun.models import Identity
from app.aun.pki import building, keys
from app.aun.pki.building import Signer
from app.aun.pki_models import IssuerAuthority, RootAuthority
from app.identity.facts import IdentityFact
from app.identity.models import Tenant
from app.kernel import clock, db, events, ids, sealing, settings
from app.kernel.db import Work
from app.kernel.events import Broadcast

log = structlog.get_logger(__name__)

ROOT_NAME = "Assent AUN root"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerMade(Broadcast):
    """A tenant has an issuer domain; every process answers to its names from now on."""

    domain: str


_domains: dict[str, str] = {}  # domain → tenant


def listen() -> Callable[[], None]:
    """Start to listen; once at start. Returns a function that ends it."""
    ends = (
        events.subscribe_inside(IdentityFact, _note_tenant),
        events.subscribe(IssuerMade, _keep),
    )

    def end() -> None:
        for each in ends:
            each()
        _domains.clear()

    return end


def prepare() -> None:
    """Make the issuers of tenants that have none, the first tenant's first; not inside a unit."""
    db.transact_now(_make_missing)
    reload()
    base, wanted = min(_domains, key=len, default=""), settings.current().aun_issuer
    if base and base != wanted:
        log.warning("aun_issuer_stays", domain=base, setting=wanted)


def reload() -> None:
    """Read the domains again: a command may have added a tenant elsewhere; not inside a unit."""
    found = db.read_now(_all_domains)
    for gone in _domains.keys() - found.keys():
        _domains.pop(gone, None)
    _domains.update(found)


def tenant_of(name: str) -> str | None:
    """The tenant of an AID, a group id, `gateway.{issuer}` or an issuer; None for other names.

    `name` is in lower case and without a port. Whether the AID exists is another question.
    """
    return _domains.get(name) or _domains.get(name.partition(".")[2])


def of_domain(domain: str) -> str | None:
    """The tenant whose issuer domain this is."""
    return _domains.get(domain)


def is_name(host: str) -> bool:
    """Whether a host name belongs to AUN here (SEC-46)."""
    return tenant_of(host) is not None


def first() -> str | None:
    """The tenant whose issuer is `ASSENT_AUN_ISSUER` itself; None before there is one."""
    base = min(_domains, key=len, default=None)
    return _domains[base] if base else None


def domain_of(session: Session, tenant_id: str) -> str:
    """The issuer domain of a tenant."""
    return one(session, tenant_id).domain


def is_domain(session: Session, name: str) -> bool:
    """Whether a name is the issuer domain of a tenant, and so can be nobody's AID."""
    query = select(IssuerAuthority.tenant_id).where(IssuerAuthority.domain == name)
    return session.exec(query).first() is not None


def one(session: Session, tenant_id: str) -> IssuerAuthority:
    """The issuer of a tenant.

    Raises:
        LookupError: nobody prepared it.
    """
    found = session.get(IssuerAuthority, tenant_id)
    if found is None:
        raise LookupError("the tenant has no AUN issuer")
    return found


def signer(session: Session, tenant_id: str) -> Signer:
    """What signs a tenant's certificates, revocation lists and OCSP answers."""
    found = one(session, tenant_id)
    return _opened(found.certificate, found.key_sealed, _issuer_label(tenant_id))


def gateway(session: Session, tenant_id: str) -> Signer:
    """What a tenant's gateway proves itself with when somebody logs in."""
    found = one(session, tenant_id)
    return _opened(found.auth_certificate, found.auth_key_sealed, _auth_label(tenant_id))


def make(work: Work, tenant: Tenant) -> IssuerAuthority:
    """The issuer of a tenant, made if it has none."""
    found = work.session.get(IssuerAuthority, tenant.id)
    if found is not None:
        return found
    _alone(work)
    root_id, by = _root(work)
    made = _signed(by, root_id, tenant.id, _free_domain(work.session, tenant))
    work.session.add(made)
    work.session.flush()
    work.announce(IssuerMade(tenant_id=tenant.id, domain=made.domain))
    return made


def put(work: Work, found: IssuerAuthority, root_id: str, by: Signer) -> None:
    """Let `by` sign for a tenant from now on; its gateway gets another proof."""
    found.root_id = root_id
    found.certificate = by.certificate.public_bytes(Encoding.DER)
    found.key_sealed = sealing.seal(keys.scalar(by.key), _issuer_label(found.tenant_id))
    renew_gateway(work, found)


def renew_gateway(work: Work, found: IssuerAuthority) -> None:
    """Another key and certificate for the gateway of a tenant."""
    by = _opened(found.certificate, found.key_sealed, _issuer_label(found.tenant_id))
    key = keys.generate()
    made = building.leaf(by, key.public_key(), f"auth.{found.domain}")
    found.auth_certificate = made.public_bytes(Encoding.DER)
    found.auth_key_sealed = sealing.seal(keys.scalar(key), _auth_label(found.tenant_id))
    work.session.add(found)
    work.session.flush()


def root_label(root_id: str) -> str:
    """What a root's key is sealed for."""
    return f"aun_root:{root_id}"


def _note_tenant(work: Work, fact: IdentityFact) -> None:
    if fact.action == "identity.tenant.create":
        tenant = work.session.get(Tenant, fact.tenant_id)
        if tenant is not None:
            make(work, tenant)


def _keep(event: IssuerMade) -> None:
    _domains[event.domain] = event.tenant_id


def _make_missing(work: Work) -> None:
    has_one = select(IssuerAuthority.tenant_id)
    query = select(Tenant).where(col(Tenant.id).not_in(has_one))
    for tenant in work.session.exec(query.order_by(col(Tenant.created_at), col(Tenant.id))).all():
        make(work, tenant)


def _alone(work: Work) -> None:
    """One process at a time, or a first start of two would make two roots."""
    if work.connection.dialect.name == "postgresql":
        work.connection.execute(text("LOCK TABLE aun_root IN EXCLUSIVE MODE"))


def _root(work: Work) -> tuple[str, Signer]:
    """The newest root whose key is here; a new one where the keys have left the server."""
    query = select(RootAuthority).where(col(RootAuthority.key_sealed).is_not(None))
    found = work.session.exec(query.order_by(col(RootAuthority.id).desc())).first()
    if found is not None and found.key_sealed is not None:
        return found.id, _opened(found.certificate, found.key_sealed, root_label(found.id))
    id, key = ids.ulid(), keys.generate()
    certificate = building.root(key, f"{ROOT_NAME} {id[-6:]}")
    work.session.add(
        RootAuthority(
            id=id,
            certificate=certificate.public_bytes(Encoding.DER),
            key_sealed=sealing.seal(keys.scalar(key), root_label(id)),
            created_at=clock.now(),
        )
    )
    work.session.flush()
    return id, Signer(certificate, key)


def _signed(by: Signer, root_id: str, tenant_id: str, domain: str) -> IssuerAuthority:
    key, auth_key = keys.generate(), keys.generate()
    certificate = building.issuer(by, key.public_key(), domain)
    auth = building.leaf(Signer(certificate, key), auth_key.public_key(), f"auth.{domain}")
    return IssuerAuthority(
        tenant_id=tenant_id,
        domain=domain,
        root_id=root_id,
        certificate=certificate.public_bytes(Encoding.DER),
        key_sealed=sealing.seal(keys.scalar(key), _issuer_label(tenant_id)),
        auth_certificate=auth.public_bytes(Encoding.DER),
        auth_key_sealed=sealing.seal(keys.scalar(auth_key), _auth_label(tenant_id)),
        created_at=clock.now(),
    )


def _free_domain(session: Session, tenant: Tenant) -> str:
    """A domain that is no tenant's, and no AID of the first tenant, which it would look like."""
    taken = set(_all_domains(session))
    if not taken:
        return settings.current().aun_issuer
    base = min(taken, key=len)
    for label in _labels(tenant.slug):
        domain = f"{label}.{base}"
        is_aid = select(Identity.aid).where(Identity.aid == domain)
        if domain not in taken and session.exec(is_aid).first() is None:
            return domain
    raise AssertionError("unreachable")


def _labels(slug: str) -> Iterator[str]:
    if slug not in names.OURS:
        yield slug
    yield f"tenant-{slug}"[: names.LONGEST - 1]
    while True:
        yield f"tenant-{ids.ulid()[-8:].lower()}"


def _all_domains(session: Session) -> dict[str, str]:
    return dict(session.exec(select(IssuerAuthority.domain, IssuerAuthority.tenant_id)).all())


def _issuer_label(tenant_id: str) -> str:
    return f"aun_issuer:{tenant_id}"


def _auth_label(tenant_id: str) -> str:
    return f"aun_auth:{tenant_id}"


@lru_cache(maxsize=256)
def _opened(certificate: bytes, key_sealed: bytes, label: str) -> Signer:
    key = keys.of_scalar(sealing.unseal(key_sealed, label))
    return Signer(building.parsed(certificate), key)
