"""Whose authority a run has, and whether it still stands (agent-loop.md, 9).

It comes from the person at the start of the chain, through live delegations that only narrow; what
a payload says changes none of it. A message's chain is read from the run that said it (RUN-97).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection
from sqlmodel import Session

from app.aun.group_models import GroupStatus
from app.identity import delegations
from app.identity.models import AgentStatus, TenantStatus, UserStatus
from app.identity.principal import Channel, Principal, Scope
from app.kernel import clock, json
from app.runs import rows
from app.runs.errors import Cancelled
from app.runs.lanes import Party
from app.runs.run_models import Run

DEEPEST = 3  # agents in one chain (SEC-28)
USER_DISABLED, DELEGATION_REVOKED = "user_disabled", "delegation_revoked"
NOT_MEMBER, CONVERSATION_DELETED = "not_member", "conversation_deleted"
AGENT_DISABLED, TENANT_SUSPENDED = "agent_disabled", "tenant_suspended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Where an agent's words came from: the party at the start, and who passed them on.

    Attributes:
        actors: the agents, the one that spoke first of all.
        scopes: the intersection along them.
    """

    party: Party
    actors: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    depth: int = 0

    @property
    def is_too_long(self) -> bool:
        """Whether nobody may act on it any more."""
        return self.depth + 1 > DEEPEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Mandate:
    """What a run that is opened stands on; its catalogue is empty without a delegation."""

    user_id: str | None
    delegation_id: str | None
    actors: list[str]
    scopes: list[str]
    depth: int


def chain_of(connection: Connection, tenant_id: str, message_id: str, sender_aid: str) -> Chain:
    """The chain of an agent's message; one that no run of ours said is nobody's."""
    said = rows.CHAIN.run(connection, tenant_id=tenant_id, message_id=message_id).first()
    if said is None:
        return Chain(party=Party(peer_aid=sender_aid))
    is_peers = said.user_id is None
    return Chain(
        party=Party(peer_aid=said.peer_aid or sender_aid) if is_peers else Party(said.user_id),
        actors=tuple(json.of_column(said.actors)),
        scopes=tuple(json.of_column(said.scopes)),
        depth=said.depth,
    )


def mandate_for(
    session: Session, tenant_id: str, agent_id: str, user_id: str | None, chain: Chain | None = None
) -> Mandate:
    """What a new run of an agent stands on, for a person or along a chain."""
    live = delegations.live(session, tenant_id, user_id, agent_id) if user_id else None
    if live is not None and not delegations.is_usable(live, clock.now()):
        live = None
    scopes: Iterable[str] = live.scopes if live else ()
    if chain is not None:
        granted = granted_along(session, tenant_id, user_id, chain.actors)
        live = live if granted is not None else None
        scopes = [each for each in scopes if each in chain.scopes and each in (granted or ())]
    return Mandate(
        user_id=user_id,
        delegation_id=live.id if live else None,
        actors=[agent_id, *(chain.actors if chain else ())],
        scopes=sorted(scopes),
        depth=(chain.depth if chain else 0) + 1,
    )


def granted_along(
    session: Session, tenant_id: str, user_id: str | None, actors: Sequence[str]
) -> frozenset[str] | None:
    """What a user lets every agent of a chain do, now; None: one of them may do nothing."""
    granted = frozenset(Scope)
    for agent_id in actors:
        live = delegations.live(session, tenant_id, user_id, agent_id) if user_id else None
        if live is None or not delegations.is_usable(live, clock.now()):
            return None
        granted &= Scope.among(live.scopes)
    return granted


def principal_of(session: Session, run: Run) -> Principal | None:
    """Who acts in a run, by what holds now; None for an outside peer whom nobody knows."""
    if run.user_id is None:
        return None
    now = standing(session.connection(), run.tenant_id, run.id)
    scopes: Iterable[str] = ()
    if now.delegation is not None and not _has_ended(now):
        granted = json.of_column(now.scopes)
        along = granted_along(session, run.tenant_id, run.user_id, run.actors[1:]) or ()
        scopes = [scope for scope in run.scopes if scope in granted and scope in along]
    return Principal(
        tenant_id=run.tenant_id,
        user_id=run.user_id,
        agent_release_id=run.release_id,
        delegation_id=run.delegation_id,
        session_id=None,
        channel=Channel.RUN,
        actors=tuple(run.actors),
        scopes=Scope.among(scopes),
        epoch=now.authz_epoch or 0,
    )


def check(session: Session, run: Run) -> None:
    """Return while everything a run stands on still stands (RUN-98).

    Raises:
        Cancelled: `user_disabled`, `delegation_revoked`, `agent_disabled`, `not_member`,
            `conversation_deleted`, `tenant_suspended`.
    """
    judge(standing(session.connection(), run.tenant_id, run.id), lambda: session)


def standing(connection: Connection, tenant_id: str, run_id: str) -> Any:
    """A run's row with everything it stands on, as it is now."""
    return rows.STANDING.run(connection, tenant_id=tenant_id, run_id=run_id).one()


def judge(now: Any, session: Callable[[], Session]) -> None:
    """`check` of what `standing` found; a session is asked for where there is a chain to follow.

    Raises:
        Cancelled: as `check` says.
    """
    if now.tenant_status != TenantStatus.ACTIVE:
        raise Cancelled(TENANT_SUSPENDED)
    if now.user_id is not None and now.user_status != UserStatus.ACTIVE:
        raise Cancelled(USER_DISABLED)
    if now.delegation_id is not None and _has_ended(now):
        raise Cancelled(DELEGATION_REVOKED)
    if now.is_unlinked or not _chain_stands(now, session):
        raise Cancelled(DELEGATION_REVOKED)
    if now.agent_status != AgentStatus.PUBLISHED:
        raise Cancelled(AGENT_DISABLED)
    if now.group_status == GroupStatus.DISSOLVED:
        raise Cancelled(CONVERSATION_DELETED)
    if now.group_id is not None and not (now.is_agent_in and now.is_principal_in):
        raise Cancelled(NOT_MEMBER)


def _chain_stands(now: Any, session: Callable[[], Session]) -> bool:
    """Whether the user still lets every agent act through which the work came (RUN-97)."""
    actors = json.of_column(now.actors)
    if now.delegation_id is None or len(actors) < 2:
        return True
    return granted_along(session(), now.tenant_id, now.user_id, actors[1:]) is not None


def is_paused(now: Any) -> bool:
    """Whether its agent, its delegation or its lane rests: it parks before its next turn."""
    paused = (now.agent_paused_at, now.lane_paused_at, now.delegation_paused_at)
    return any(each is not None for each in paused)


def _has_ended(now: Any) -> bool:
    expires_at: datetime | None = rows.moment(now.expires_at)
    is_over = expires_at is not None and expires_at <= clock.now()
    return now.delegation is None or now.revoked_at is not None or is_over
