"""/admin/aun: outside clients of messaging, names kept for them, and the issuer that signs them."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session

from app.access import scope
from app.aun import contacts, registration
from app.aun.contacts import Contact
from app.aun.pki import chain, issuers
from app.aun.pki_models import Certificate, Reservation
from app.console import flash, forms
from app.console.forms import Form
from app.console.nav import NavItem
from app.console.pages.connect import ContactAid
from app.console.params import Cursor, Id, Search
from app.console.view import render
from app.identity.deps import FreshPerson, Person
from app.identity.errors import NotUsableNow
from app.identity.paging import Page
from app.identity.principal import Principal
from app.kernel import db, settings
from app.kernel.db import Work
from app.kernel.i18n import N_

MANAGE = "identity.contact.manage"
HERE = "/admin/aun"

router = APIRouter(prefix=HERE)
NAV = NavItem(N_("Outside clients"), HERE, "external", "administration", MANAGE, order=85)
RESERVED = flash.notice(N_("The name is reserved for seven days."))
WITHDRAWN = flash.notice(N_("The name is no longer reserved."))
BLOCKED = flash.notice(N_("The client was shut out. Its connections have ended."))
UNBLOCKED = flash.notice(N_("The client may come back. A link that ended stays ended."))


class NewReservation(BaseModel):
    """A name for somebody outside."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=64)]


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page tells."""

    page: Page[Contact]
    reservations: list[Reservation]
    domain: str
    issuer_fingerprint: str
    root_fingerprint: str


@router.get("")
async def index(
    request: Request, person: Person, q: Search = "", after: Cursor = ""
) -> HTMLResponse:
    """Who registered, which names are kept, who signs."""
    return await _page(request, person, forms.blank(NewReservation), q=q, after=after)


@router.post("/reservations")
async def reserve(request: Request, person: Person) -> Response:
    """Keep a name for somebody."""
    form = await forms.read(request, NewReservation)
    if form.data:
        with form.catching():
            await db.transaction(_reserve, person, form.data.name)
            return flash.see_other(HERE, RESERVED)
    return await _page(request, person, form, status_code=422)


@router.post("/reservations/{reservation_id}/removal")
async def withdraw(request: Request, person: Person, reservation_id: Id) -> Response:
    """Keep a name no longer."""
    form = await forms.read(request, Nothing)
    if form.data:
        await db.transaction(_withdraw, person, reservation_id)
        return flash.see_other(HERE, WITHDRAWN)
    return await _page(request, person, forms.blank(NewReservation), status_code=422)


@router.get("/contacts/{aid}")
async def show(request: Request, person: Person, aid: ContactAid) -> HTMLResponse:
    """One outside client."""
    contact, certificate = await db.read(_one, person, aid)
    return render(request, "admin_aun/show.html", contact=contact, aid=aid, certificate=certificate)


@router.get("/contacts/{aid}/block")
async def ask_to_block(request: Request, person: FreshPerson, aid: ContactAid) -> HTMLResponse:
    """What shutting out ends, or what letting in again does not bring back."""
    contact, _ = await db.read(_one, person, aid)
    return render(request, "admin_aun/block.html", form=None, contact=contact, aid=aid)


@router.post("/contacts/{aid}/block")
async def block(request: Request, person: FreshPerson, aid: ContactAid) -> Response:
    """Shut it out."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(NotUsableNow):
            await db.transaction(_block, person, aid)
            return flash.see_other(f"{HERE}/contacts/{aid}", BLOCKED)
    return await _asked_again(request, person, aid, form)


@router.post("/contacts/{aid}/unblock")
async def unblock(request: Request, person: FreshPerson, aid: ContactAid) -> Response:
    """Let it in again."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(NotUsableNow):
            await db.transaction(_unblock, person, aid)
            return flash.see_other(f"{HERE}/contacts/{aid}", UNBLOCKED)
    return await _asked_again(request, person, aid, form)


async def _asked_again(
    request: Request, person: Principal, aid: str, form: Form[Nothing]
) -> HTMLResponse:
    contact, _ = await db.read(_one, person, aid)
    return render(
        request, "admin_aun/block.html", status_code=409, form=form, contact=contact, aid=aid
    )


async def _page(
    request: Request,
    person: Principal,
    form: Form[NewReservation],
    *,
    q: str = "",
    after: str = "",
    status_code: int = 200,
) -> HTMLResponse:
    shown = await db.read(_shown, person, q, after)
    return render(
        request,
        "admin_aun/index.html",
        status_code=status_code,
        shown=shown,
        form=form,
        q=q,
        registration=settings.current().aun_registration,
    )


def _check(session: Session, person: Principal) -> None:
    """A contact is of the whole tenant, so the permission has to reach all of it."""
    scope.require_tenant_wide(session, person, MANAGE)


def _shown(session: Session, person: Principal, q: str, after: str) -> Shown:
    _check(session, person)
    tenant_id = person.tenant_id
    return Shown(
        page=contacts.page(session, tenant_id, q, after),
        reservations=registration.reservations(session, tenant_id),
        domain=issuers.domain_of(session, tenant_id),
        issuer_fingerprint=chain.issuer_fingerprint(session, tenant_id),
        root_fingerprint=chain.root_fingerprint(session, tenant_id),
    )


def _one(session: Session, person: Principal, aid: str) -> tuple[Contact, Certificate | None]:
    _check(session, person)
    contact = contacts.one(session, person.tenant_id, aid)
    return contact, contacts.certificate(session, person.tenant_id, aid)


def _reserve(work: Work, person: Principal, name: str) -> None:
    _check(work.session, person)
    registration.reserve(work, person, name)


def _withdraw(work: Work, person: Principal, reservation_id: str) -> None:
    _check(work.session, person)
    registration.withdraw(work, person, reservation_id)


def _block(work: Work, person: Principal, aid: str) -> None:
    _check(work.session, person)
    contacts.block(work, person, aid)


def _unblock(work: Work, person: Principal, aid: str) -> None:
    _check(work.session, person)
    contacts.unblock(work, person, aid)
