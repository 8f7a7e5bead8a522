"""/admin/clients: applications that ask to act for people of this workspace."""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session, col, or_, select

from app.access import scope
from app.console import flash, forms
from app.console.names import Name
from app.console.nav import NavItem
from app.console.params import Search
from app.console.view import render
from app.identity import search
from app.identity.deps import FreshPerson, Person
from app.identity.errors import NotUsableNow
from app.identity.models import Agent, AuthMethod, ClientSource, OAuthClient
from app.identity.oauth import clients
from app.identity.principal import Principal
from app.kernel import db, settings
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.kernel.i18n import N_

MANAGE = "identity.client.manage"

router = APIRouter(prefix="/admin/clients")
NAV = NavItem(N_("Applications"), "/admin/clients", "app", "administration", MANAGE, order=80)
CHANGED = flash.notice(N_("The application was changed."))
BLOCKED = flash.notice(N_("The application was blocked. Its tokens have ended."))
UNBLOCKED = flash.notice(N_("The application can be used again. Tokens that ended stay ended."))
REGISTERED = flash.notice(N_("The application was registered."))

ClientId = Annotated[str, Path(pattern=r"^[\x21-\x7e]{1,500}$")]
Uris = Annotated[str, Field(max_length=20_000)]


class NewClient(BaseModel):
    """An application this workspace knows beforehand."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    redirect_uris: Uris = ""
    by_code: bool = False
    kind: Literal["public", "confidential"] = "public"


class Change(BaseModel):
    """Another name, other addresses for its answers, codes that people type."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    redirect_uris: Uris = ""
    by_code: bool = False


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Listed:
    """An application as this workspace knows it; `agent` once somebody let it act."""

    client: OAuthClient
    agent: Agent | None
    is_own: bool


@router.get("")
async def index(request: Request, person: Person, q: Search = "") -> HTMLResponse:
    """Applications registered here, and those people let act."""
    listed = await db.read(_list, person, q)
    return render(request, "admin_clients/index.html", listed=listed, q=q)


@router.get("/new")
async def new(request: Request, person: FreshPerson) -> HTMLResponse:
    """The form that registers an application."""
    await db.read(_check, person)
    return render(request, "admin_clients/new.html", form=forms.blank(NewClient, kind="public"))


@router.post("")
async def create(request: Request, person: FreshPerson) -> Response:
    """Register an application; a secret is shown once."""
    form = await forms.read(request, NewClient)
    if form.data:
        with form.catching():
            client, secret = await db.transaction(_create, person, form.data)
            if secret is None:
                return flash.see_other(f"/admin/clients/{client.id}", REGISTERED)
            return _shown_once(request, client, secret)
    await db.read(_check, person)
    return render(request, "admin_clients/new.html", status_code=422, form=form)


@router.get("/{client_id}")
async def show(request: Request, person: Person, client_id: ClientId) -> HTMLResponse:
    """One application of this workspace."""
    listed = await db.read(_one, person, client_id)
    return render(
        request,
        "admin_clients/show.html",
        listed=listed,
        client=listed.client,
        by_code=clients.DEVICE in listed.client.grant_types,
        metadata=f"{settings.current().origin}/.well-known/oauth-authorization-server",
    )


@router.get("/{client_id}/edit")
async def edit(request: Request, person: FreshPerson, client_id: ClientId) -> HTMLResponse:
    """The form that changes it."""
    client = await db.read(_registered, person, client_id)
    form = forms.blank(
        Change,
        name=client.name,
        redirect_uris="\n".join(client.redirect_uris),
        by_code=clients.DEVICE in client.grant_types,
    )
    return render(request, "admin_clients/edit.html", form=form, client=client)


@router.post("/{client_id}")
async def change(request: Request, person: FreshPerson, client_id: ClientId) -> Response:
    """Keep what was changed."""
    form = await forms.read(request, Change)
    if form.data:
        with form.catching():
            await db.transaction(_change, person, client_id, form.data)
            return flash.see_other(f"/admin/clients/{client_id}", CHANGED)
    client = await db.read(_registered, person, client_id)
    return render(request, "admin_clients/edit.html", status_code=422, form=form, client=client)


@router.get("/{client_id}/secret")
async def ask_for_secret(
    request: Request, person: FreshPerson, client_id: ClientId
) -> HTMLResponse:
    """What a new secret means."""
    client = await db.read(_own, person, client_id)
    return render(request, "admin_clients/secret.html", form=None, client=client)


@router.post("/{client_id}/secret")
async def make_secret(request: Request, person: FreshPerson, client_id: ClientId) -> Response:
    """A new secret, shown once; the old one is void."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(NotUsableNow):
            client, secret = await db.transaction(_make_secret, person, client_id)
            return _shown_once(request, client, secret)
    client = await db.read(_own, person, client_id)
    return render(request, "admin_clients/secret.html", status_code=409, form=form, client=client)


@router.get("/{client_id}/block")
async def ask_to_block(request: Request, person: FreshPerson, client_id: ClientId) -> HTMLResponse:
    """What blocking ends, or what unblocking does not bring back."""
    client = await db.read(_own, person, client_id)
    return render(request, "admin_clients/block.html", form=None, client=client)


@router.post("/{client_id}/block")
async def block(request: Request, person: FreshPerson, client_id: ClientId) -> Response:
    """End an application and every token of it."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(NotUsableNow):
            await db.transaction(_block, person, client_id)
            return flash.see_other(f"/admin/clients/{client_id}", BLOCKED)
    client = await db.read(_own, person, client_id)
    return render(request, "admin_clients/block.html", status_code=409, form=form, client=client)


@router.post("/{client_id}/unblock")
async def unblock(request: Request, person: FreshPerson, client_id: ClientId) -> Response:
    """Let an application be used again."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(NotUsableNow):
            await db.transaction(_unblock, person, client_id)
            return flash.see_other(f"/admin/clients/{client_id}", UNBLOCKED)
    client = await db.read(_own, person, client_id)
    return render(request, "admin_clients/block.html", status_code=409, form=form, client=client)


def _check(session: Session, person: Principal) -> None:
    """An application is of the whole tenant, so the permission has to reach all of it."""
    scope.require_tenant_wide(session, person, MANAGE)


def _list(session: Session, person: Principal, q: str) -> list[Listed]:
    _check(session, person)
    here = select(Agent).where(
        Agent.tenant_id == person.tenant_id, col(Agent.client_id).is_not(None)
    )
    agents = {agent.client_id: agent for agent in session.exec(here).all()}
    query = select(OAuthClient).where(
        or_(
            OAuthClient.owner_tenant_id == person.tenant_id,
            col(OAuthClient.id).in_(here.with_only_columns(col(Agent.client_id))),
        )
    )
    words = search.fold(q).split()
    return [
        Listed(client, agents.get(client.id), client.owner_tenant_id == person.tenant_id)
        for client in session.exec(query.order_by(OAuthClient.name, OAuthClient.id)).all()
        if all(word in search.folded(client.name, client.id) for word in words)
    ]


def _one(session: Session, person: Principal, client_id: str) -> Listed:
    client = _own(session, person, client_id)
    query = select(Agent).where(Agent.tenant_id == person.tenant_id, Agent.client_id == client_id)
    return Listed(client, session.exec(query).first(), is_own=True)


def _own(session: Session, person: Principal, client_id: str) -> OAuthClient:
    _check(session, person)
    return clients.own(session, person.tenant_id, client_id)


def _registered(session: Session, person: Principal, client_id: str) -> OAuthClient:
    client = _own(session, person, client_id)
    if client.source != ClientSource.REGISTERED:
        raise NotFound  # the client of a hosted agent answers nowhere
    return client


def _create(work: Work, person: Principal, new: NewClient) -> tuple[OAuthClient, str | None]:
    _check(work.session, person)
    public = new.kind == "public"
    uris = new.redirect_uris.split()
    return clients.create(
        work,
        person,
        name=new.name.strip(),
        redirect_uris=uris,
        grant_types=clients.grants(uris, by_code=new.by_code),
        auth_method=AuthMethod.NONE if public else AuthMethod.CLIENT_SECRET_BASIC,
    )


def _change(work: Work, person: Principal, client_id: str, change: Change) -> None:
    client = _registered(work.session, person, client_id)
    uris = change.redirect_uris.split()
    clients.change(
        work,
        person,
        client,
        name=change.name.strip(),
        redirect_uris=uris,
        by_code=change.by_code,
    )


def _make_secret(work: Work, person: Principal, client_id: str) -> tuple[OAuthClient, str]:
    client = _own(work.session, person, client_id)
    return client, clients.rotate_secret(work, person, client)


def _block(work: Work, person: Principal, client_id: str) -> None:
    clients.block(work, person, _own(work.session, person, client_id))


def _unblock(work: Work, person: Principal, client_id: str) -> None:
    clients.unblock(work, person, _own(work.session, person, client_id))


def _shown_once(request: Request, client: OAuthClient, secret: str) -> HTMLResponse:
    return render(
        request, "admin_clients/secret_made.html", status_code=201, client=client, secret=secret
    )
