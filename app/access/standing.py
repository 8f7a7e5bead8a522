"""Whether who opened something may still go on: read again at every heartbeat (SEC-32)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from weakref import WeakValueDictionary

from sqlmodel import Session, col, or_, select

from app.access import scope, topics
from app.identity.facts import AccessChanged
from app.identity.models import (
    Agent,
    AgentStatus,
    BrowserSession,
    ClientStatus,
    Delegation,
    OAuthClient,
    Tenant,
    TenantStatus,
    TokenFamily,
    User,
    UserStatus,
)
from app.identity.principal import Principal, Scope
from app.kernel import clock, db, events, streams
from app.kernel.models import LoggedEvent
from app.kernel.streams import Holder

AUDIT_READ = "audit.read"
OWN = "own"  # among organisations: the user's own records, wherever they stand


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _Reach:
    """What some roles let their holders hear of; all streams of equal rights share one."""

    held: frozenset[str]
    tenant_wide: frozenset[str]
    reached: Mapping[str, frozenset[str]]


_reaches: WeakValueDictionary[object, _Reach] = WeakValueDictionary()


class Rights:
    """What a principal may hear of, as of one moment."""

    __slots__ = ("_principal", "_reach", "aid")

    def __init__(
        self,
        principal: Principal,
        held: frozenset[str],
        tenant_wide: frozenset[str],
        reached: Mapping[str, frozenset[str]] | None = None,
        aid: str | None = None,
    ) -> None:
        self._principal = principal
        self._reach = _shared(held, tenant_wide, reached or {})
        self.aid = aid  # whose conversations it hears; None: of none

    def allow(self, event: LoggedEvent) -> bool | None:
        """Whether the principal may hear of `event`.

        None: who takes part in its topic has to be read first (`topics.learn`).
        """
        if event.tenant_id != self._principal.tenant_id:
            return False
        if event.user_id is not None and event.user_id != self._principal.user_id:
            return False
        if event.topic is not None:
            takes_part = topics.of_process().hears(event, self.aid)
            if not takes_part:
                return takes_part
        if event.permission is None:
            return True
        if event.permission == AUDIT_READ and not self._principal.has_scope(Scope.AUDIT_READ):
            return False
        reach = self._reach
        if event.org_id is not None and event.permission not in reach.tenant_wide:
            reached = reach.reached.get(event.permission, frozenset())
            return event.org_id in reached or (
                event.owner_id == self._principal.user_id and OWN in reached
            )
        # what is not about this user alone may be about anything of the tenant
        return event.permission in (reach.tenant_wide if event.user_id is None else reach.held)


def _shared(
    held: frozenset[str], tenant_wide: frozenset[str], reached: Mapping[str, frozenset[str]]
) -> _Reach:
    key = (held, tenant_wide, frozenset(reached.items()))
    found = _reaches.get(key)  # two threads may make one each: then each is used by some
    if found is None:
        found = _reaches[key] = _Reach(held, tenant_wide, reached)
    return found


def rights(session: Session, principal: Principal) -> Rights | None:
    """What `principal` may hear of now; None where it may not go on at all."""
    if not stands(session, principal):
        return None
    return Rights(
        principal,
        scope.permissions_of(session, principal),
        scope.tenant_wide_permissions(session, principal),
        scope.organisations_reached(session, principal, own=OWN),
        _aid_of(session, principal),
    )


def stands(session: Session, principal: Principal) -> bool:
    """Whether everything behind a principal holds now: tenant, user, session or delegation."""
    query = select(User.authz_epoch).where(
        User.tenant_id == principal.tenant_id,
        User.id == principal.user_id,
        User.status == UserStatus.ACTIVE,
        col(User.tenant_id).in_(
            select(Tenant.id).where(
                Tenant.id == principal.tenant_id, Tenant.status == TenantStatus.ACTIVE
            )
        ),
    )
    epoch = session.exec(query).first()
    if epoch is None:
        return False
    if principal.is_person:
        return _session_stands(session, principal)
    # a token of an older epoch counts nowhere any more; the client fetches a new one and returns
    return epoch == principal.epoch and _delegation_stands(session, principal)


def _aid_of(session: Session, principal: Principal) -> str | None:
    """The name in messages of a person, or of an agent that may read and write them."""
    if principal.is_person:
        of_user = select(User.aid).where(
            User.tenant_id == principal.tenant_id, User.id == principal.user_id
        )
        return session.exec(of_user).first()
    if not principal.has_scope(Scope.AUN_MESSAGE):
        return None
    of_agent = select(Agent.aid).where(
        Agent.tenant_id == principal.tenant_id, Agent.id == principal.agent_id
    )
    return session.exec(of_agent).first()


def holder_of(principal: Principal) -> Holder:
    """Who holds a stream, as changes of access name them."""
    return Holder(
        principal.tenant_id,
        principal.user_id,
        principal.session_id if principal.is_person else None,  # an agent outlives the session
        principal.delegation_id,
        principal.actors,
    )


_is_listening = False


def listen() -> None:
    """Let changes of access close open streams, or make them look again; once in a process."""
    global _is_listening
    if not _is_listening:
        _is_listening = True
        events.subscribe(AccessChanged, pass_on)


def pass_on(change: AccessChanged) -> None:
    """Tell the streams that `change` is about."""
    for stream in streams.of_process().matching(lambda holder: _is_about(change, holder)):
        # of a client only its agents' rows tell which streams are its own: they look for themselves
        if change.ends and change.client_id is None:
            stream.end()
        else:
            stream.look_again()


def look_at_streams() -> None:
    """Let streams look again whose rights ended in silence; now and then, on a thread.

    Time ends a delegation or a session without a word, and on SQLite a command of the operator is
    another process, whose news does not arrive here.
    """
    opened = streams.of_process().matching(lambda _: True)
    if opened:
        ended = db.read_now(_ended_in_silence, {stream.holder for stream in opened})
        for stream in opened:
            holder = stream.holder
            if ended & {
                holder.tenant_id,
                holder.user_id,
                holder.session_id,
                holder.delegation_id,
            }:
                stream.look_again()


def _ended_in_silence(session: Session, holders: Collection[Holder]) -> set[str | None]:
    """Ids of `holders` that hold no more: tenants and users not active, what time is over of."""
    now = clock.now()
    tenants = {holder.tenant_id for holder in holders}
    suspended = select(Tenant.id).where(
        col(Tenant.id).in_(tenants), Tenant.status != TenantStatus.ACTIVE
    )
    off = select(User.id).where(
        col(User.tenant_id).in_(tenants),
        col(User.id).in_({holder.user_id for holder in holders}),
        User.status != UserStatus.ACTIVE,
    )
    left = select(BrowserSession.id).where(
        col(BrowserSession.tenant_id).in_(tenants),
        col(BrowserSession.id).in_({holder.session_id for holder in holders} - {None}),
        or_(
            col(BrowserSession.revoked_at).is_not(None),
            col(BrowserSession.ends_at) <= now,
            col(BrowserSession.idle_until) <= now,
        ),
    )
    over = select(Delegation.id).where(
        col(Delegation.tenant_id).in_(tenants),
        col(Delegation.id).in_({holder.delegation_id for holder in holders} - {None}),
        col(Delegation.expires_at) <= now,
    )
    return {id for query in (suspended, off, left, over) for id in session.exec(query)}


def _is_about(change: AccessChanged, holder: Holder) -> bool:
    return (
        holder.tenant_id == change.tenant_id
        and change.user_id in (None, holder.user_id)
        and change.session_id in (None, holder.session_id)
        and change.delegation_id in (None, holder.delegation_id)
        and (change.agent_id is None or change.agent_id in holder.agent_ids)
        and (change.client_id is None or bool(holder.agent_ids))
    )


def _session_stands(session: Session, principal: Principal) -> bool:
    now = clock.now()
    query = select(BrowserSession.id).where(
        BrowserSession.tenant_id == principal.tenant_id,
        BrowserSession.id == principal.session_id,
        BrowserSession.user_id == principal.user_id,
        col(BrowserSession.revoked_at).is_(None),
        BrowserSession.ends_at > now,
        BrowserSession.idle_until > now,
    )
    return session.exec(query).first() is not None


def _family_stands(session: Session, principal: Principal) -> bool:
    query = select(TokenFamily.id).where(
        TokenFamily.tenant_id == principal.tenant_id,
        TokenFamily.id == principal.family_id,
        col(TokenFamily.revoked_at).is_(None),
    )
    return session.exec(query).first() is not None


def _delegation_stands(session: Session, principal: Principal) -> bool:
    now = clock.now()
    query = select(Delegation.expires_at).where(
        Delegation.tenant_id == principal.tenant_id,
        Delegation.id == principal.delegation_id,
        Delegation.user_id == principal.user_id,
        col(Delegation.revoked_at).is_(None),
        col(Delegation.paused_at).is_(None),
    )
    found = session.exec(query).all()
    if not found or (found[0] is not None and found[0] <= now):
        return False
    if principal.family_id is not None and not _family_stands(session, principal):
        return False
    agents = session.exec(
        select(Agent.status, OAuthClient.status)
        .join(OAuthClient, col(OAuthClient.id) == Agent.client_id, isouter=True)
        .where(Agent.tenant_id == principal.tenant_id, col(Agent.id).in_(principal.actors))
    ).all()
    return len(agents) == len(set(principal.actors)) and all(
        status == AgentStatus.PUBLISHED and client in (None, ClientStatus.ACTIVE)
        for status, client in agents
    )
