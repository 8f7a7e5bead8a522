"""What ends with what, in one transaction (SEC-31); streams hear of it after the commit."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, update
from sqlmodel import SQLModel, col

from app.identity import epochs
from app.identity.facts import AccessChanged
from app.identity.models import (
    Agent,
    AuthorizationCode,
    BrowserSession,
    Delegation,
    DeviceCode,
    OAuthClient,
    OneTimeLink,
    PeerLink,
    Tenant,
    TokenFamily,
    User,
)
from app.kernel import clock
from app.kernel.db import Work


def end_user(work: Work, user: User) -> None:
    """Sessions, token families, codes, links and the epoch of a user who was disabled."""
    _end_credentials(work, "user_disabled", tenant_id=user.tenant_id, user_id=user.id)
    epochs.raise_for(work, user.tenant_id, [user.id], "user_disabled")
    work.announce(
        AccessChanged(tenant_id=user.tenant_id, user_id=user.id, ends=True, why="user_disabled")
    )


def end_tenant(work: Work, tenant: Tenant) -> None:
    """Everything of a tenant that was suspended."""
    _end_credentials(work, "tenant_suspended", tenant_id=tenant.id)
    epochs.raise_for_tenant(work, tenant.id, "tenant_suspended", ends=True)


def end_delegation(work: Work, delegation: Delegation, why: str) -> None:
    """The token families of a delegation that was revoked or ran out."""
    _end_families(
        work,
        why,
        col(TokenFamily.tenant_id) == delegation.tenant_id,
        col(TokenFamily.delegation_id) == delegation.id,
    )
    work.announce(
        AccessChanged(
            tenant_id=delegation.tenant_id,
            user_id=delegation.user_id,
            delegation_id=delegation.id,
            agent_id=delegation.agent_id,
            ends=True,
            why=why,
        )
    )


def end_agent(work: Work, agent: Agent) -> None:
    """The token families of an agent that was disabled."""
    _end_families(
        work,
        "agent_disabled",
        col(TokenFamily.tenant_id) == agent.tenant_id,
        col(TokenFamily.agent_id) == agent.id,
    )
    work.announce(
        AccessChanged(tenant_id=agent.tenant_id, agent_id=agent.id, ends=True, why="agent_disabled")
    )


def end_client(work: Work, tenant_ids: list[str], client: OAuthClient) -> None:
    """The token families of a client that was blocked, in all tenants that use it."""
    _end_families(work, "client_blocked", col(TokenFamily.client_id) == client.id)
    for tenant_id in tenant_ids:
        work.announce(
            AccessChanged(tenant_id=tenant_id, client_id=client.id, ends=True, why="client_blocked")
        )


def _end_credentials(work: Work, why: str, **whose: str) -> None:
    now = clock.now()
    for table in (BrowserSession, TokenFamily):
        _revoke(work, table, now, whose, revoked_why=why)
    _revoke(work, PeerLink, now, whose)
    work.session.execute(
        update(OneTimeLink)
        .where(*_of(OneTimeLink, whose), col(OneTimeLink.used_at).is_(None))
        .values(used_at=now)
    )
    for codes in (AuthorizationCode, DeviceCode):  # consent that nobody has fetched yet (SEC-33)
        work.session.execute(
            update(codes)
            .where(*_of(codes, whose), col(codes.expires_at) > now)
            .values(expires_at=now)
        )


def _revoke(
    work: Work,
    table: type[BrowserSession] | type[TokenFamily] | type[PeerLink],
    now: datetime,
    whose: dict[str, str],
    **values: Any,
) -> None:
    work.session.execute(
        update(table)
        .where(*_of(table, whose), col(table.revoked_at).is_(None))
        .values(revoked_at=now, **values)
    )


def _of(table: type[SQLModel], whose: dict[str, str]) -> list[ColumnElement[bool]]:
    return [col(getattr(table, name)) == value for name, value in whose.items()]


def _end_families(work: Work, why: str, *which: ColumnElement[bool]) -> None:
    work.session.execute(
        update(TokenFamily)
        .where(*which, col(TokenFamily.revoked_at).is_(None))
        .values(revoked_at=clock.now(), revoked_why=why)
    )
