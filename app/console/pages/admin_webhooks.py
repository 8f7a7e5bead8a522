"""/admin/webhooks: who outside is told what happens here, what waits, and what was given up."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session

from app.access import scope
from app.commands import external, outbox, webhooks
from app.commands.outbox_models import (
    ExternalEffect,
    OutboxEvent,
    ReceiverState,
    Waiting,
    WebhookDelivery,
    WebhookSubscription,
)
from app.commands.resolution import MANAGE
from app.commands.webhooks import AlreadySo, Listed, Offered, TooManyReceivers
from app.console import faults, flash, forms, schema_forms
from app.console.forms import Form
from app.console.nav import NavItem
from app.console.params import Cursor, Id
from app.console.view import render
from app.identity.deps import FreshPerson, Person
from app.identity.paging import Page
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.kernel.i18n import N_

router = APIRouter(prefix="/admin/webhooks")
NAV = NavItem(N_("Webhooks"), "/admin/webhooks", "external", "administration", MANAGE, order=90)
CHANGED = flash.notice(N_("The receiver was changed."))
PAUSED = flash.notice(N_("Nothing is sent to it for now. What happens meanwhile waits."))
RESUMED = flash.notice(N_("It is sent to again, what waited first."))
REMOVED = flash.notice(N_("The receiver was removed."))
TESTED = flash.notice(N_("A test event is on its way. Reload this page in a moment."))
AGAIN = flash.notice(N_("It is on its way again. Reload this page in a moment."))
NOTHING = flash.notice(N_("There was nothing to send again."), "warn")

Sort = Literal["pending", "done", "dead"]


class Receiver(BaseModel):
    """An address, and what it is told."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(max_length=2_000)]
    description: Annotated[str, Field(max_length=200)] = ""
    event_types: Annotated[list[Annotated[str, Field(max_length=128)]], Field(max_length=500)] = []
    api_call: Annotated[str, Field(max_length=128)] = ""


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything the first page shows."""

    receivers: list[Listed]
    undeliverable: list[OutboxEvent]
    unknown: list[ExternalEffect]


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything the page of one receiver shows."""

    receiver: WebhookSubscription
    deliveries: Page[WebhookDelivery]
    dead: int


@router.get("")
async def index(request: Request, person: Person) -> HTMLResponse:
    """Receivers, what could not be told, and effects that may have happened."""
    overview = await db.read(_overview, person)
    return render(
        request,
        "admin_webhooks/index.html",
        overview=overview,
        fault=faults.fault,
        record_name=schema_forms.record_name,
    )


@router.get("/new")
async def new(request: Request, person: FreshPerson) -> HTMLResponse:
    """The form that makes a receiver known."""
    return await _form_page(request, person, forms.blank(Receiver))


@router.post("")
async def create(request: Request, person: FreshPerson) -> Response:
    """Make a receiver known; its secret is shown once."""
    form = await forms.read(request, Receiver)
    if form.data:
        with form.catching(TooManyReceivers):
            made, secret = await db.transaction(_create, person, form.data)
            return _shown_once(request, made, secret)
    return await _form_page(request, person, form, status_code=422)


@router.get("/{webhook_id}")
async def show(
    request: Request,
    person: Person,
    webhook_id: Id,
    state: Sort | Literal[""] = "",
    after: Cursor = "",
) -> HTMLResponse:
    """One receiver, and what was sent to it."""
    profile = await db.read(_profile, person, webhook_id, state, after)
    return render(
        request,
        "admin_webhooks/show.html",
        profile=profile,
        receiver=profile.receiver,
        state=state,
        fault=faults.fault,
    )


@router.get("/{webhook_id}/edit")
async def edit(request: Request, person: FreshPerson, webhook_id: Id) -> HTMLResponse:
    """The form that changes a receiver."""
    receiver = await db.read(_one, person, webhook_id)
    form = forms.blank(
        Receiver,
        url=receiver.url,
        description=receiver.description,
        event_types=receiver.event_types,
        api_call=receiver.api_call or "",
    )
    return await _form_page(request, person, form, receiver)


@router.post("/{webhook_id}")
async def change(request: Request, person: FreshPerson, webhook_id: Id) -> Response:
    """Keep what was changed."""
    form = await forms.read(request, Receiver)
    receiver = await db.read(_one, person, webhook_id)
    if form.data:
        with form.catching():
            await db.transaction(_change, person, webhook_id, form.data)
            outbox.wake()
            return flash.see_other(f"/admin/webhooks/{webhook_id}", CHANGED)
    return await _form_page(request, person, form, receiver, status_code=422)


@router.get("/{webhook_id}/secret")
async def ask_for_secret(request: Request, person: FreshPerson, webhook_id: Id) -> HTMLResponse:
    """What a new secret means."""
    return await _ask(request, person, webhook_id, "admin_webhooks/secret.html")


@router.post("/{webhook_id}/secret")
async def make_secret(request: Request, person: FreshPerson, webhook_id: Id) -> Response:
    """A new secret, shown once; the old one stays valid for a day."""
    form = await forms.read(request, Nothing)
    if form.data:
        made, secret = await db.transaction(_rotate, person, webhook_id)
        return _shown_once(request, made, secret)
    return await _ask(request, person, webhook_id, "admin_webhooks/secret.html", form)


@router.get("/{webhook_id}/removal")
async def ask_to_remove(request: Request, person: Person, webhook_id: Id) -> HTMLResponse:
    """What goes with a receiver."""
    return await _ask(request, person, webhook_id, "admin_webhooks/remove.html")


@router.post("/{webhook_id}/removal")
async def remove(request: Request, person: Person, webhook_id: Id) -> Response:
    """Forget a receiver."""
    form = await forms.read(request, Nothing)
    if form.data:
        await db.transaction(_remove, person, webhook_id)
        return flash.see_other("/admin/webhooks", REMOVED)
    return await _ask(request, person, webhook_id, "admin_webhooks/remove.html", form)


@router.post("/{webhook_id}/pause")
async def pause(request: Request, person: Person, webhook_id: Id) -> Response:
    """Send nothing for now."""
    await db.transaction(_move, person, webhook_id, False)
    return flash.see_other(f"/admin/webhooks/{webhook_id}", PAUSED)


@router.post("/{webhook_id}/resumption")
async def resume(request: Request, person: Person, webhook_id: Id) -> Response:
    """Send again."""
    await db.transaction(_move, person, webhook_id, True)
    outbox.wake()
    return flash.see_other(f"/admin/webhooks/{webhook_id}", RESUMED)


@router.post("/{webhook_id}/test")
async def test(request: Request, person: Person, webhook_id: Id) -> Response:
    """Send an event that means nothing."""
    await db.transaction(_test, person, webhook_id)
    outbox.wake()
    return flash.see_other(f"/admin/webhooks/{webhook_id}", TESTED)


@router.post("/{webhook_id}/redelivery")
async def redeliver_all(request: Request, person: Person, webhook_id: Id) -> Response:
    """Send once more all that was given up."""
    number = await db.transaction(_redeliver, person, webhook_id, None)
    outbox.wake()
    return flash.see_other(f"/admin/webhooks/{webhook_id}", AGAIN if number else NOTHING)


@router.post("/{webhook_id}/deliveries/{delivery_id}/redelivery")
async def redeliver(request: Request, person: Person, webhook_id: Id, delivery_id: Id) -> Response:
    """Send one message once more."""
    await db.transaction(_redeliver, person, webhook_id, delivery_id)
    outbox.wake()
    return flash.see_other(f"/admin/webhooks/{webhook_id}", AGAIN)


@router.post("/outbox/{event_id}/retry")
async def tell_again(request: Request, person: Person, event_id: Id) -> Response:
    """Try once more to tell what nobody could be told."""
    await db.transaction(_tell_again, person, event_id)
    outbox.wake()
    return flash.see_other("/admin/webhooks", AGAIN)


def _check(session: Session, person: Principal) -> None:
    """A receiver hears of the whole tenant, so the permission has to reach all of it."""
    scope.require_tenant_wide(session, person, MANAGE)


def _overview(session: Session, person: Principal) -> Overview:
    _check(session, person)
    return Overview(
        webhooks.listed(session, person.tenant_id),
        webhooks.undeliverable(session, person.tenant_id),
        external.unknown(session, person.tenant_id),
    )


def _one(session: Session, person: Principal, webhook_id: str) -> WebhookSubscription:
    _check(session, person)
    return webhooks.one(session, person.tenant_id, webhook_id)


def _profile(
    session: Session, person: Principal, webhook_id: str, state: str, after: str
) -> Profile:
    receiver = _one(session, person, webhook_id)
    chosen = Waiting(state) if state else None
    dead = [
        each.dead
        for each in webhooks.listed(session, person.tenant_id)
        if each.receiver.id == receiver.id
    ]
    return Profile(receiver, webhooks.deliveries_of(session, receiver, chosen, after), dead[0])


def _offered(session: Session, person: Principal) -> Offered:
    _check(session, person)
    return webhooks.offered(session, person.tenant_id)


def _create(work: Work, person: Principal, new: Receiver) -> tuple[WebhookSubscription, str]:
    _check(work.session, person)
    return webhooks.create(
        work,
        person,
        url=new.url.strip(),
        description=new.description.strip(),
        event_types=new.event_types,
        api_call=new.api_call or None,
    )


def _change(work: Work, person: Principal, webhook_id: str, change: Receiver) -> None:
    webhooks.change(
        work,
        person,
        _one(work.session, person, webhook_id),
        url=change.url.strip(),
        description=change.description.strip(),
        event_types=change.event_types,
        api_call=change.api_call or None,
    )


def _rotate(work: Work, person: Principal, webhook_id: str) -> tuple[WebhookSubscription, str]:
    receiver = _one(work.session, person, webhook_id)
    return receiver, webhooks.rotate(work, person, receiver)


def _remove(work: Work, person: Principal, webhook_id: str) -> None:
    webhooks.remove(work, person, _one(work.session, person, webhook_id))


def _move(work: Work, person: Principal, webhook_id: str, goes_on: bool) -> None:
    step = webhooks.resume if goes_on else webhooks.pause
    step(work, person, _one(work.session, person, webhook_id))


def _test(work: Work, person: Principal, webhook_id: str) -> None:
    receiver = _one(work.session, person, webhook_id)
    if receiver.state != ReceiverState.ACTIVE:
        raise AlreadySo
    webhooks.test(work, person, receiver)


def _redeliver(work: Work, person: Principal, webhook_id: str, delivery_id: str | None) -> int:
    receiver = _one(work.session, person, webhook_id)
    return webhooks.redeliver(work, person, receiver, delivery_id)


def _tell_again(work: Work, person: Principal, event_id: str) -> None:
    _check(work.session, person)
    webhooks.tell_again(work, person, event_id)


async def _form_page(
    request: Request,
    person: Principal,
    form: Form[Receiver],
    receiver: WebhookSubscription | None = None,
    status_code: int = 200,
) -> HTMLResponse:
    offered = await db.read(_offered, person)
    families = sorted({name.partition(".")[0] for name in offered.types if "." in name})
    return render(
        request,
        "admin_webhooks/form.html",
        status_code=status_code,
        form=form,
        receiver=receiver,
        offered=offered,
        families=families,
    )


async def _ask(
    request: Request,
    person: Principal,
    webhook_id: str,
    template: str,
    form: Form[Nothing] | None = None,
) -> HTMLResponse:
    receiver = await db.read(_one, person, webhook_id)
    return render(request, template, status_code=422 if form else 200, form=form, receiver=receiver)


def _shown_once(request: Request, receiver: WebhookSubscription, secret: str) -> HTMLResponse:
    return render(
        request,
        "admin_webhooks/secret_made.html",
        status_code=201,
        receiver=receiver,
        secret=secret,
    )
