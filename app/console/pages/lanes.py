"""/lanes/{id}: letting one agent rest in one conversation, and clearing what it remembers of it.

A lane is one agent, one person, one conversation: its person alone acts on it (RUN-113).
"""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict

from app.console import flash, forms
from app.console.params import Id
from app.console.view import render
from app.identity.deps import Person
from app.kernel import db
from app.kernel.errors import Invalid
from app.kernel.i18n import N_
from app.runs import cancelling, lanes

router = APIRouter(prefix="/lanes")

PAUSED = flash.notice(N_("The agent rests in this conversation. What you write waits."))
RESUMED = flash.notice(N_("The agent goes on in this conversation."))
CLEARED = flash.notice(N_("The agent begins anew here: it reads nothing of what was said so far."))


class Pause(BaseModel):
    """Whether the agent rests."""

    model_config = ConfigDict(extra="forbid")

    paused: bool


class Nothing(BaseModel):
    """A form of one button."""

    model_config = ConfigDict(extra="forbid")


@router.post("/{lane_id}/pause")
async def pause(request: Request, person: Person, lane_id: Id) -> Response:
    """Let the agent rest in this conversation, or go on."""
    form = await forms.read(request, Pause)
    if form.data is None:
        raise Invalid(*form.errors)
    lane = await db.transaction(lanes.pause, person, lane_id, form.data.paused)
    said = PAUSED if form.data.paused else RESUMED
    return flash.see_other(f"/conversations/{lane.conversation_id}", said)


@router.get("/{lane_id}/reset")
async def ask_to_reset(request: Request, person: Person, lane_id: Id) -> HTMLResponse:
    """Ask before the agent's memory of a conversation is cleared."""
    lane = await db.read(lanes.own, person, lane_id)
    return render(request, "runs/reset.html", lane=lane)


@router.post("/{lane_id}/reset")
async def reset(request: Request, person: Person, lane_id: Id) -> Response:
    """Clear it: nothing said so far enters what the agent reads here, what waits included."""
    form = await forms.read(request, Nothing)
    if form.data is None:
        raise Invalid(*form.errors)
    lane = await db.transaction(cancelling.begin_anew, person, lane_id)
    return flash.see_other(f"/conversations/{lane.conversation_id}", CLEARED)
