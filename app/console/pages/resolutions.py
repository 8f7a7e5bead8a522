"""/calls/{id}/resolution: did it happen? A person looks at the other side and says (UI-13).

There is no way to send it again from here, or from anywhere near.
"""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlmodel import Session

from app.audit.names import Names
from app.commands import catalogue, resolution
from app.commands.resolution import Finding, Open
from app.console import command_form, faults, flash, forms, said, schema_forms
from app.console.forms import Form
from app.console.view import render
from app.identity.deps import Person
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.i18n import N_

router = APIRouter(prefix="/calls")
RECORDED = flash.notice(N_("What you found is on record."))

CallId = Annotated[str, Path(max_length=64)]


class Answer(BaseModel):
    """What a person found at the other side."""

    model_config = ConfigDict(extra="forbid")

    finding: Finding


@dataclass(frozen=True, slots=True)
class Question:
    """Everything the page tells: what was sent where and when, about which record."""

    about: Open
    names: Names
    facts: tuple[tuple[str, said.Said], ...]
    reader: str | None


@router.get("/{call_id}/resolution")
async def ask(request: Request, person: Person, call_id: CallId) -> HTMLResponse:
    """What was sent where and when, and the two things that can be true of it."""
    return await _page(request, person, call_id)


@router.post("/{call_id}/resolution")
async def answer(request: Request, person: Person, call_id: CallId) -> Response:
    """Put on record what the person found."""
    form = await forms.read(request, Answer)
    if form.data:
        await db.transaction(resolution.resolve, person, call_id, form.data.finding)
        return flash.see_other(f"/calls/{call_id}/resolution", RECORDED)
    return await _page(request, person, call_id, form, status_code=422)


async def _page(
    request: Request,
    person: Principal,
    call_id: str,
    form: Form[Answer] | None = None,
    status_code: int = 200,
) -> HTMLResponse:
    question = await db.read(_question, person, call_id)
    return render(
        request,
        "resolutions/show.html",
        status_code=status_code,
        question=question,
        about=question.about,
        effect=question.about.effect,
        form=form,
        fault=faults.fault,
        record_name=schema_forms.record_name,
    )


def _question(session: Session, person: Principal, call_id: str) -> Question:
    about = resolution.of(session, person, call_id)
    ordered, found = about.ordered, about.found
    names = Names()
    people = {about.effect.user_id, found.user_id if found else None}
    names.add_users(session, person.tenant_id, filter(None, people))
    sent = (ordered.input_redacted or {}) if ordered else {}
    known = said.Names.among(session, person.tenant_id, sent)
    seen = catalogue.of(session, person)
    return Question(
        about,
        names,
        tuple(said.facts(sent, known)),
        command_form.reading_command(seen, about.effect.record_type),
    )
