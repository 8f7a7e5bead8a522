"""/outside: a person's own access to outside servers, given and taken back."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, SecretStr
from sqlmodel import Session

from app.console import flash, forms
from app.console.forms import Form
from app.console.nav import NavItem
from app.console.params import Id
from app.console.view import render
from app.identity.deps import FreshPerson, Person
from app.identity.principal import Principal
from app.kernel import db, rates
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.kernel.i18n import N_
from app.outside import consent, definitions, links, servers
from app.outside.models import Access, McpLink, McpServer
from app.outside.results import Lost

router = APIRouter(prefix="/outside")
NAV = NavItem(
    N_("Linked servers"),
    "/outside",
    "external",
    "workspace",
    (definitions.READ, definitions.USE),
    order=80,
)
LINKED = flash.notice(N_("You are linked. Your agents can use its tools for you."))
UNLINKED = flash.notice(N_("You are not linked any more."))
REFUSED = flash.notice(N_("You were not linked: the server did not confirm it. Try again."), "warn")
NO_WAY = flash.notice(N_("The server does not say how to link to it."), "warn")
ELSEWHERE = flash.notice(
    N_("The server sends people to somebody else by now. An administrator has to add it anew."),
    "warn",
)
LONGEST = 4_000  # characters of what a server adds to an address


class Token(BaseModel):
    """A token that a person has of a server."""

    model_config = ConfigDict(extra="forbid")

    token: SecretStr


@dataclass(frozen=True, slots=True)
class Listed:
    """A server that asks something of each person, and this person's access to it."""

    server: McpServer
    link: McpLink | None


@router.get("")
async def index(request: Request, person: Person) -> HTMLResponse:
    """The servers that ask something of each person."""
    listed = await db.read(_listed, person)
    return render(request, "outside/index.html", listed=listed, is_over=links.is_over)


@router.get("/callback")
async def come_back(
    _request: Request,
    person: Person,
    state: Annotated[str, Query(max_length=LONGEST)] = "",
    code: Annotated[str, Query(max_length=LONGEST)] = "",
    iss: Annotated[str | None, Query(max_length=LONGEST)] = None,
) -> Response:
    """Take what a server said to a person who was asked there."""
    _count(person)
    try:
        await consent.complete(person, state, code, iss)
    except Lost:
        return flash.see_other("/outside", REFUSED)
    return flash.see_other("/outside", LINKED)


@router.post("/{server_id}/consent")
async def ask_there(request: Request, person: FreshPerson, server_id: Id) -> Response:
    """Begin to link: a page with the way to the server (SEC-22: no form leads there)."""
    _count(person)
    try:
        address = await consent.begin(person, server_id)
    except Lost as lost:
        is_elsewhere = lost.rule == "oauth_other_issuer"
        return flash.see_other("/outside", ELSEWHERE if is_elsewhere else NO_WAY)
    server = await db.read(_one, person, server_id)
    response = render(request, "outside/consent.html", server=server, address=address)
    response.headers["Cache-Control"] = "no-store"
    return response


@router.get("/{server_id}/token")
async def ask_for_token(request: Request, person: FreshPerson, server_id: Id) -> HTMLResponse:
    """The form that takes a token."""
    return await _token_page(request, person, server_id, forms.blank(Token))


@router.post("/{server_id}/token")
async def give_token(request: Request, person: FreshPerson, server_id: Id) -> Response:
    """Keep a token that a person has of a server."""
    _count(person)
    form = await forms.read(request, Token)
    if form.data:
        with form.catching():
            await db.transaction(_give, person, server_id, form.data.token.get_secret_value())
            return flash.see_other("/outside", LINKED)
    return await _token_page(request, person, server_id, form, status_code=422)


@router.post("/{server_id}/unlinking")
async def unlink(_request: Request, person: Person, server_id: Id) -> Response:
    """Forget a person's access."""
    await db.transaction(_unlink, person, server_id)
    return flash.see_other("/outside", UNLINKED)


def _listed(session: Session, person: Principal) -> list[Listed]:
    return [
        Listed(server, links.live(session, server, person.user_id))
        for server in consent.listed(session, person)
    ]


def _count(person: Principal) -> None:
    rates.of_process().hit("outside_link", person.tenant_id, person.user_id)


def _one(session: Session, person: Principal, server_id: str) -> McpServer:
    consent.check(session, person)
    return servers.one(session, person.tenant_id, server_id)


def _of_token(session: Session, person: Principal, server_id: str) -> McpServer:
    """A server that asks each person for a token of their own."""
    server = _one(session, person, server_id)
    if server.access != Access.TOKEN or not server.is_enabled:
        raise NotFound
    return server


def _give(work: Work, person: Principal, server_id: str, token: str) -> None:
    links.give_token(work, person, _of_token(work.session, person, server_id), token.strip())


def _unlink(work: Work, person: Principal, server_id: str) -> None:
    """What is theirs they can take back, whatever they may do by now."""
    links.end(work, person, servers.one(work.session, person.tenant_id, server_id))


async def _token_page(
    request: Request,
    person: Principal,
    server_id: str,
    form: Form[Token],
    status_code: int = 200,
) -> HTMLResponse:
    server = await db.read(_of_token, person, server_id)
    return render(request, "outside/token.html", status_code=status_code, form=form, server=server)
