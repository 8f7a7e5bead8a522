"""Tokens that an application may fetch for somebody, as rows."""

from datetime import timedelta

from sqlmodel import col, select

from app.identity.models import Delegation, OAuthClient, TokenFamily
from app.identity.oauth import clients
from app.identity.principal import Principal
from app.kernel import clock, ids, settings
from app.kernel.db import Work


def something(work: Work, person: Principal) -> str:
    """The id of a live family of the person's; it has a client of its own."""
    of_person = (Delegation.tenant_id == person.tenant_id, Delegation.user_id == person.user_id)
    granted = work.session.exec(
        select(Delegation).where(*of_person, col(Delegation.revoked_at).is_(None))
    ).first()
    assert granted is not None
    now, client = clock.now(), _client(work, person)
    made = TokenFamily(
        tenant_id=person.tenant_id,
        id=ids.ulid(),
        user_id=person.user_id,
        agent_id=granted.agent_id,
        delegation_id=granted.id,
        client_id=client.id,
        scope="catalog.read",
        resource=f"{settings.current().origin}/mcp",
        auth_time=now,
        created_at=now,
        last_used_at=now,
        ends_at=now + timedelta(days=1),
    )
    work.session.add(made)
    work.session.flush()
    return made.id


def _client(work: Work, person: Principal) -> OAuthClient:
    uris = ["https://tools.example/cb"]
    return clients.create(work, person, name="Desk tools", redirect_uris=uris)[0]
