"""What identity tells the trail and the streams: facts to record, and rights that changed."""

from dataclasses import dataclass, field
from typing import Any

from sqlmodel import select

from app.identity.errors import SignInRequired
from app.identity.models import Tenant, TenantStatus, User, UserStatus
from app.identity.principal import Principal
from app.kernel.db import Work
from app.kernel.events import Broadcast, Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field before and after; secrets never stand in one."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityFact(Event):
    """Something of identity that belongs on record (security.md, 10).

    The trail writes it, inside the same transaction, as one entry with `command` = `action`.
    """

    action: str  # `identity.user.disable`
    actor: Principal | None  # None: nobody signed in, or the operator
    user_id: str | None = None  # whom it is about where no principal acts (a failed sign-in)
    outcome: str = "done"  # or `refused`
    stage: str | None = None
    reason: str | None = None
    target_type: str | None = None
    target_id: str | None = None
    changes: tuple[Change, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)  # plain JSON, no secrets, no floats


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessChanged(Broadcast):
    """Somebody's rights changed or ended: streams look again or close (SEC-31).

    What is None is not narrowed by: a `user_id` alone means everything of that user.
    `ends` tells streams to close; otherwise they authorise themselves anew.
    """

    why: str
    ends: bool
    user_id: str | None = None
    session_id: str | None = None
    delegation_id: str | None = None
    agent_id: str | None = None
    client_id: str | None = None


def record(
    work: Work,
    action: str,
    actor: Principal | None,
    *,
    tenant_id: str = "",
    target: tuple[str, str] | None = None,
    changes: dict[str, tuple[Any, Any]] | None = None,
    **more: Any,
) -> None:
    """Put one fact on record in this transaction.

    `target` is (type, id); `changes` maps a field to (before, after), equal pairs are left out;
    `tenant_id` is needed only where there is no `actor`.

    Raises:
        SignInRequired: the actor was disabled, or the tenant suspended, since the request began.
    """
    if actor is not None:
        _check_acts(work, actor)
    target_type, target_id = target or (None, None)
    work.announce(
        IdentityFact(
            tenant_id=actor.tenant_id if actor else tenant_id,
            action=action,
            actor=actor,
            target_type=target_type,
            target_id=target_id,
            changes=tuple(
                Change(field=name, before=before, after=after)
                for name, (before, after) in (changes or {}).items()
                if before != after
            ),
            **more,
        )
    )


def _check_acts(work: Work, actor: Principal) -> None:
    """No commit after a deactivation (SEC-33): who acts is read again, and held until the commit.

    Whatever identity writes goes on record, so this is the place that none of it goes around.
    """
    tenant = select(Tenant.status).where(Tenant.id == actor.tenant_id)
    user = select(User.status).where(User.tenant_id == actor.tenant_id, User.id == actor.user_id)
    is_active = (
        work.session.exec(tenant.with_for_update(read=True)).first() == TenantStatus.ACTIVE
        and work.session.exec(user.with_for_update(read=True)).first() == UserStatus.ACTIVE
    )
    if not is_active:
        raise SignInRequired
