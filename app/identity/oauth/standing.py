"""What stands behind a grant now, held in the transaction that makes the token (SEC-32)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, SQLModel, col, select
from typing_extensions import TypeVar

from app.identity import delegations
from app.identity.models import (
    Agent,
    AgentStatus,
    Delegation,
    Tenant,
    TenantStatus,
    User,
    UserStatus,
)
from app.identity.tokens import Standing
from app.kernel import clock

Row = TypeVar("Row", bound=SQLModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a grant came from: the person's sign-in and the session in which they consented."""

    auth_time: datetime
    amr: Sequence[str]
    session_id: str | None = None


def now(
    session: Session,
    *,
    tenant_id: str,
    delegation_id: str,
    client_id: str,
    origin: Origin,
    family_id: str | None,
) -> tuple[Standing, Delegation] | None:
    """Who stands behind a delegation of this client, or None where one of them no longer does.

    The rows are locked against change (PostgreSQL; SQLite has one writer): a user who is disabled
    meanwhile is disabled before this token, or after it and then with it.
    """
    tenant = _held(session, Tenant, id=tenant_id)
    delegation = _held(session, Delegation, tenant_id=tenant_id, id=delegation_id)
    if tenant is None or delegation is None or not delegations.is_usable(delegation, clock.now()):
        return None
    user = _held(session, User, tenant_id=tenant_id, id=delegation.user_id)
    agent = _held(session, Agent, tenant_id=tenant_id, id=delegation.agent_id)
    if user is None or agent is None or (agent.client_id or agent.id) != client_id:
        return None
    stands = (
        tenant.status == TenantStatus.ACTIVE
        and user.status == UserStatus.ACTIVE
        and agent.status == AgentStatus.PUBLISHED
    )
    if not stands:
        return None
    standing = Standing(
        tenant_id=tenant_id,
        user_id=user.id,
        epoch=user.authz_epoch,
        actors=(agent.id,),
        client_id=client_id,
        delegation_id=delegation.id,
        auth_time=origin.auth_time,
        amr=tuple(origin.amr),
        family_id=family_id,
        session_id=origin.session_id,
    )
    return standing, delegation


def _held(session: Session, table: type[Row], **key: str) -> Row | None:
    query = select(table).where(*(col(getattr(table, name)) == key[name] for name in key))
    held = query.with_for_update(read=True).execution_options(populate_existing=True)
    return session.exec(held).first()
