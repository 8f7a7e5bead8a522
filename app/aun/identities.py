"""The AIDs that this server holds the keys of: every user's, every agent's, and the tenant's own.

They are made in the transaction that makes the user or agent, and follow what becomes of them; an
AID is never given to anyone else.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from sqlmodel import Session, col, select

from app.aun import names, queries
from app.aun.caller import CONSOLE_DEVICE, HOSTED_DEVICE, HTTP_DEVICE, Caller, Door
from app.aun.errors import NotAParty
from app.aun.group_models import Group
from app.aun.models import Identity, IdentityKind, IdentityStatus
from app.aun.pki import certificates, issuers, keys
from app.identity.facts import IdentityFact
from app.identity.models import Agent, AgentStatus, Tenant, User, UserStatus
from app.identity.principal import Principal
from app.kernel import clock, db, events, sealing
from app.kernel.db import Work

SYSTEM_NAME = "connect"  # listens to link codes (aun.md, 4.5)
AT_ONCE = 200  # identities made in one unit at start

DEVICES = {Door.CONSOLE: CONSOLE_DEVICE, Door.HTTP: HTTP_DEVICE, Door.RUN: HOSTED_DEVICE}

# what becomes of an identity when its user or agent is switched
STATUS = {
    "identity.user.disable": IdentityStatus.INACTIVE,
    "identity.user.enable": IdentityStatus.ACTIVE,
    "identity.agent.disable": IdentityStatus.INACTIVE,
    "identity.agent.enable": IdentityStatus.ACTIVE,
}


@dataclass(frozen=True, slots=True)
class Named:
    """How an AID is shown to people of its tenant."""

    name: str
    kind: IdentityKind
    owner_id: str | None = None
    is_active: bool = True


def listen() -> Callable[[], None]:
    """Start to listen, after `issuers`; once at start. Returns a function that ends it."""
    return events.subscribe_inside(IdentityFact, _note)


def prepare() -> None:
    """Give identities to users, agents and tenants that have none; at start, not inside a unit."""
    while db.transact_now(_make_missing):
        pass


def for_user(work: Work, user: User) -> Identity:
    """The identity of a user, made if there is none."""
    is_off = user.status == UserStatus.DISABLED
    return _for(work, user, IdentityKind.USER, user.login, is_off)


def for_agent(work: Work, agent: Agent) -> Identity:
    """The identity of an agent, made if there is none."""
    is_off = agent.status == AgentStatus.DISABLED
    return _for(work, agent, IdentityKind.AGENT, agent.code, is_off)


def system(work: Work, tenant_id: str) -> Identity:
    """The identity of the tenant itself, `connect.{issuer}`, made if there is none."""
    aid = system_aid(work.session, tenant_id)
    return queries.identity(work.session, tenant_id, aid) or _make(
        work, tenant_id, aid, IdentityKind.SYSTEM, tenant_id, IdentityStatus.ACTIVE
    )


def system_aid(session: Session, tenant_id: str) -> str:
    """The AID that listens to link codes."""
    return f"{SYSTEM_NAME}.{issuers.domain_of(session, tenant_id)}"


def is_free(session: Session, tenant_id: str, aid: str) -> bool:
    """Whether an AID or a group id of this tenant can still be given; it may be nobody's name."""
    name, _, _ = aid.partition(".")
    is_issuer = issuers.is_domain(session, aid)
    return not is_issuer and name not in names.OURS and not _exists(session, tenant_id, aid)


def key_of(session: Session, tenant_id: str, aid: str) -> bytes:
    """The private scalar of a hosted identity (32 bytes); it never leaves the process.

    Raises:
        LookupError: the key is not held here.
    """
    found = queries.identity(session, tenant_id, aid)
    if found is None or found.key_sealed is None:
        raise LookupError("the key of this AID is not held here")
    return sealing.unseal(found.key_sealed, key_label(tenant_id, aid))


def key_label(tenant_id: str, aid: str) -> str:
    """What the key of an identity is sealed for."""
    return f"aun_identity:{tenant_id}:{aid}"


def caller_of_user(
    session: Session, person: Principal, door: Door = Door.CONSOLE, slot: str = "default"
) -> Caller:
    """A person as the party that calls methods.

    Raises:
        NotAParty: their identity is off.
    """
    return _caller(_own(session, person.tenant_id, person.user_id), door, slot, person)


def caller_of_agent(
    session: Session, agent: Principal, door: Door = Door.RUN, slot: str = "default"
) -> Caller:
    """The agent that acts as the party that calls methods, for whomever it acts.

    Raises:
        NotAParty: its identity is off.
    """
    return _caller(_own(session, agent.tenant_id, agent.agent_id or ""), door, slot, agent)


def display_names(session: Session, tenant_id: str, aids: Collection[str]) -> dict[str, Named]:
    """How the AIDs of a tenant are shown: names of people, agents and groups; an AID else."""
    found = queries.known(session, tenant_id, aids)
    named = _names(session, tenant_id, found.values())
    return {
        aid: Named(
            named.get(_subject(each)) or aid,
            IdentityKind(each.kind),
            each.owner_id,
            each.status == IdentityStatus.ACTIVE,
        )
        for aid, each in found.items()
    }


def _note(work: Work, fact: IdentityFact) -> None:
    if fact.action == "identity.tenant.create":
        system(work, fact.tenant_id)
    elif fact.action == "identity.user.create":
        user = work.session.get(User, (fact.tenant_id, fact.target_id))
        if user is not None:
            for_user(work, user)
    elif fact.action == "identity.agent.create":
        agent = work.session.get(Agent, (fact.tenant_id, fact.target_id))
        if agent is not None:
            for_agent(work, agent)
    elif fact.action == "identity.agent.change" and fact.target_id:
        _forget_card(work, fact.tenant_id, fact.target_id)  # written anew when somebody asks next
    elif fact.action in STATUS and fact.target_id:
        _switch(work, fact.tenant_id, fact.target_id, STATUS[fact.action])


def _forget_card(work: Work, tenant_id: str, owner_id: str) -> None:
    found = queries.of_owner(work.session, tenant_id, owner_id)
    if found is not None:
        found.card = found.card_etag = found.card_at = None
        work.session.add(found)


def _switch(work: Work, tenant_id: str, owner_id: str, status: IdentityStatus) -> None:
    found = queries.of_owner(work.session, tenant_id, owner_id)
    if found is not None:
        found.status = status
        work.session.add(found)


def _make_missing(work: Work) -> int:
    """Some of what is missing; returns how many were made."""
    users = work.session.exec(select(User).where(col(User.aid).is_(None)).limit(AT_ONCE)).all()
    for user in users:
        for_user(work, user)
    agents = work.session.exec(select(Agent).where(col(Agent.aid).is_(None)).limit(AT_ONCE)).all()
    for agent in agents:
        for_agent(work, agent)
    has_one = select(Identity.tenant_id).where(Identity.kind == IdentityKind.SYSTEM)
    tenants = work.session.exec(select(Tenant.id).where(col(Tenant.id).not_in(has_one))).all()
    for tenant_id in tenants:
        system(work, tenant_id)
    return len(users) + len(agents) + len(tenants)


def _for(work: Work, owner: User | Agent, kind: IdentityKind, login: str, is_off: bool) -> Identity:
    found = queries.of_owner(work.session, owner.tenant_id, owner.id)
    if found is None:
        status = IdentityStatus.INACTIVE if is_off else IdentityStatus.ACTIVE
        aid = _free_aid(work.session, owner.tenant_id, login, kind)
        found = _make(work, owner.tenant_id, aid, kind, owner.id, status)
    owner.aid = found.aid
    work.session.add(owner)
    work.session.flush()
    return found


def _make(
    work: Work,
    tenant_id: str,
    aid: str,
    kind: IdentityKind,
    owner_id: str,
    status: IdentityStatus,
) -> Identity:
    key = keys.generate()
    made = Identity(
        tenant_id=tenant_id,
        aid=aid,
        kind=kind,
        owner_id=owner_id,
        status=status,
        key_sealed=sealing.seal(keys.scalar(key), key_label(tenant_id, aid)),
        created_at=clock.now(),
    )
    work.session.add(made)
    work.session.flush()
    certificates.issue(work, tenant_id, aid, key.public_key())
    return made


def _free_aid(session: Session, tenant_id: str, login: str, kind: IdentityKind) -> str:
    domain = issuers.domain_of(session, tenant_id)
    for name in _candidates(login, str(kind)):
        aid = f"{name}.{domain}"
        if is_free(session, tenant_id, aid):
            return aid
    raise AssertionError("unreachable")


def _candidates(login: str, prefix: str) -> Iterator[str]:
    name = names.of_login(login, prefix)
    yield name
    if not name.startswith(f"{prefix}-"):
        name = f"{prefix}-{name}"[: names.LONGEST]
        yield name
    number = 2
    while True:
        yield f"{name[: names.LONGEST - 8]}-{number}"
        number += 1


def _exists(session: Session, tenant_id: str, aid: str) -> bool:
    is_known = queries.identity(session, tenant_id, aid) is not None
    return is_known or session.get(Group, (tenant_id, aid)) is not None


def _names(session: Session, tenant_id: str, identities: Collection[Identity]) -> dict[str, str]:
    """The names of those behind identities, by the id of whom they are about."""
    subjects = sorted({_subject(each) for each in identities})
    users = select(User.id, User.display_name).where(
        User.tenant_id == tenant_id, col(User.id).in_(subjects)
    )
    agents = select(Agent.id, Agent.name).where(
        Agent.tenant_id == tenant_id, col(Agent.id).in_(subjects)
    )
    groups = select(Group.id, Group.name).where(
        Group.tenant_id == tenant_id, col(Group.id).in_(subjects)
    )
    kinds = {each.kind for each in identities}
    wanted = {IdentityKind.USER: users, IdentityKind.AGENT: agents, IdentityKind.GROUP: groups}
    found: dict[str, str] = {}
    for kind, query in wanted.items():
        if kind in kinds:
            found.update(session.exec(query).all())
    return found


def _subject(identity: Identity) -> str:
    is_group = identity.kind == IdentityKind.GROUP
    return identity.aid if is_group else identity.owner_id or ""


def _own(session: Session, tenant_id: str, owner_id: str) -> Identity:
    found = queries.of_owner(session, tenant_id, owner_id)
    if found is None or found.status != IdentityStatus.ACTIVE:
        raise NotAParty("this identity is not active")
    return found


def _caller(identity: Identity, door: Door, slot: str, principal: Principal) -> Caller:
    return Caller(
        tenant_id=identity.tenant_id,
        aid=identity.aid,
        kind=IdentityKind(identity.kind),
        device_id=DEVICES[door],
        slot_key=slot,
        door=door,
        principal=principal,
    )
