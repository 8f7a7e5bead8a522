"""/approvals: calls that wait for a person's word, and what became of those that did.

Each endpoint hands one function to the database and draws what comes back; the rules live in
`commands.deciding`. Without script every act is a form and a full page; with it the card is
redrawn in its place.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from sqlmodel import Session

from app.commands import (
    approval_closing,
    approval_execution,
    approval_reading,
    approval_replacement,
    approvals,
    deciding,
    pipeline,
    published,
)
from app.commands.approval_errors import (
    ApprovalClosed,
    CannotRunAnyMore,
    DialogTooOld,
    NotAnApprover,
    NotDecidedHere,
)
from app.commands.approval_models import Approval
from app.commands.approval_reading import Wanted
from app.commands.approval_replacement import Replacement
from app.commands.call import Call
from app.commands.deciding import Browser, Decision
from app.commands.definition import Risk
from app.commands.refused import Refused
from app.commands.stored import StoredDefinition
from app.console import approval_card, flash, forms, refusals, schema_forms
from app.console.approval_card import Card
from app.console.forms import Form
from app.console.nav import NavItem
from app.console.params import ChosenId, Cursor, Id
from app.console.schema_forms import SchemaForm
from app.console.view import render
from app.identity import passkeys
from app.identity.deps import Person, signed_of
from app.identity.errors import PasskeyRefused, StepUpNeeded
from app.identity.principal import Principal
from app.kernel import clock, db
from app.kernel.errors import AppError, FieldError, NotFound
from app.kernel.i18n import N_, language

router = APIRouter(prefix="/approvals")
NAV = NavItem(N_("Approvals"), "/approvals", "check", order=20, badge="approvals")

DENIED = flash.notice(N_("Denied. It did not run."))
WITHDRAWN = flash.notice(N_("The request was withdrawn."))
REPLACED = flash.notice(N_("This request took the place of the earlier one. Read it, then decide."))
DIGEST = "digest"
AGAIN = "again"  # prepare the same arguments once more

State = Literal["open", "decided", "requested"]
OUTDATED = (ApprovalClosed, DialogTooOld, NotDecidedHere, CannotRunAnyMore)


class Sent(BaseModel):
    """What the dialog sends."""

    model_config = ConfigDict(extra="forbid")

    verdict: Literal["approve", "deny"]
    digest: Annotated[str, Field(max_length=64)] = ""
    nonce: Annotated[str, Field(max_length=200)] = ""
    typed: Annotated[str, Field(max_length=500)] = ""
    reason: Annotated[str, Field(max_length=deciding.LONGEST_REASON)] = ""
    credential: Annotated[SecretStr, Field(max_length=passkeys.ANSWER)] = SecretStr("")

    def decision(self) -> Decision:
        """For the rules."""
        return Decision(**self.model_dump(exclude={"credential"}))


class Nothing(BaseModel):
    """A form of one button."""

    model_config = ConfigDict(extra="forbid")


@router.get("")
async def index(
    request: Request,
    person: Person,
    state: State = "open",
    agent: ChosenId = "",
    risk: Annotated[Risk | Literal[""], Query()] = "",
    after: Cursor = "",
) -> HTMLResponse:
    """What waits for the reader, what expires first on top; what they decided; what they asked."""
    wanted = Wanted(which=state, agent_id=agent, risk=str(risk))
    context = await db.read(_listing, person, wanted, after)
    query = {"state": state, "agent": agent, "risk": str(risk)}
    return render(
        request,
        "approvals/index.html",
        query=query,
        state=state,
        now=clock.now(),
        language=language(),
        **context,
    )


@router.get("/{approval_id}")
async def show(request: Request, person: Person, approval_id: Id) -> HTMLResponse:
    """One approval, open or closed; someone else's is simply not found."""
    return await _draw(request, person, approval_id)


@router.post("/{approval_id}/decision")
async def decide(request: Request, person: Person, approval_id: Id) -> Response:
    """Assent to one call or deny it; answers with the card as it is then.

    The person is the one of the browser session, never a field of the form. Pressing twice, being
    late or being second is no fault: the card then says how it ended and who decided.
    """
    form = await forms.read(request, Sent)
    if form.data is None:
        return await _draw(request, person, approval_id, form=form, status_code=422)
    row: Approval | None = None
    try:
        with form.catching():
            browser = await _browser(request, approval_id, form.data)
            row = await deciding.attempt(person, approval_id, form.data.decision(), browser)
    except OUTDATED as outdated:
        return await _draw(request, person, approval_id, form=form, refused=outdated)
    except PasskeyRefused as unproved:
        return await _draw(request, person, approval_id, form=form, refused=unproved)
    except StepUpNeeded as needed:
        if not refusals.is_htmx(request):
            raise
        return await _draw(request, person, approval_id, form=form, refused=needed)
    if row is None:
        return await _draw(request, person, approval_id, form=form, status_code=422)
    if row.state == "approved" and approval_execution.is_own(row):
        await approval_execution.carry_out(row.tenant_id, row.id)
    if refusals.is_htmx(request):
        return await _draw(request, person, approval_id)
    return flash.see_other(f"/approvals/{approval_id}", DENIED if row.state == "denied" else None)


@router.post("/{approval_id}/passkey/options")
async def passkey_options(
    request: Request,
    person: Person,
    approval_id: Id,
    nonce: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """What a passkey has to sign for the dialog with this nonce."""
    shown = await db.read(approval_reading.one_for, person, approval_id)
    signed = await signed_of(request)
    if signed is None or not shown.may_decide:
        raise NotAnApprover
    challenge = deciding.challenge(approval_id, shown.row.digest, nonce)
    options = await passkeys.decision_options(signed, challenge)
    return Response(options, media_type="application/json")


@router.get("/{approval_id}/replacement")
async def edit(request: Request, person: Person, approval_id: Id) -> HTMLResponse:
    """The arguments as a form, for whoever may decide."""
    row, definition = await db.read(_editable, person, approval_id)
    return await _editing(request, person, row, definition, approvals.arguments(row))


@router.post("/{approval_id}/replacement")
async def replace(request: Request, person: Person, approval_id: Id) -> Response:
    """Ask anew, with other arguments or with the same ones on what is there now (CMD-28)."""
    sent = await request.form(max_files=0)
    row, definition = await db.read(_editable, person, approval_id)
    kept = approvals.arguments(row)
    is_again = AGAIN in sent
    values = (
        kept if is_again else _with_secrets(definition, schema_forms.parse(definition, sent), kept)
    )
    if schema_forms.is_redrawing(sent):
        searches = schema_forms.searches_of(sent)
        return await _editing(request, person, row, definition, values, searches=searches)
    replacement = Replacement(digest=str(sent.get(DIGEST, "")), input=values)
    try:
        new = await approval_replacement.attempt(person, approval_id, replacement)
    except OUTDATED as outdated:
        return await _draw(request, person, approval_id, refused=outdated)
    except Refused as refused:
        if is_again:
            return await _draw(request, person, approval_id, refused=refused)
        return await _editing(request, person, row, definition, values, refused=refused)
    return flash.see_other(f"/approvals/{new.id}", REPLACED)


@router.post("/{approval_id}/withdrawal")
async def withdraw(request: Request, person: Person, approval_id: Id) -> Response:
    """The requester takes the request back."""
    form = await forms.read(request, Nothing)
    if form.data is None:
        return await _draw(request, person, approval_id, form=None, status_code=422)
    try:
        await db.transaction(approval_closing.withdraw, person, approval_id)
    except ApprovalClosed as closed:
        return await _draw(request, person, approval_id, refused=closed)
    return flash.see_other(f"/approvals/{approval_id}", WITHDRAWN)


def _listing(session: Session, person: Principal, wanted: Wanted, after: str) -> dict[str, Any]:
    waiting = Wanted(which="open")
    return {
        "page": approval_reading.listed(session, person, wanted, after or None),
        "waiting": approval_reading.count(session, person, waiting),
        "agents": approval_reading.agents_in(session, person),
    }


def _editable(
    session: Session, person: Principal, approval_id: str
) -> tuple[Approval, StoredDefinition]:
    """An open approval that this person may decide, and the definition in force."""
    shown = approval_reading.one_for(session, person, approval_id)
    if not shown.may_decide:
        raise NotAnApprover
    if not shown.is_open:
        raise ApprovalClosed(shown.row)
    current = published.current(session.connection(), person.tenant_id, shown.row.command)
    if current is None:
        raise NotFound
    return shown.row, current.definition


def _with_secrets(
    definition: StoredDefinition, values: dict[str, Any], kept: Mapping[str, Any]
) -> dict[str, Any]:
    """A secret that was left blank stays as it was: whoever edits the rest cannot read it."""
    blank = {name for name in definition.secrets if name in kept and name not in values}
    return {**values, **{name: kept[name] for name in blank}}


async def _browser(request: Request, approval_id: str = "", sent: Sent | None = None) -> Browser:
    signed = await signed_of(request)
    assertion, answer = None, sent.credential.get_secret_value() if sent else ""
    if sent and answer and signed is not None:
        challenge = deciding.challenge(approval_id, sent.digest, sent.nonce)
        assertion = await passkeys.asserted(signed, answer, challenge)
    return Browser(
        assertion=assertion,
        is_fresh=signed is not None and signed.is_fresh,
        user_agent=request.headers.get("user-agent", ""),
    )


async def _draw(
    request: Request,
    person: Principal,
    approval_id: str,
    *,
    form: Form[Sent] | None = None,
    refused: AppError | None = None,
    status_code: int = 200,
) -> HTMLResponse:
    browser = await _browser(request)
    card: Card = await db.read(
        approval_card.card_for, person, approval_id, is_fresh=browser.is_fresh
    )
    return render(
        request,
        "approvals/_approval.html" if refusals.is_htmx(request) else "approvals/show.html",
        status_code=refused.status if refused else status_code,
        card=card,
        form=form,
        refused=refused,
        too_late=await _why_not_undone(person, card),
        now=clock.now(),
        is_old=approval_card.is_stale_preview(card.row),
        language=language(),
    )


async def _why_not_undone(person: Principal, card: Card) -> Refused | None:
    """Why the call can no longer be taken back; None where it still can (UI-83)."""
    undo = card.shown.ran.undo if card.shown.ran and card.shown.is_requester else None
    if undo is None:
        return None
    try:
        await pipeline.preview(
            Call(code=undo["cmdCode"], input=undo["input"], principal=person, preview=True)
        )
    except Refused as refused:
        return refused
    return None


async def _editing(
    request: Request,
    person: Principal,
    row: Approval,
    definition: StoredDefinition,
    values: Mapping[str, Any],
    *,
    refused: Refused | None = None,
    searches: Mapping[str, str] | None = None,
) -> HTMLResponse:
    form: SchemaForm = await db.read(
        schema_forms.form_for,
        person,
        definition,
        values=values,
        errors=_errors(refused),
        searches=searches,
    )
    return render(
        request,
        "approvals/edit.html",
        status_code=refused.status if refused else 200,
        approval=row,
        command=definition,
        form=form,
        refused=refused,
        language=language(),
    )


def _errors(refused: Refused | None) -> tuple[FieldError, ...]:
    return refused.errors if refused else ()
