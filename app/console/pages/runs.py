"""/runs/{id}: what an agent did in one run, live and afterwards; stopping it, withdrawing.

For the person it works for, for auditors and for administrators (UI-12). What made it fail inside
is on no page (UI-11).
"""

from typing import Literal, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlmodel import Session

from app.console import flash, forms, refusals, run_page
from app.console.forms import Form
from app.console.params import Id
from app.console.view import render
from app.identity.deps import Person
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import Invalid, PermissionDenied
from app.kernel.i18n import N_
from app.runs import cancelling, reading
from app.runs.reading import Sight, Standing

router = APIRouter(prefix="/runs")
M = TypeVar("M", bound=BaseModel)

STOPPING = flash.notice(N_("The run was asked to stop. It says stopped when it is."))
STOPPED = flash.notice(N_("The run was stopped."))
OVER = flash.notice(N_("The run is over already."), "warn")
WITHDRAWN = flash.notice(N_("The request was withdrawn. The agent reads your message next."))


class Stop(BaseModel):
    """Where the button stands: that decides what is drawn as answer."""

    model_config = ConfigDict(extra="forbid")

    shown_in: Literal["run", "conversation"] = "run"


class Nothing(BaseModel):
    """A form of one button."""

    model_config = ConfigDict(extra="forbid")


@router.get("/{run_id}")
async def show(request: Request, person: Person, run_id: Id) -> HTMLResponse:
    """One run: its inputs, turns, calls, messages, and its end."""
    page = await db.read(run_page.of, person, run_id)
    return render(request, "runs/show.html", page=page)


@router.post("/{run_id}/cancellation")
async def cancel(request: Request, person: Person, run_id: Id) -> Response:
    """Ask a run to stop; it has when its end is stored, and is not said to before (UI-10)."""
    form = await forms.read(request, Stop)
    stop = _sound(form)
    did = await db.transaction(_cancel, person, run_id)
    each, sight = await db.read(_standing, person, run_id)
    if refusals.is_htmx(request):
        if stop.shown_in == "conversation":
            return render(request, "runs/_strips.html", strips=[each] if each.is_live else [])
        return render(request, "runs/_head.html", run=each, sight=sight)
    said = OVER if not did else STOPPING if each.is_live else STOPPED
    is_there = stop.shown_in == "conversation" and sight.is_own and each.run.conversation_id
    there = f"/conversations/{each.run.conversation_id}" if is_there else f"/runs/{run_id}"
    return flash.see_other(there, said)


@router.post("/{run_id}/withdrawal")
async def withdraw(request: Request, person: Person, run_id: Id) -> Response:
    """Take a request back, so that the run reads the message that came meanwhile (RUN-73)."""
    _sound(await forms.read(request, Nothing))
    await db.transaction(cancelling.withdraw, person, run_id)
    return flash.see_other(f"/runs/{run_id}", WITHDRAWN)


def _sound(form: Form[M]) -> M:
    if form.data is None:
        raise Invalid(*form.errors)
    return form.data


def _cancel(work: Work, person: Principal, run_id: str) -> bool:
    run, sight = reading.one(work.session, person, run_id)
    if not sight.may_stop:
        raise PermissionDenied
    return cancelling.cancel(work, run, person)


def _standing(session: Session, person: Principal, run_id: str) -> tuple[Standing, Sight]:
    run, sight = reading.one(session, person, run_id)
    return reading.standings(session, run.tenant_id, [run])[0], sight
