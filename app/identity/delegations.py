"""Delegations: the only thing that lets an agent act for a person; they narrow, never grant."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select

from app.identity import facts, stops
from app.identity.errors import NotUsableNow, ScopeUnknown
from app.identity.facts import AccessChanged
from app.identity.models import Agent, AgentStatus, Delegation, User
from app.identity.principal import Principal, Scope
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.errors import NotFound

_DUE = Due("delegation")


def make_or_widen(
    work: Work,
    actor: Principal,
    agent: Agent,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
) -> Delegation:
    """Let `agent` act for the person `actor`; a live one gets the new scopes too.

    Raises:
        ScopeUnknown: one of the scopes is none.
        NotUsableNow: the agent is not published.
    """
    wanted = _known(scopes)
    if agent.status != AgentStatus.PUBLISHED:
        raise NotUsableNow(state=agent.status)
    delegation = live(work.session, actor.tenant_id, actor.user_id, agent.id)
    if delegation is not None and not is_usable(delegation, clock.now()):
        _expire(work, delegation)  # what it allowed was for a time that is over
        delegation = None
    if delegation is None:
        return _make(work, actor, actor.user_id, agent, wanted, expires_at)
    widened = sorted({*delegation.scopes, *wanted})
    facts.record(
        work,
        "identity.delegation.widen",
        actor,
        target=("delegation", delegation.id),
        changes={
            "scopes": (delegation.scopes, widened),
            "expires_at": (_text(delegation.expires_at), _text(expires_at)),
        },
        details={"agent_id": agent.id},
    )
    delegation.scopes, delegation.expires_at = widened, expires_at
    work.session.add(delegation)
    return delegation


def make_for(
    work: Work, user: User, agent: Agent, scopes: Iterable[str], expires_at: datetime | None = None
) -> Delegation:
    """The same as an operator's act, for a workspace that is filled with examples.

    Raises:
        ScopeUnknown: one of the scopes is none.
    """
    return _make(work, None, user.id, agent, _known(scopes), expires_at)


def set_scopes(work: Work, actor: Principal, delegation: Delegation, scopes: Iterable[str]) -> None:
    """Say anew what a delegation allows; a narrower one holds at the next call.

    Raises:
        ScopeUnknown: one of the scopes is none.
        NotUsableNow: it was revoked.
    """
    wanted = _known(scopes)
    _is_live(delegation)
    facts.record(
        work,
        "identity.delegation.change",
        actor,
        target=("delegation", delegation.id),
        changes={"scopes": (delegation.scopes, wanted)},
        details={"agent_id": delegation.agent_id},
    )
    delegation.scopes = wanted
    work.session.add(delegation)
    _look_again(work, delegation, "delegation_changed")


def pause(work: Work, actor: Principal | None, delegation: Delegation, why: str) -> None:
    """Hold an agent back for now; its calls answer `delegation_paused`.

    Raises:
        NotUsableNow: it was revoked, or is paused already.
    """
    _is_live(delegation)
    if delegation.paused_at is not None:
        raise NotUsableNow(state="paused")
    _record(work, "identity.delegation.pause", actor, delegation, why=why)
    delegation.paused_at, delegation.paused_why = clock.now(), why
    work.session.add(delegation)
    _look_again(work, delegation, "delegation_paused")


def resume(work: Work, actor: Principal, delegation: Delegation) -> None:
    """Let a paused agent go on.

    Raises:
        NotUsableNow: it was revoked, or is not paused.
    """
    _is_live(delegation)
    if delegation.paused_at is None:
        raise NotUsableNow(state="active")
    _record(work, "identity.delegation.resume", actor, delegation)
    delegation.paused_at = delegation.paused_why = None
    work.session.add(delegation)
    _look_again(work, delegation, "delegation_resumed")


def revoke(work: Work, actor: Principal, delegation: Delegation) -> None:
    """End a delegation for good, and the tokens that came of it.

    Raises:
        NotUsableNow: it was revoked already.
    """
    _is_live(delegation)
    _record(work, "identity.delegation.revoke", actor, delegation)
    delegation.revoked_at, delegation.revoked_by = clock.now(), actor.user_id
    work.session.add(delegation)
    work.session.flush()
    stops.end_delegation(work, delegation, "delegation_revoked")


def sweep() -> int:
    """End delegations whose time is over; returns how many. Run by the scheduler.

    It waits for the database: for threads, not for a unit or the event loop.
    """
    now = clock.now()
    return _DUE.together_now(
        lambda work, only: end_expired(work, now, only), lambda session, _: _expired(session, now)
    )


def end_expired(work: Work, now: datetime, only: tuple[str, ...] | None = None) -> int:
    """End delegations whose time is over, or the one of a key; returns how many."""
    query = select(Delegation).where(*_is_over(now))
    if only is not None:
        query = query.where(Delegation.tenant_id == only[0], Delegation.id == only[1])
    over = work.session.exec(query.with_for_update(skip_locked=True)).all()
    for delegation in over:
        _expire(work, delegation)
    return len(over)


def live(session: Session, tenant_id: str, user_id: str, agent_id: str) -> Delegation | None:
    """What a user lets an agent do, if it was not revoked; it may be paused or have run out."""
    query = select(Delegation).where(
        Delegation.tenant_id == tenant_id,
        Delegation.user_id == user_id,
        Delegation.agent_id == agent_id,
        col(Delegation.revoked_at).is_(None),
    )
    return session.exec(query).first()


def of_user(session: Session, tenant_id: str, user_id: str) -> Sequence[tuple[Delegation, Agent]]:
    """What a user lets agents do, live ones first, then the newest."""
    query = (
        select(Delegation, Agent)
        .where(Delegation.tenant_id == tenant_id, Delegation.user_id == user_id)
        .where(Agent.tenant_id == tenant_id, Agent.id == Delegation.agent_id)
        .order_by(col(Delegation.revoked_at).is_not(None), col(Delegation.created_at).desc())
    )
    return session.exec(query).all()


def own(session: Session, actor: Principal, delegation_id: str) -> Delegation:
    """A delegation the person made.

    Raises:
        NotFound: there is none, or it is somebody else's.
    """
    delegation = session.get(Delegation, (actor.tenant_id, delegation_id))
    if delegation is None or delegation.user_id != actor.user_id:
        raise NotFound
    return delegation


def is_usable(delegation: Delegation, now: datetime) -> bool:
    """Whether tokens may be made and used under it, a pause aside."""
    return delegation.revoked_at is None and (
        delegation.expires_at is None or delegation.expires_at > now
    )


def _make(
    work: Work,
    actor: Principal | None,
    user_id: str,
    agent: Agent,
    scopes: list[str],
    expires_at: datetime | None,
) -> Delegation:
    delegation = Delegation(
        tenant_id=agent.tenant_id,
        id=ids.ulid(),
        user_id=user_id,
        agent_id=agent.id,
        scopes=scopes,
        created_by_session=actor.session_id if actor else None,
        created_at=clock.now(),
        expires_at=expires_at,
    )
    work.session.add(delegation)
    work.session.flush()
    facts.record(
        work,
        "identity.delegation.create",
        actor,
        tenant_id=agent.tenant_id,
        user_id=user_id,
        target=("delegation", delegation.id),
        changes={"scopes": (None, scopes), "expires_at": (None, _text(expires_at))},
        details={"agent_id": agent.id},
    )
    return delegation


def _expired(session: Session, now: datetime) -> Sequence[tuple[str, str]]:
    return session.exec(select(Delegation.tenant_id, Delegation.id).where(*_is_over(now))).all()


def _is_over(now: datetime) -> list[ColumnElement[bool]]:
    return [col(Delegation.revoked_at).is_(None), col(Delegation.expires_at) <= now]


def _expire(work: Work, delegation: Delegation) -> None:
    _record(work, "identity.delegation.expire", None, delegation)
    delegation.revoked_at = clock.now()
    work.session.add(delegation)
    work.session.flush()
    stops.end_delegation(work, delegation, "delegation_expired")


def _known(scopes: Iterable[str]) -> list[str]:
    wanted = sorted(set(scopes))
    if not wanted or any(scope not in set(Scope) for scope in wanted):
        raise ScopeUnknown
    return wanted


def _is_live(delegation: Delegation) -> None:
    if delegation.revoked_at is not None:
        raise NotUsableNow(state="revoked")


def _record(
    work: Work, action: str, actor: Principal | None, delegation: Delegation, **details: str
) -> None:
    facts.record(
        work,
        action,
        actor,
        tenant_id=delegation.tenant_id,
        user_id=delegation.user_id,
        target=("delegation", delegation.id),
        details={"agent_id": delegation.agent_id, **details},
    )


def _look_again(work: Work, delegation: Delegation, why: str) -> None:
    work.announce(
        AccessChanged(
            tenant_id=delegation.tenant_id,
            user_id=delegation.user_id,
            delegation_id=delegation.id,
            ends=False,
            why=why,
        )
    )


def _text(moment: datetime | None) -> str | None:
    return clock.rfc3339(moment) if moment else None
