"""/connect: how AI applications and messaging clients find us, and which of them are one's own."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlmodel import Session

from app.aun import identities, linking
from app.aun.linking import LinkedAlready, NotProved
from app.aun.models import AID_LENGTH
from app.aun.pki import chain, issuers
from app.aun.pki_models import LinkCode
from app.console import flash, forms, mcp_clients
from app.console.nav import NavItem
from app.console.view import render
from app.identity import users
from app.identity.deps import FreshPerson, Person
from app.identity.doors import Door
from app.identity.models import PeerLink
from app.identity.oauth import families
from app.identity.oauth.families import Granted
from app.identity.principal import Principal
from app.kernel import db, settings
from app.kernel.i18n import N_

router = APIRouter(prefix="/connect")
NAV = NavItem(N_("Connect"), "/connect", "globe", "workspace", order=80)
DOORS = {
    Door.MCP: N_("commands, as MCP tools"),
    Door.V1: N_("commands, by the API"),
    Door.A2A: N_("agents of other deployments"),
    Door.AUN: N_("messages"),
}
LINKED = flash.notice(N_("The client is linked. What it says counts as said by you."))
UNLINKED = flash.notice(N_("The link has ended. The client can still write to people here."))

ContactAid = Annotated[str, Path(max_length=AID_LENGTH, pattern=r"^[a-z0-9_][a-z0-9._-]+$")]


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


class Confirmed(BaseModel):
    """The AID that the person saw when they said yes."""

    model_config = ConfigDict(extra="forbid")

    aid: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page tells."""

    domain: str
    own_aid: str
    system_aid: str
    root_fingerprint: str
    waiting: LinkCode | None
    links: list[PeerLink]
    applications: list[Granted]


@router.get("")
async def show(request: Request, person: Person) -> HTMLResponse:
    """The page."""
    return await _page(request, person)


@router.post("/code")
async def make_code(request: Request, person: Person) -> Response:
    """A code to send from the client; it is shown here alone."""
    form = await forms.read(request, Nothing)
    if not form.data:
        return await _page(request, person, status_code=422)
    code = await db.transaction(linking.begin, person)
    return await _page(request, person, code=code, status_code=201)


@router.get("/confirmation")
async def ask(request: Request, person: FreshPerson) -> HTMLResponse:
    """The AID that proved itself: is it the person's?"""
    found = await db.read(linking.waiting, person)
    if found is None or found.proved_aid is None:
        raise NotProved
    return render(request, "connect/confirmation.html", form=None, aid=found.proved_aid)


@router.post("/confirmation")
async def confirm(request: Request, person: FreshPerson) -> Response:
    """Link it."""
    form = await forms.read(request, Confirmed)
    if form.data:
        with form.catching(LinkedAlready):
            await db.transaction(linking.confirm, person, form.data.aid)
            return flash.see_other("/connect", LINKED)
    found = await db.read(linking.waiting, person)
    if found is None or found.proved_aid is None:
        raise NotProved
    return render(
        request, "connect/confirmation.html", status_code=409, form=form, aid=found.proved_aid
    )


@router.get("/links/{aid}/removal")
async def ask_to_unlink(request: Request, person: Person, aid: ContactAid) -> HTMLResponse:
    """What ends with a link."""
    link = await db.read(linking.link_of, person, aid)
    return render(request, "connect/removal.html", form=None, aid=link.aid)


@router.post("/links/{aid}/removal")
async def unlink(request: Request, person: Person, aid: ContactAid) -> Response:
    """End a link."""
    form = await forms.read(request, Nothing)
    if form.data:
        await db.transaction(linking.end, person, aid)
        return flash.see_other("/connect", UNLINKED)
    link = await db.read(linking.link_of, person, aid)
    return render(request, "connect/removal.html", status_code=422, form=form, aid=link.aid)


async def _page(
    request: Request, person: Principal, *, code: str = "", status_code: int = 200
) -> HTMLResponse:
    shown = await db.read(_shown, person)
    return render(
        request,
        "connect/show.html",
        status_code=status_code,
        shown=shown,
        code=code,
        endpoint=Door.MCP.resource,
        setups=mcp_clients.setups(Door.MCP.resource),
        doors={door.resource: words for door, words in DOORS.items()},
        registers_itself=settings.current().oauth_registration,
        registration=settings.current().aun_registration,
    )


def _shown(session: Session, person: Principal) -> Shown:
    tenant_id = person.tenant_id
    return Shown(
        domain=issuers.domain_of(session, tenant_id),
        own_aid=users.one(session, tenant_id, person.user_id).aid or "",
        system_aid=identities.system_aid(session, tenant_id),
        root_fingerprint=chain.root_fingerprint(session, tenant_id),
        waiting=linking.waiting(session, person),
        links=linking.links(session, person),
        applications=families.live_of(session, person),
    )
