"""/schedules: holding one back, and ending it; they are made on the page of their agent."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlmodel import Session

from app.console import flash, forms
from app.console.params import Id
from app.console.view import render
from app.identity.deps import Person
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import Invalid
from app.kernel.i18n import N_
from app.runs import schedules
from app.runs.run_models import AgentSchedule

router = APIRouter(prefix="/schedules")

PAUSED = flash.notice(N_("The schedule rests."))
RESUMED = flash.notice(N_("The schedule goes on."))
REMOVED = flash.notice(N_("The schedule is gone. What it began stays."))


class Pause(BaseModel):
    """Whether the schedule rests."""

    model_config = ConfigDict(extra="forbid")

    paused: bool


class Nothing(BaseModel):
    """A form of one button."""

    model_config = ConfigDict(extra="forbid")


@router.post("/{schedule_id}/pause")
async def pause(request: Request, person: Person, schedule_id: Id) -> Response:
    """Let a schedule rest, or go on."""
    form = await forms.read(request, Pause)
    if form.data is None:
        raise Invalid(*form.errors)
    found = await db.transaction(schedules.pause, person, schedule_id, form.data.paused)
    return flash.see_other(f"/agents/{found.agent_id}", PAUSED if form.data.paused else RESUMED)


@router.get("/{schedule_id}/removal")
async def ask_to_remove(request: Request, person: Person, schedule_id: Id) -> HTMLResponse:
    """Ask before a schedule ends."""
    found = await db.read(_own, person, schedule_id)
    return render(request, "agents/remove_schedule.html", schedule=found)


@router.post("/{schedule_id}/removal")
async def remove(request: Request, person: Person, schedule_id: Id) -> Response:
    """End a schedule; its runs stay."""
    form = await forms.read(request, Nothing)
    if form.data is None:
        raise Invalid(*form.errors)
    agent_id = await db.transaction(_remove, person, schedule_id)
    return flash.see_other(f"/agents/{agent_id}", REMOVED)


def _own(session: Session, person: Principal, schedule_id: str) -> AgentSchedule:
    return schedules.own(session, person, schedule_id)


def _remove(work: Work, person: Principal, schedule_id: str) -> str:
    agent_id = schedules.own(work.session, person, schedule_id).agent_id
    schedules.remove(work, person, schedule_id)
    return agent_id
