"""/commands: what one may call, each with its form, its rehearsal, its run and its receipt.

The pages know no rule: they hand a `Call` to the pipeline and draw what it answers (CMD-6).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlmodel import Session

from app.access import scope
from app.commands import (
    catalogue,
    looking_up,
    pipeline,
    published,
    publishing,
    why,
)
from app.commands.catalogue import Catalogue
from app.commands.definition import Risk
from app.commands.descriptors import Descriptor
from app.commands.refused import Refused
from app.commands.stored import StoredDefinition
from app.console import command_form, receipts, refusals, schema_forms
from app.console.command_form import Asked, Opened
from app.console.nav import NavItem
from app.console.params import ChosenId, Cursor, Id, Search
from app.console.view import render
from app.identity import directory
from app.identity.deps import Person
from app.identity.directory import PeopleWanted
from app.identity.models import User
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.errors import NotFound
from app.kernel.i18n import N_, language

router = APIRouter(prefix="/commands")
NAV = NavItem(N_("Commands"), "/commands", "app", order=30)

Code = Annotated[str, Path(max_length=128)]

# What a person does next, by the advice of a refusal (UI-16).
ADVICE = {
    "fix_arguments": N_("Correct what is marked, then try again."),
    "wait_and_reread": N_("Look at the record in a moment; the first call may still end well."),
    "do_not_retry": N_("Trying again will not help. Ask an administrator of your workspace."),
    "escalate_to_other_user": N_("Somebody else has to do this."),
    "reread_state": N_("Look at the record as it is now before you go on."),
    "ask_user": N_("A person has to assent to this first."),
    "retry_later": N_("Nothing was changed. Try again in a moment."),
}
LAYERS = {
    why.Layer.PUBLISHED: N_("Published"),
    why.Layer.FEATURE: N_("Feature"),
    why.Layer.ACCOUNT: N_("Account"),
    why.Layer.PERMISSION: N_("Permission"),
    why.Layer.SCOPE: N_("Data scope"),
    why.Layer.DELEGATION: N_("Delegation"),
}


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the catalogue, and how much of what exists it is."""

    page: catalogue.Page
    catalogue: Catalogue
    hidden: Mapping[why.Layer, int]
    hidden_entries: tuple[Descriptor, ...]

    @property
    def seen(self) -> int:
        """How many commands the reader may call."""
        return len(self.catalogue.entries)

    @property
    def total(self) -> int:
        """How many are in force."""
        return self.seen + sum(self.hidden.values())


@router.get("")
async def index(
    request: Request,
    person: Person,
    q: Search = "",
    record: Annotated[str, Query(max_length=64)] = "",
    risk: Risk | Literal[""] = "",
    approval: bool = False,
    after: Cursor = "",
) -> HTMLResponse:
    """What the reader may call, and how much is hidden."""
    listing = await db.read(_listing, person, q, record, risk, approval, after)
    query = {"q": q, "record": record, "risk": risk, "approval": "true" if approval else ""}
    return render(
        request,
        "commands/index.html",
        listing=listing,
        query=query,
        layers=LAYERS,
        record_name=schema_forms.record_name,
    )


@router.get("/{code}")
async def show(request: Request, person: Person, code: Code, target: ChosenId = "") -> Response:
    """One command, with its form."""
    opened = await db.read(command_form.opened, person, code, target=target)
    return _page(request, opened)


@router.post("/{code}/form")
async def redraw(request: Request, person: Person, code: Code) -> Response:
    """The form again: a row more or less, other records to choose from, the example, an undo."""
    sent = await request.form(max_files=0)
    definition = await db.read(_definition, person, code)
    asked = command_form.asked_of(definition, sent)
    if command_form.FILL in sent:
        asked.values.update(command_form.filled(definition, asked, str(sent[command_form.FILL])))
    opened = await db.read(command_form.opened, person, code, asked)
    return _page(request, opened)


@router.post("/{code}/previews")
async def check(request: Request, person: Person, code: Code) -> Response:
    """Check only: everything it would do, and none of it done."""
    sent = await request.form(max_files=0)
    definition = await db.read(_definition, person, code)
    asked = command_form.asked_of(definition, sent)
    try:
        preview = await pipeline.preview(
            command_form.call_of(definition, asked, person, preview=True)
        )
    except Refused as refused:
        return await _refused(request, person, definition, asked, refused)
    opened = await db.read(command_form.opened, person, code, asked, preview)
    return _page(request, opened)


@router.post("/{code}/calls")
async def run(request: Request, person: Person, code: Code) -> Response:
    """Run it, once: the key of the form makes a second click the same call."""
    sent = await request.form(max_files=0)
    definition = await db.read(_definition, person, code)
    asked = command_form.asked_of(definition, sent)
    try:
        done = await pipeline.execute(command_form.call_of(definition, asked, person))
    except Refused as refused:
        if refused.reason == "approval_required" and "approvalId" in refused.facts:
            return _lead_to(request, f"/approvals/{refused.facts['approvalId']}")
        return await _refused(request, person, definition, asked, refused)
    if definition.writes:
        return _lead_to(request, f"/commands/{code}/calls/{done.call_id}")
    opened = await db.read(command_form.opened, person, code, asked)
    await db.read(command_form.lay_out, person, opened, done.result)
    return _page(request, opened)


@router.get("/{code}/calls/{call_id}")
async def receipt(request: Request, person: Person, code: Code, call_id: Id) -> HTMLResponse:
    """What became of a call of the reader's own."""
    became = await db.read(looking_up.of, person, call_id)
    if became.code != code:
        raise NotFound
    if became.answer is None:
        return render(request, "commands/became.html", became=became, code=code)
    descriptor, made = await db.read(receipts.receipt_of, person, became.answer)
    too_late = await receipts.why_not(person, made.done["undo"]) if made.undo else None
    return render(
        request,
        "commands/receipt.html",
        command=descriptor.definition,
        receipt=made,
        too_late=too_late,
        record_name=schema_forms.record_name,
        language=language(),
    )


@router.get("/{code}/why")
async def reasons(
    request: Request, person: Person, code: Code, user: ChosenId = "", q: Search = ""
) -> HTMLResponse:
    """Which layer takes a command out of somebody's catalogue."""
    standing, people, found = await db.read(_reasons, person, code, user, q)
    return render(
        request,
        "commands/why.html",
        definition=publishing.definition_of(standing.newest),
        people=people,
        reasons=found,
        query={"q": q, "user": user},
        layers=LAYERS,
        language=language(),
    )


def _listing(
    session: Session,
    person: Principal,
    q: str,
    record: str,
    risk: str,
    approval: bool,
    after: str,
) -> Listing:
    seen = catalogue.of(session, person)
    found = seen.searched(q, risk=risk, record=record, needs_approval=approval or None)
    hidden: tuple[Descriptor, ...] = ()
    if scope.may(session, person, publishing.READ):
        every = catalogue.published(session, person.tenant_id)
        hidden = tuple(each for each in every if each.code not in seen.by_code)
    page = catalogue.page(found, after or None)
    return Listing(page, seen, why.hidden(session, person), hidden)


def _definition(session: Session, person: Principal, code: str) -> StoredDefinition:
    """The version in force, whoever may call it: the pipeline says who may."""
    found = published.current(session.connection(), person.tenant_id, code)
    if found is None:
        raise NotFound
    return found.definition


def _reasons(
    session: Session, person: Principal, code: str, user_id: str, q: str
) -> tuple[publishing.Standing, list[User], why.Reasons | None]:
    scope.require(session, person, publishing.READ)
    standing = publishing.one(session, person.tenant_id, code)
    visible = scope.within(person, command_form.PEOPLE, User)
    wanted = PeopleWanted(q=q)
    people = [row.user for row in directory.people(session, visible, wanted, "").rows]
    found = why.why(session, person, user_id, code) if user_id else None
    return standing, people, found


async def _refused(
    request: Request,
    person: Principal,
    definition: StoredDefinition,
    asked: Asked,
    refused: Refused,
) -> Response:
    """The form again, with what was refused and what to do next."""
    try:
        opened = await db.read(command_form.opened, person, definition.code, asked, refused=refused)
    except NotFound:
        raise refused from None
    return _page(request, opened, status_code=refused.status)


def _page(request: Request, opened: Opened, status_code: int = 200) -> HTMLResponse:
    template = "commands/_run.html" if refusals.is_htmx(request) else "commands/show.html"
    return render(
        request,
        template,
        status_code=status_code,
        opened=opened,
        command=opened.definition,
        form=opened.form,
        language=language(),
        advice=ADVICE,
    )


def _lead_to(request: Request, path: str) -> Response:
    if refusals.is_htmx(request):
        return Response(headers={"HX-Redirect": path})
    return RedirectResponse(path, status_code=303)
