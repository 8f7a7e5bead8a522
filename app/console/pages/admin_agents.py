"""/admin/agents: what each agent is told, which release runs, and who lets it act."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session, col, select

from app.access import scope
from app.console import agent_settings, flash, forms
from app.console.agent_settings import AgentSettings
from app.console.forms import Form
from app.console.names import Name
from app.console.nav import NavItem
from app.console.params import Cursor, FormId, Id, Search
from app.console.view import render
from app.identity import agents, directory, users
from app.identity.deps import FreshPerson, Person
from app.identity.directory import AgentsWanted, DelegationsWanted, ListedDelegation
from app.identity.errors import NotUsableNow
from app.identity.models import (
    Agent,
    AgentKind,
    AgentRelease,
    AgentStatus,
    BrowserSession,
    Delegation,
    User,
    UserStatus,
)
from app.identity.paging import Page
from app.identity.principal import Principal
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.errors import Conflict, Invalid, NotFound
from app.kernel.i18n import N_
from app.runs import lanes
from app.runs.run_models import AgentPause

READ, MANAGE = "identity.agent.read", "identity.agent.manage"
DELEGATIONS = "identity.delegation.read"

router = APIRouter(prefix="/admin/agents")
NAV = NavItem(
    N_("Agents"),
    "/admin/agents",
    "agent",
    "administration",
    (MANAGE, DELEGATIONS),  # everybody may read of agents; this is where they are made
    order=60,
)
CREATED = flash.notice(
    N_("The agent was made as a draft. Nobody can let it act before it is published.")
)
CHANGED = flash.notice(N_("The draft was saved. What runs stays the published release."))
PUBLISHED = flash.notice(N_("The draft is the current release now."))
UNCHANGED = flash.notice(
    N_("The draft says what the current release says; nothing was published."), "warn"
)
DISABLED = flash.notice(N_("The agent was disabled. It has stopped for everybody."))
RESTS = flash.notice(N_("The agent rests. What is written to it waits."))
GOES_ON = flash.notice(N_("The agent goes on."))
ENABLED = flash.notice(N_("The agent can work again. Tokens that ended stay ended."))

Sort = Literal["name", "-name", "code", "-code"]
Description = Annotated[str, Field(max_length=1_000)]
Instructions = Annotated[str, Field(max_length=50_000)]


class NewAgent(AgentSettings):
    """A hosted agent."""

    name: Name
    code: Annotated[str, Field(max_length=63)]
    description: Description = ""
    instructions: Instructions = ""
    admin_user_id: FormId


class Change(AgentSettings):
    """What the draft says."""

    name: Name
    description: Description = ""
    instructions: Instructions = ""
    admin_user_id: FormId
    version: int


class Pause(BaseModel):
    """Whether the agent rests for everybody."""

    model_config = ConfigDict(extra="forbid")

    paused: bool


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything the page of an agent shows."""

    agent: Agent
    admin: User
    releases: list[tuple[AgentRelease, str]]
    delegations: Page[ListedDelegation]
    has_changes: bool
    may_manage: bool
    may_see_delegations: bool
    is_paused: bool


@router.get("")
async def index(
    request: Request,
    person: Person,
    q: Search = "",
    kind: AgentKind | Literal[""] = "",
    status: AgentStatus | Literal[""] = "",
    sort: Sort = "name",
    after: Cursor = "",
) -> HTMLResponse:
    """Agents the viewer may see."""
    wanted = AgentsWanted(q=q, kind=kind or None, status=status or None, sort=sort)
    page = await db.read(_list, person, wanted, after)
    query = {"q": q, "kind": kind, "status": status, "sort": sort}
    return render(request, "admin_agents/index.html", page=page, wanted=wanted, query=query)


@router.get("/new")
async def new(request: Request, person: FreshPerson) -> HTMLResponse:
    """The form that makes a hosted agent."""
    form = forms.blank(NewAgent, admin_user_id=person.user_id)
    return await _new_page(request, person, form)


@router.post("")
async def create(request: Request, person: FreshPerson) -> Response:
    """Make a hosted agent, as a draft."""
    form = await forms.read(request, NewAgent)
    if form.data:
        with form.catching():
            agent = await db.transaction(_create, person, form.data)
            return flash.see_other(f"/admin/agents/{agent.id}", CREATED)
    return await _new_page(request, person, form, status_code=422)


@router.get("/{agent_id}")
async def show(request: Request, person: Person, agent_id: Id) -> HTMLResponse:
    """One agent."""
    profile = await db.read(_profile, person, agent_id)
    return render(
        request,
        "admin_agents/show.html",
        profile=profile,
        agent=profile.agent,
        now=clock.now(),
    )


@router.get("/{agent_id}/edit")
async def edit(request: Request, person: FreshPerson, agent_id: Id) -> HTMLResponse:
    """The form that changes the draft."""
    agent = await db.read(_hosted, person, agent_id)
    typed = forms.blank(
        Change,
        name=agent.name,
        description=agent.description,
        instructions=str(agent.draft.get("instructions", "")),
        admin_user_id=agent.admin_user_id,
        version=agent.version,
        **agent_settings.typed(agent.draft),
    )
    return await _edit_page(request, person, agent, typed)


@router.post("/{agent_id}")
async def change(request: Request, person: FreshPerson, agent_id: Id) -> Response:
    """Save the draft."""
    form = await forms.read(request, Change)
    if form.data:
        with form.catching(Conflict):
            await db.transaction(_change, person, agent_id, form.data)
            return flash.see_other(f"/admin/agents/{agent_id}", CHANGED)
    agent = await db.read(_hosted, person, agent_id)
    return await _edit_page(request, person, agent, form, status_code=422)


@router.get("/{agent_id}/releases")
async def ask_to_publish(request: Request, person: FreshPerson, agent_id: Id) -> HTMLResponse:
    """What publishing would change."""
    return await _ask(request, person, agent_id, "admin_agents/publish.html")


@router.post("/{agent_id}/releases")
async def publish(request: Request, person: FreshPerson, agent_id: Id) -> Response:
    """Make the draft the current release."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(NotUsableNow):
            is_new = await db.transaction(_publish, person, agent_id)
            return flash.see_other(f"/admin/agents/{agent_id}", PUBLISHED if is_new else UNCHANGED)
    return await _ask(request, person, agent_id, "admin_agents/publish.html", form)


@router.get("/{agent_id}/releases/{number}")
async def release(
    request: Request,
    person: Person,
    agent_id: Id,
    number: Annotated[int, Path(ge=1, le=2**31 - 1)],
) -> HTMLResponse:
    """What one release says."""
    agent, found = await db.read(_release, person, agent_id, number)
    return render(request, "admin_agents/release.html", agent=agent, release=found)


@router.get("/{agent_id}/deactivation")
async def ask_to_disable(request: Request, person: FreshPerson, agent_id: Id) -> HTMLResponse:
    """What will stop."""
    return await _ask(request, person, agent_id, "admin_agents/disable.html")


@router.post("/{agent_id}/deactivation")
async def disable(request: Request, person: FreshPerson, agent_id: Id) -> Response:
    """Stop the agent for everybody."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(NotUsableNow):
            await db.transaction(_disable, person, agent_id)
            return flash.see_other(f"/admin/agents/{agent_id}", DISABLED)
    return await _ask(request, person, agent_id, "admin_agents/disable.html", form)


@router.get("/{agent_id}/activation")
async def ask_to_enable(request: Request, person: FreshPerson, agent_id: Id) -> HTMLResponse:
    """What comes back, and what does not."""
    return await _ask(request, person, agent_id, "admin_agents/enable.html")


@router.post("/{agent_id}/activation")
async def enable(request: Request, person: FreshPerson, agent_id: Id) -> Response:
    """Let the agent work again."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(NotUsableNow):
            await db.transaction(_enable, person, agent_id)
            return flash.see_other(f"/admin/agents/{agent_id}", ENABLED)
    return await _ask(request, person, agent_id, "admin_agents/enable.html", form)


@router.post("/{agent_id}/pause")
async def pause(request: Request, person: FreshPerson, agent_id: Id) -> Response:
    """Let the agent rest for everybody, or go on; what is written to it waits."""
    form = await forms.read(request, Pause)
    if form.data is None:
        raise Invalid(*form.errors)
    await db.transaction(_pause, person, agent_id, form.data.paused)
    return flash.see_other(f"/admin/agents/{agent_id}", RESTS if form.data.paused else GOES_ON)


def _list(
    session: Session, person: Principal, wanted: AgentsWanted, after: str
) -> Page[directory.ListedAgent]:
    scope.require(session, person, READ)
    return directory.agents(session, scope.within(person, READ, Agent), wanted, after)


def _admins(session: Session, person: Principal) -> list[User]:
    """Whom people can turn to about an agent: those who may manage it, and the chooser."""
    scope.require(session, person, MANAGE)
    query = (
        select(User)
        .where(User.tenant_id == person.tenant_id, User.status == UserStatus.ACTIVE)
        .where(directory.holds_permission(MANAGE))
        .order_by(col(User.display_name), col(User.id))
        .limit(200)
    )
    return list(session.exec(query).all())


def _create(work: Work, person: Principal, new: NewAgent) -> Agent:
    scope.require(work.session, person, MANAGE)
    agent_settings.check(work.session, person.tenant_id, new)
    return agents.create(
        work,
        person,
        _admin(work.session, person, new.admin_user_id),
        code=new.code,
        name=new.name,
        description=new.description,
        content=new.laid_on({"instructions": new.instructions}),
    )


def _admin(session: Session, person: Principal, user_id: str) -> User:
    for user in _admins(session, person):
        if user.id == user_id:
            return user
    raise NotFound


def _profile(session: Session, person: Principal, agent_id: str) -> Profile:
    agent = scope.one(session, person, READ, Agent, agent_id)
    sees = scope.may(session, person, DELEGATIONS)
    visible = scope.within(person, DELEGATIONS, Delegation)
    wanted = DelegationsWanted(agent_id=agent.id)
    releases = _releases(session, agent)
    content = {"name": agent.name, "description": agent.description, **agent.draft}
    return Profile(
        agent,
        _admin_of(session, agent),
        releases,
        directory.delegations(session, visible, wanted, None) if sees else Page([]),
        has_changes=agent.kind == AgentKind.HOSTED
        and not (releases and releases[0][0].content_sha256 == agents.digest(content)),
        may_manage=scope.reached(session, person, MANAGE, Agent, agent.id),
        may_see_delegations=sees,
        is_paused=session.get(AgentPause, (agent.tenant_id, agent.id)) is not None,
    )


def _releases(session: Session, agent: Agent) -> list[tuple[AgentRelease, str]]:
    """Releases, the newest first, each with the name of who published it."""
    query = (
        select(AgentRelease, User.display_name)
        .outerjoin(
            BrowserSession,
            (col(BrowserSession.tenant_id) == AgentRelease.tenant_id)
            & (col(BrowserSession.id) == AgentRelease.published_by_session),
        )
        .outerjoin(
            User,
            (col(User.tenant_id) == BrowserSession.tenant_id)
            & (col(User.id) == BrowserSession.user_id),
        )
        .where(AgentRelease.tenant_id == agent.tenant_id, AgentRelease.agent_id == agent.id)
        .order_by(col(AgentRelease.number).desc())
        .limit(100)
    )
    return [(release, name or "") for release, name in session.exec(query).all()]


def _release(
    session: Session, person: Principal, agent_id: str, number: int
) -> tuple[Agent, AgentRelease]:
    agent = scope.one(session, person, READ, Agent, agent_id)
    query = select(AgentRelease).where(
        AgentRelease.tenant_id == agent.tenant_id,
        AgentRelease.agent_id == agent.id,
        AgentRelease.number == number,
    )
    found = session.exec(query).first()
    if found is None:
        raise NotFound
    return agent, found


def _hosted(session: Session, person: Principal, agent_id: str) -> Agent:
    agent = scope.one(session, person, MANAGE, Agent, agent_id)
    if agent.kind != AgentKind.HOSTED:
        raise NotFound  # what an outside application says of itself is not ours to change
    return agent


def _change(work: Work, person: Principal, agent_id: str, change: Change) -> None:
    agent = _hosted(work.session, person, agent_id)
    agent_settings.check(work.session, person.tenant_id, change)
    stays = change.admin_user_id == agent.admin_user_id
    agents.change(
        work,
        person,
        agent,
        name=change.name,
        description=change.description,
        admin=_admin_of(work.session, agent)
        if stays
        else _admin(work.session, person, change.admin_user_id),
        content=change.laid_on({**agent.draft, "instructions": change.instructions}),
        expected_version=change.version,
    )


def _publish(work: Work, person: Principal, agent_id: str) -> bool:
    agent = _hosted(work.session, person, agent_id)
    before = agents.latest_release(work.session, agent)
    made = agents.publish(work, person, agent)
    return before is None or made.id != before.id


def _disable(work: Work, person: Principal, agent_id: str) -> None:
    agents.disable(work, person, scope.one(work.session, person, MANAGE, Agent, agent_id))


def _pause(work: Work, person: Principal, agent_id: str, paused: bool) -> None:
    lanes.pause_agent(work, person, _hosted(work.session, person, agent_id).id, paused)


def _enable(work: Work, person: Principal, agent_id: str) -> None:
    agents.enable(work, person, scope.one(work.session, person, MANAGE, Agent, agent_id))


async def _new_page(
    request: Request, person: Principal, form: Form[NewAgent], status_code: int = 200
) -> HTMLResponse:
    return render(
        request,
        "admin_agents/new.html",
        status_code=status_code,
        form=form,
        admins=await db.read(_admins, person),
        models=await db.read(agent_settings.models, person.tenant_id),
        by_itself=agent_settings.by_itself(),
    )


async def _edit_page(
    request: Request, person: Principal, agent: Agent, form: Form[Change], status_code: int = 200
) -> HTMLResponse:
    admins = await db.read(_admins, person)
    names = {user.id: user.display_name for user in admins}
    if agent.admin_user_id not in names:
        admins.append(await db.read(_admin_of, agent))
    theirs: list[tuple[Any, ...]] = []
    if form.data and form.data.version != agent.version:  # somebody else was faster
        theirs = [
            (N_("Name"), agent.name, form.data.name),
            (N_("Description"), agent.description, form.data.description),
            (
                N_("Instructions"),
                str(agent.draft.get("instructions", "")),
                form.data.instructions,
            ),
        ]
        form.typed["version"] = [str(agent.version)]
    return render(
        request,
        "admin_agents/edit.html",
        status_code=status_code,
        form=form,
        agent=agent,
        admins=admins,
        theirs=[each for each in theirs if each[1] != each[2]],
        models=await db.read(agent_settings.models, person.tenant_id),
        by_itself=agent_settings.by_itself(),
    )


def _admin_of(session: Session, agent: Agent) -> User:
    return users.one(session, agent.tenant_id, agent.admin_user_id)


async def _ask(
    request: Request,
    person: Principal,
    agent_id: str,
    template: str,
    form: Form[Nothing] | None = None,
) -> HTMLResponse:
    await db.read(scope.one, person, MANAGE, Agent, agent_id)
    profile = await db.read(_profile, person, agent_id)
    return render(
        request,
        template,
        status_code=409 if form else 200,
        form=form,
        profile=profile,
        agent=profile.agent,
    )
