"""What the page of an agent tells a person: what it is, what it may do for them, what it did."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlmodel import Session, col, func, select

from app.access import scope
from app.aun import presence
from app.commands import catalogue
from app.console import agent_settings
from app.identity import agents, delegations, users
from app.identity.models import Agent, AgentKind, AgentRelease, AgentStatus, Delegation
from app.identity.oauth.consent import WORDS
from app.identity.principal import Principal, Scope
from app.kernel import clock
from app.kernel.errors import NotFound
from app.runs import reading, schedules
from app.runs.reading import Standing, Wanted
from app.runs.release import Content
from app.runs.run_models import AgentPause, AgentSchedule, Run
from app.runs.states import RunState

READ, MANAGE = "identity.agent.read", "identity.agent.manage"
LATEST, RELEASES = 8, 20  # that a profile shows
LOOKS_BACK = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Given:
    """What a person lets the agent do, and how that stands: `on`, `paused` or `off`."""

    row: Delegation
    state: str

    @property
    def scopes(self) -> list[str]:
        """In words."""
        return [WORDS[each] for each in Scope if each in self.row.scopes]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPage:
    """An agent as one person sees it.

    Attributes:
        model: what answers for it, as it is called everywhere (RUN-106).
        risks: how many commands it can use for this person, by level of risk.
        ended: runs of the last 30 days by how they ended, of those the reader may see.
    """

    agent: Agent
    release: AgentRelease | None
    content: Content
    model: str
    admin_name: str
    is_online: bool
    is_paused: bool
    given: Given | None
    risks: dict[str, int]
    runs: Sequence[Standing]
    run_count: int
    ended: dict[str, int]
    schedules: Sequence[AgentSchedule]
    releases: Sequence[AgentRelease]
    may_manage: bool


def of(session: Session, person: Principal, agent_id: str) -> AgentPage:
    """The page of one agent that is published, or was.

    Raises:
        NotFound: there is none, or it is not theirs to see.
    """
    agent = one(session, person, agent_id)
    releases = list(agents.releases(session, agent))[:RELEASES]
    content = Content.of(releases[0].content if releases else {})
    runs = reading.listed(session, person, Wanted(agent_id=agent.id), None)
    return AgentPage(
        agent=agent,
        release=releases[0] if releases else None,
        content=content,
        model=_model(session, agent, content),
        admin_name=users.one(session, agent.tenant_id, agent.admin_user_id).display_name,
        is_online=bool(agent.aid and presence.online(session, agent.tenant_id, [agent.aid])),
        is_paused=session.get(AgentPause, (agent.tenant_id, agent.id)) is not None,
        given=_given(session, person, agent),
        risks=_risks(session, person),
        runs=runs.rows[:LATEST],
        run_count=runs.total,
        ended=_ended(session, person, agent),
        schedules=[
            each for each in schedules.of_user(session, person) if each.agent_id == agent.id
        ],
        releases=releases,
        may_manage=scope.reached(session, person, MANAGE, Agent, agent.id),
    )


def one(session: Session, person: Principal, agent_id: str) -> Agent:
    """An agent hosted here that people can meet.

    Raises:
        NotFound: there is none; a draft is nobody's yet.
    """
    agent = scope.one(session, person, READ, Agent, agent_id)
    if agent.kind != AgentKind.HOSTED or agent.status == AgentStatus.DRAFT:
        raise NotFound
    return agent


def given_to(session: Session, person: Principal, shown: Sequence[Agent]) -> dict[str, Given]:
    """What a person lets several agents do, by agent."""
    found = {agent.id: _given(session, person, agent) for agent in shown}
    return {agent_id: given for agent_id, given in found.items() if given is not None}


def _given(session: Session, person: Principal, agent: Agent) -> Given | None:
    row = delegations.live(session, person.tenant_id, person.user_id, agent.id)
    if row is None or not delegations.is_usable(row, clock.now()):
        return None
    is_on = agent.status == AgentStatus.PUBLISHED
    return Given(row, ("paused" if row.paused_at else "on") if is_on else "off")


def _risks(session: Session, person: Principal) -> dict[str, int]:
    """What is for people alone is left out."""
    found = Counter(
        each.definition.risk.value
        for each in catalogue.of(session, person).entries
        if not each.definition.people_only
    )
    return dict(sorted(found.items()))


def _ended(session: Session, person: Principal, agent: Agent) -> dict[str, int]:
    conditions = reading.visible(session, person, Wanted(agent_id=agent.id))
    query = (
        select(Run.state, func.count())
        .where(*conditions, col(Run.queued_at) > clock.now() - LOOKS_BACK)
        .group_by(Run.state)
    )
    found = dict(session.exec(query).all())
    return {state.value: found[state] for state in RunState if state in found}


def _model(session: Session, agent: Agent, content: Content) -> str:
    """What answers for it; empty where its profile is not set up here."""
    return dict(agent_settings.models(session, agent.tenant_id)).get(content.model, "")
