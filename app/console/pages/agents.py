"""/agents: the agents one can work with, what each may do for oneself, and what it did.

For everybody who may read of agents; where they are made is /admin/agents.
"""

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import and_
from sqlmodel import Session

from app.access import scope
from app.console import agent_page, flash, forms
from app.console.agent_page import READ, Given
from app.console.forms import Form
from app.console.nav import NavItem
from app.console.params import Cursor, Id, Search
from app.console.view import render
from app.identity import directory, users
from app.identity.deps import Person
from app.identity.directory import AgentsWanted, ListedAgent
from app.identity.models import Agent, AgentKind, AgentStatus
from app.identity.paging import Page
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.kernel.i18n import N_
from app.runs import reading, schedules
from app.runs.reading import Standing, Wanted

router = APIRouter(prefix="/agents")
NAV = NavItem(N_("Agents"), "/agents", "agent", "workspace", READ, order=20)

MADE = flash.notice(N_("The agent will work for you at these times."))


class NewSchedule(BaseModel):
    """What an agent is to do for a person, and when."""

    model_config = ConfigDict(extra="forbid")

    instruction: Annotated[str, Field(max_length=schedules.INSTRUCTION_LENGTH)]
    rule: Annotated[str, Field(max_length=100)]


@router.get("")
async def index(
    request: Request, person: Person, q: Search = "", after: Cursor = ""
) -> HTMLResponse:
    """The agents hosted here that are published."""
    page, given = await db.read(_directory, person, q, after)
    return render(request, "agents/index.html", page=page, given=given, q=q)


@router.get("/{agent_id}")
async def show(request: Request, person: Person, agent_id: Id) -> HTMLResponse:
    """One agent: what it is, what it may do for oneself, its runs and schedules."""
    return await _page(request, person, agent_id)


@router.get("/{agent_id}/runs")
async def runs(request: Request, person: Person, agent_id: Id, after: Cursor = "") -> HTMLResponse:
    """Its runs, as far as the reader may see them."""
    agent, page = await db.read(_runs, person, agent_id, after)
    return render(request, "agents/runs.html", agent=agent, page=page)


@router.post("/{agent_id}/schedules")
async def schedule(request: Request, person: Person, agent_id: Id) -> Response:
    """Let the agent work for oneself at the times of a rule."""
    form = await forms.read(request, NewSchedule)
    if form.data:
        with form.catching():
            await db.transaction(_schedule, person, agent_id, form.data)
            return flash.see_other(f"/agents/{agent_id}", MADE)
    return await _page(request, person, agent_id, form, status_code=422)


async def _page(
    request: Request,
    person: Principal,
    agent_id: str,
    form: Form[NewSchedule] | None = None,
    status_code: int = 200,
) -> HTMLResponse:
    page = await db.read(agent_page.of, person, agent_id)
    return render(
        request,
        "agents/show.html",
        status_code=status_code,
        page=page,
        agent=page.agent,
        form=form or forms.blank(NewSchedule),
    )


def _directory(
    session: Session, person: Principal, q: str, after: str
) -> tuple[Page[ListedAgent], dict[str, Given]]:
    scope.require(session, person, READ)
    visible = and_(scope.within(person, READ, Agent))
    wanted = AgentsWanted(q=q, kind=AgentKind.HOSTED, status=AgentStatus.PUBLISHED)
    page = directory.agents(session, visible, wanted, after)
    return page, agent_page.given_to(session, person, [each.agent for each in page.rows])


def _runs(
    session: Session, person: Principal, agent_id: str, after: str
) -> tuple[Agent, Page[Standing]]:
    agent = agent_page.one(session, person, agent_id)
    return agent, reading.listed(session, person, Wanted(agent_id=agent.id), after or None)


def _schedule(work: Work, person: Principal, agent_id: str, new: NewSchedule) -> None:
    agent = agent_page.one(work.session, person, agent_id)
    user = users.one(work.session, person.tenant_id, person.user_id)
    zone = user.time_zone or "UTC"
    schedules.create(work, person, agent.id, new.instruction, new.rule, zone)
