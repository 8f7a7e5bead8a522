"""/admin/orgs: the organisation tree, and what can be done with a node of it."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlmodel import Session

from app.access import scope
from app.console import flash, forms
from app.console.forms import Form
from app.console.names import Name
from app.console.nav import NavItem
from app.console.params import FormId, Id
from app.console.view import render
from app.identity import directory, orgs
from app.identity.deps import Person
from app.identity.errors import NotUsableNow, StillInUse, WouldLoop
from app.identity.models import Org, OrgStatus
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.kernel.i18n import N_

READ, MANAGE = "identity.org.read", "identity.org.manage"

router = APIRouter(prefix="/admin/orgs")
NAV = NavItem(N_("Organisations"), "/admin/orgs", "org", "administration", READ, order=20)
CREATED = flash.notice(N_("The organisation was added."))
RENAMED = flash.notice(N_("The organisation has its new name."))
MOVED = flash.notice(N_("The organisation was moved, with everything below it."))
CLOSED = flash.notice(N_("The organisation was closed. It takes no new people."))


class NewOrg(BaseModel):
    """An organisation below another."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    parent_id: FormId


class Rename(BaseModel):
    """Another name."""

    model_config = ConfigDict(extra="forbid")

    name: Name


class Move(BaseModel):
    """Another place in the tree."""

    model_config = ConfigDict(extra="forbid")

    parent_id: FormId


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Node:
    """One organisation in the drawn tree."""

    org: Org
    members: int
    children: "list[Node]"

    @property
    def members_below(self) -> int:
        """People here and in everything below."""
        return self.members + sum(child.members_below for child in self.children)


@router.get("")
async def index(request: Request, person: Person) -> HTMLResponse:
    """The tree, as far as the viewer sees it."""
    tops, count = await db.read(_tree, person)
    return render(request, "admin_orgs/index.html", tops=tops, count=count)


@router.get("/new")
async def new(request: Request, person: Person, below: str = "") -> HTMLResponse:
    """The form that adds an organisation."""
    context = await db.read(_places, person)
    form = forms.blank(NewOrg, parent_id=below or context["first_id"])
    return render(request, "admin_orgs/new.html", form=form, **context)


@router.post("")
async def create(request: Request, person: Person) -> Response:
    """Add an organisation."""
    form = await forms.read(request, NewOrg)
    if form.data:
        with form.catching(NotUsableNow, at="parent_id"):
            made = await db.transaction(_create, person, form.data)
            return flash.see_other(f"/admin/orgs/{made.id}", CREATED)
    context = await db.read(_places, person)
    return render(request, "admin_orgs/new.html", status_code=422, form=form, **context)


@router.get("/{org_id}")
async def show(request: Request, person: Person, org_id: Id) -> HTMLResponse:
    """One organisation."""
    return render(request, "admin_orgs/show.html", **await db.read(_one, person, org_id))


@router.get("/{org_id}/name")
async def ask_for_name(request: Request, person: Person, org_id: Id) -> HTMLResponse:
    """The form that renames it."""
    org = await db.read(scope.one, person, MANAGE, Org, org_id)
    form = forms.blank(Rename, name=org.name)
    return render(request, "admin_orgs/rename.html", form=form, org=org)


@router.post("/{org_id}/name")
async def rename(request: Request, person: Person, org_id: Id) -> Response:
    """Give it another name."""
    form = await forms.read(request, Rename)
    if form.data:
        with form.catching():
            await db.transaction(_rename, person, org_id, form.data.name)
            return flash.see_other(f"/admin/orgs/{org_id}", RENAMED)
    org = await db.read(scope.one, person, MANAGE, Org, org_id)
    return render(request, "admin_orgs/rename.html", status_code=422, form=form, org=org)


@router.get("/{org_id}/parent")
async def ask_for_parent(request: Request, person: Person, org_id: Id) -> HTMLResponse:
    """The form that moves it."""
    org = await db.read(scope.one, person, MANAGE, Org, org_id)
    return await _move_page(request, person, org, forms.blank(Move, parent_id=org.parent_id))


@router.post("/{org_id}/parent")
async def move(request: Request, person: Person, org_id: Id) -> Response:
    """Put it, and everything below it, elsewhere."""
    form = await forms.read(request, Move)
    if form.data:
        with form.catching(WouldLoop, NotUsableNow, at="parent_id"):
            await db.transaction(_move, person, org_id, form.data.parent_id)
            return flash.see_other(f"/admin/orgs/{org_id}", MOVED)
    org = await db.read(scope.one, person, MANAGE, Org, org_id)
    return await _move_page(request, person, org, form, status_code=422)


@router.get("/{org_id}/closure")
async def ask_to_close(request: Request, person: Person, org_id: Id) -> HTMLResponse:
    """What closing means."""
    org = await db.read(scope.one, person, MANAGE, Org, org_id)
    return render(request, "admin_orgs/close.html", form=None, org=org)


@router.post("/{org_id}/closure")
async def close(request: Request, person: Person, org_id: Id) -> Response:
    """Take no new people into it."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(StillInUse, NotUsableNow):
            await db.transaction(_close, person, org_id)
            return flash.see_other(f"/admin/orgs/{org_id}", CLOSED)
    org = await db.read(scope.one, person, MANAGE, Org, org_id)
    return render(request, "admin_orgs/close.html", status_code=409, form=form, org=org)


def _tree(session: Session, person: Principal) -> tuple[list[Node], int]:
    scope.require(session, person, READ)
    seen = {org.id for org in scope.reachable(session, person, READ, Org)}
    members = directory.members(session, person.tenant_id)
    nodes: dict[str, Node] = {}
    tops: list[Node] = []
    for org in orgs.tree(session, person.tenant_id):
        if org.id not in seen:
            continue
        node = nodes[org.id] = Node(org, members.get(org.id, 0), [])
        above = nodes.get(org.parent_id or "")
        (above.children if above else tops).append(node)
    return tops, len(nodes)


def _places(session: Session, person: Principal) -> dict[str, Any]:
    scope.require(session, person, MANAGE)
    reached = {org.id for org in scope.reachable(session, person, MANAGE, Org)}
    open_ones = [
        org
        for org in orgs.tree(session, person.tenant_id)
        if org.id in reached and org.status == OrgStatus.ACTIVE
    ]
    return {"orgs": open_ones, "first_id": open_ones[0].id if open_ones else ""}


def _one(session: Session, person: Principal, org_id: str) -> dict[str, Any]:
    org = scope.one(session, person, READ, Org, org_id)
    tree = orgs.tree(session, person.tenant_id)
    members = directory.members(session, person.tenant_id)
    above = [each for each in tree if org.path.startswith(each.path) and each.id != org.id]
    below = [each for each in tree if each.path.startswith(org.path) and each.id != org.id]
    return {
        "org": org,
        "above": above,
        "children": [each for each in below if each.parent_id == org.id],
        "below": len(below),
        "members": members.get(org.id, 0),
        "members_below": sum(members.get(each.id, 0) for each in below),
        "counts": members,
        "may_manage": scope.reached(session, person, MANAGE, Org, org.id),
    }


def _create(work: Work, person: Principal, new: NewOrg) -> Org:
    parent = scope.one(work.session, person, MANAGE, Org, new.parent_id)
    return orgs.create(work, person, parent, new.name.strip())


def _rename(work: Work, person: Principal, org_id: str, name: str) -> None:
    org = scope.one(work.session, person, MANAGE, Org, org_id)
    orgs.rename(work, person, org, name.strip())


def _move(work: Work, person: Principal, org_id: str, parent_id: str) -> None:
    org = scope.one(work.session, person, MANAGE, Org, org_id)
    orgs.move(work, person, org, scope.one(work.session, person, MANAGE, Org, parent_id))


def _close(work: Work, person: Principal, org_id: str) -> None:
    orgs.close(work, person, scope.one(work.session, person, MANAGE, Org, org_id))


async def _move_page(
    request: Request, person: Principal, org: Org, form: Form[Move], status_code: int = 200
) -> HTMLResponse:
    context = await db.read(_places, person)
    context["orgs"] = [each for each in context["orgs"] if not each.path.startswith(org.path)]
    return render(
        request, "admin_orgs/move.html", status_code=status_code, form=form, org=org, **context
    )
