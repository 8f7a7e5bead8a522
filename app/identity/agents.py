"""Agents: definitions with immutable releases; outside applications are agents too (SEC-11)."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from sqlmodel import Session, col, func, select
from sqlmodel.sql.expression import SelectOfScalar

from app.identity import facts, stops
from app.identity.errors import NotUsableNow
from app.identity.models import Agent, AgentKind, AgentRelease, AgentStatus, OAuthClient, User
from app.identity.principal import Principal
from app.kernel import clock, ids, json
from app.kernel.db import Work
from app.kernel.errors import Conflict, FieldError, Invalid, NotFound
from app.kernel.i18n import N_

CODE = re.compile(r"[a-z][a-z0-9-]{1,62}")


def create(
    work: Work,
    actor: Principal | None,
    admin: User,
    *,
    code: str,
    name: str,
    description: str = "",
    content: dict[str, Any] | None = None,
) -> Agent:
    """A hosted agent as a draft; `admin` is whom people turn to about it.

    Raises:
        Invalid: the code is taken or malformed.
    """
    if not CODE.fullmatch(code):
        raise Invalid(FieldError("code", N_("Use small letters, digits and hyphens.")))
    if by_code(work.session, admin.tenant_id, code):
        raise Invalid(FieldError("code", N_("Another agent has this code.")))
    agent = Agent(
        tenant_id=admin.tenant_id,
        id=ids.ulid(),
        code=code,
        kind=AgentKind.HOSTED,
        name=name,
        description=description,
        admin_user_id=admin.id,
        draft=content or {},
        created_at=clock.now(),
    )
    work.session.add(agent)
    work.session.flush()
    facts.record(
        work,
        "identity.agent.create",
        actor,
        tenant_id=agent.tenant_id,
        target=("agent", agent.id),
        changes={"code": (None, code), "name": (None, name)},
    )
    return agent


def change(
    work: Work,
    actor: Principal,
    agent: Agent,
    *,
    name: str,
    description: str,
    admin: User,
    content: dict[str, Any],
    expected_version: int,
) -> None:
    """Change the definition; what runs stays the published release until the next is published.

    Raises:
        Conflict: somebody changed it meanwhile.
    """
    if agent.version != expected_version:
        raise Conflict
    facts.record(
        work,
        "identity.agent.change",
        actor,
        target=("agent", agent.id),
        changes={
            "name": (agent.name, name),
            "description": (agent.description, description),
            "admin_user_id": (agent.admin_user_id, admin.id),
            "draft": (digest(agent.draft), digest(content)),
        },
    )
    agent.name, agent.description, agent.admin_user_id = name, description, admin.id
    agent.draft = content
    agent.version += 1
    work.session.add(agent)


def publish(work: Work, actor: Principal | None, agent: Agent) -> AgentRelease:
    """Make the draft the current release; the same content again changes nothing.

    Raises:
        NotUsableNow: the agent is disabled.
    """
    if agent.status == AgentStatus.DISABLED:
        raise NotUsableNow(state=agent.status)
    current = latest_release(work.session, agent)
    content = {"name": agent.name, "description": agent.description, **agent.draft}
    if current is not None and current.content_sha256 == digest(content):
        return current
    release = _release(work, actor, agent, content, (current.number if current else 0) + 1)
    facts.record(
        work,
        "identity.agent.publish",
        actor,
        tenant_id=agent.tenant_id,
        target=("agent", agent.id),
        changes={"release": (current.number if current else None, release.number)},
        details={"content_sha256": release.content_sha256},
    )
    if agent.status == AgentStatus.DRAFT:
        agent.status = AgentStatus.PUBLISHED
        work.session.add(agent)
    return release


def disable(work: Work, actor: Principal, agent: Agent) -> None:
    """Stop an agent for everyone, at once.

    Raises:
        NotUsableNow: it is disabled already.
    """
    if agent.status == AgentStatus.DISABLED:
        raise NotUsableNow(state=agent.status)
    _move(work, actor, agent, AgentStatus.DISABLED, "identity.agent.disable")
    stops.end_agent(work, agent)


def enable(work: Work, actor: Principal, agent: Agent) -> None:
    """Let a disabled agent work again; tokens that ended stay ended.

    Raises:
        NotUsableNow: it is not disabled.
    """
    if agent.status != AgentStatus.DISABLED:
        raise NotUsableNow(state=agent.status)
    has_release = latest_release(work.session, agent) is not None
    status = AgentStatus.PUBLISHED if has_release else AgentStatus.DRAFT
    _move(work, actor, agent, status, "identity.agent.enable")


def external_for(work: Work, actor: Principal, client: OAuthClient) -> tuple[Agent, AgentRelease]:
    """The agent an outside application is in this tenant, made at its first consent.

    Other client metadata is another release; the model is recorded as unknown, never guessed.

    Raises:
        NotUsableNow: an administrator disabled it.
    """
    query = select(Agent).where(Agent.tenant_id == actor.tenant_id, Agent.client_id == client.id)
    agent = work.session.exec(query).first()
    if agent is None:
        agent = Agent(
            tenant_id=actor.tenant_id,
            id=ids.ulid(),
            code=_free_code(work.session, actor.tenant_id, client.name),
            kind=AgentKind.EXTERNAL,
            name=client.name,
            client_id=client.id,
            admin_user_id=actor.user_id,
            status=AgentStatus.PUBLISHED,
            created_at=clock.now(),
        )
        work.session.add(agent)
        work.session.flush()
        facts.record(
            work,
            "identity.agent.create",
            actor,
            target=("agent", agent.id),
            changes={"client_id": (None, client.id), "name": (None, client.name)},
        )
    if agent.status != AgentStatus.PUBLISHED:
        raise NotUsableNow(state=agent.status)
    return agent, _release_of_client(work, actor, agent, client)


def one(session: Session, tenant_id: str, agent_id: str) -> Agent:
    """An agent of the tenant.

    Raises:
        NotFound: there is none with this id.
    """
    agent = session.get(Agent, (tenant_id, agent_id))
    if agent is None:
        raise NotFound
    return agent


def by_code(session: Session, tenant_id: str, code: str) -> Agent | None:
    """The agent with this code."""
    query = select(Agent).where(Agent.tenant_id == tenant_id, Agent.code == code)
    return session.exec(query).first()


def latest_release(session: Session, agent: Agent) -> AgentRelease | None:
    """The current release, if any was published."""
    return session.exec(_releases(agent).limit(1)).first()


def releases(session: Session, agent: Agent) -> Sequence[AgentRelease]:
    """Every release, the newest first."""
    return session.exec(_releases(agent)).all()


def digest(content: dict[str, Any]) -> str:
    """SHA-256 of the canonical form of a release's content, hex."""
    return hashlib.sha256(json.canonical(content)).hexdigest()


def _releases(agent: Agent) -> SelectOfScalar[AgentRelease]:
    return (
        select(AgentRelease)
        .where(AgentRelease.tenant_id == agent.tenant_id, AgentRelease.agent_id == agent.id)
        .order_by(col(AgentRelease.number).desc())
    )


def _release(
    work: Work, actor: Principal | None, agent: Agent, content: dict[str, Any], number: int
) -> AgentRelease:
    release = AgentRelease(
        tenant_id=agent.tenant_id,
        id=ids.ulid(),
        agent_id=agent.id,
        number=number,
        content=content,
        content_sha256=digest(content),
        published_at=clock.now(),
        published_by_session=actor.session_id if actor else None,
    )
    work.session.add(release)
    work.session.flush()
    return release


def _release_of_client(
    work: Work, actor: Principal, agent: Agent, client: OAuthClient
) -> AgentRelease:
    content = {
        "client_id": client.id,
        "name": client.name,
        "metadata_sha256": client.metadata_sha256,
        "model": None,
    }
    current = latest_release(work.session, agent)
    if current is not None and current.content_sha256 == digest(content):
        return current
    return _release(work, actor, agent, content, (current.number if current else 0) + 1)


def _move(work: Work, actor: Principal, agent: Agent, status: AgentStatus, action: str) -> None:
    facts.record(
        work,
        action,
        actor,
        target=("agent", agent.id),
        changes={"status": (agent.status, status.value)},
    )
    agent.status = status
    agent.version += 1
    work.session.add(agent)


def _free_code(session: Session, tenant_id: str, name: str) -> str:
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    base = base if CODE.fullmatch(base) else f"app-{base}".rstrip("-")
    query = select(func.count()).where(
        Agent.tenant_id == tenant_id, col(Agent.code).startswith(base)
    )
    taken = session.exec(query).one()
    return f"{base}-{ids.ulid()[-6:].lower()}" if taken else base
