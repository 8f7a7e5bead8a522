"""Who stands in entries: the names of their people and agents, and the numbers of releases."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.identity.models import Agent, AgentRelease, User


@dataclass(slots=True)
class Names:
    """What ids are called; one that is not known here is what it is."""

    users: dict[str, str] = field(default_factory=dict)
    agents: dict[str, str] = field(default_factory=dict)
    releases: dict[str, int] = field(default_factory=dict)

    def learn(self, session: Session, tenant_id: str, entries: Iterable[AuditEntry]) -> "Names":
        """Look up who stands in `entries` and is not known yet; returns itself."""
        entries = list(entries)
        people = {id for each in entries for id in (each.user_id, each.approved_by) if id}
        self.add_users(session, tenant_id, people)
        self.add_agents(session, tenant_id, {each.agent_id for each in entries if each.agent_id})
        if releases := {e.agent_release for e in entries if e.agent_release} - {*self.releases}:
            query = select(AgentRelease.id, AgentRelease.number).where(
                AgentRelease.tenant_id == tenant_id, col(AgentRelease.id).in_(releases)
            )
            self.releases |= dict(session.exec(query).all())
        return self

    def add_users(self, session: Session, tenant_id: str, ids: Iterable[str]) -> None:
        """Look up people by their ids."""
        if unknown := {*ids} - {*self.users}:
            query = select(User.id, User.display_name).where(
                User.tenant_id == tenant_id, col(User.id).in_(unknown)
            )
            self.users |= dict(session.exec(query).all())

    def add_agents(self, session: Session, tenant_id: str, ids: Iterable[str]) -> None:
        """Look up agents by their ids."""
        if unknown := {*ids} - {*self.agents}:
            query = select(Agent.id, Agent.name).where(
                Agent.tenant_id == tenant_id, col(Agent.id).in_(unknown)
            )
            self.agents |= dict(session.exec(query).all())

    def user(self, id: str | None) -> str:
        """What a person is called."""
        return self.users.get(id, id) if id else ""

    def agent(self, id: str | None) -> str:
        """What an agent is called."""
        return self.agents.get(id, id) if id else ""

    def release(self, id: str | None) -> str:
        """The number of a release."""
        return str(self.releases.get(id, id)) if id else ""
