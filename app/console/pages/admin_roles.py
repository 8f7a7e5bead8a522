"""/admin/roles: which permissions belong together, how far each reaches, and who holds them."""

from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session, col, select

from app.access import scope
from app.console import flash, forms
from app.console.forms import Form
from app.console.names import Name
from app.console.nav import NavItem
from app.console.params import ChosenId, Id
from app.console.view import render
from app.identity import directory, roles
from app.identity.deps import FreshPerson, Person
from app.identity.errors import BeyondYourRights, BuiltinRole, StillInUse
from app.identity.models import Org, Permission, Role, RoleAssignment, User
from app.identity.principal import Principal
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.errors import Conflict
from app.kernel.i18n import N_

READ, MANAGE = "identity.role.read", "identity.role.manage"
HOLDERS_SHOWN = 50

router = APIRouter(prefix="/admin/roles")
NAV = NavItem(N_("Roles"), "/admin/roles", "role", "administration", READ, order=30)
CREATED = flash.notice(N_("The role was made. Nobody holds it yet."))
CHANGED = flash.notice(
    N_("The role was changed. It counts from the next click of whoever holds it.")
)
REMOVED = flash.notice(N_("The role was removed."))


class NewRole(BaseModel):
    """A role of the tenant's own; each of `grants` is `permission=scope`."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    code: Annotated[str, Field(max_length=63)]
    grants: list[str] = []


class Change(BaseModel):
    """Another name and other grants."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    grants: list[str] = []
    version: int


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Detail:
    """Everything the page of a role shows."""

    role: Role
    packs: list[tuple[str, list[Permission]]]
    grants: dict[str, str]
    holders: list[tuple[RoleAssignment, User, Org]]
    holder_count: int
    may_manage: bool


@router.get("")
async def index(request: Request, person: Person) -> HTMLResponse:
    """Every role."""
    return render(request, "admin_roles/index.html", **await db.read(_list, person))


@router.get("/new")
async def new(request: Request, person: FreshPerson, copy: ChosenId = "") -> HTMLResponse:
    """The form that makes a role, perhaps as a copy."""
    context = await db.read(_grantable, person)
    form = forms.blank(NewRole)
    if copy:
        detail = await db.read(_detail, person, copy)
        given = [f"{code}={reach}" for code, reach in detail.grants.items()]
        form = forms.blank(
            NewRole, grants=[each for each in given if _code(each) in context["held"]]
        )
        context["copied"] = detail.role
    return render(request, "admin_roles/new.html", form=form, **context)


@router.post("")
async def create(request: Request, person: FreshPerson) -> Response:
    """Make a role."""
    form = await forms.read(request, NewRole)
    if form.data:
        with form.catching(BeyondYourRights, at="grants"):
            role = await db.transaction(_create, person, form.data)
            return flash.see_other(f"/admin/roles/{role.id}", CREATED)
    context = await db.read(_grantable, person)
    return render(request, "admin_roles/new.html", status_code=422, form=form, **context)


@router.get("/{role_id}")
async def show(request: Request, person: Person, role_id: Id) -> HTMLResponse:
    """One role."""
    detail = await db.read(_detail, person, role_id)
    return render(
        request, "admin_roles/show.html", detail=detail, role=detail.role, now=clock.now()
    )


@router.get("/{role_id}/edit")
async def edit(request: Request, person: FreshPerson, role_id: Id) -> HTMLResponse:
    """The form that changes a role."""
    role, grants = await db.read(_own, person, role_id)
    typed = forms.blank(
        Change,
        name=role.name,
        grants=[f"{code}={reach}" for code, reach in grants.items()],
        version=role.version,
    )
    return await _edit_page(request, person, role, typed)


@router.post("/{role_id}")
async def change(request: Request, person: FreshPerson, role_id: Id) -> Response:
    """Keep what was changed."""
    form = await forms.read(request, Change)
    if form.data:
        with form.catching(BeyondYourRights, at="grants"), form.catching(Conflict):
            await db.transaction(_change, person, role_id, form.data)
            return flash.see_other(f"/admin/roles/{role_id}", CHANGED)
    role, _ = await db.read(_own, person, role_id)
    return await _edit_page(request, person, role, form, status_code=422)


@router.get("/{role_id}/removal")
async def ask_to_remove(request: Request, person: FreshPerson, role_id: Id) -> HTMLResponse:
    """What removing it means."""
    role, _ = await db.read(_own, person, role_id)
    return render(request, "admin_roles/remove.html", form=None, role=role)


@router.post("/{role_id}/removal")
async def remove(request: Request, person: FreshPerson, role_id: Id) -> Response:
    """Do away with a role nobody holds."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(StillInUse):
            await db.transaction(_remove, person, role_id)
            return flash.see_other("/admin/roles", REMOVED)
    role, _ = await db.read(_own, person, role_id)
    return render(request, "admin_roles/remove.html", status_code=409, form=form, role=role)


def packs_of(session: Session) -> list[tuple[str, list[Permission]]]:
    """Every permission there is, by pack."""
    found = session.exec(select(Permission).order_by(col(Permission.pack), col(Permission.code)))
    return [(pack, list(group)) for pack, group in groupby(found, key=lambda each: each.pack)]


def _list(session: Session, person: Principal) -> dict[str, Any]:
    scope.require(session, person, READ)
    seen = {role.id for role in scope.reachable(session, person, READ, Role)}
    return {
        "roles": [role for role in roles.of_tenant(session, person.tenant_id) if role.id in seen],
        "holders": directory.holders(session, person.tenant_id),
        "sizes": directory.sizes(session, person.tenant_id),
    }


def _detail(session: Session, person: Principal, role_id: str) -> Detail:
    role = scope.one(session, person, READ, Role, role_id)
    visible = scope.within(person, "identity.user.read", User)
    return Detail(
        role,
        packs_of(session),
        roles.grants_of(session, role),
        list(directory.holders_of(session, role, visible, HOLDERS_SHOWN)),
        directory.holders(session, role.tenant_id).get(role.id, 0),
        may_manage=scope.reached(session, person, MANAGE, Role, role.id),
    )


def _grantable(session: Session, person: Principal) -> dict[str, Any]:
    scope.require(session, person, MANAGE)
    return {
        "packs": packs_of(session),
        "held": scope.tenant_wide_permissions(session, person),
        "copied": None,
    }


def _own(session: Session, person: Principal, role_id: str) -> tuple[Role, dict[str, str]]:
    role = scope.one(session, person, MANAGE, Role, role_id)
    if role.builtin:
        raise BuiltinRole
    return role, roles.grants_of(session, role)


def _create(work: Work, person: Principal, new: NewRole) -> Role:
    scope.require(work.session, person, MANAGE)
    return roles.create(
        work,
        person,
        tenant_id=person.tenant_id,
        code=new.code,
        name=new.name.strip(),
        grants=_grants(new.grants),
        held=scope.tenant_wide_permissions(work.session, person),
    )


def _change(work: Work, person: Principal, role_id: str, change: Change) -> None:
    roles.change(
        work,
        person,
        scope.one(work.session, person, MANAGE, Role, role_id),
        name=change.name.strip(),
        grants=_grants(change.grants),
        expected_version=change.version,
        held=scope.tenant_wide_permissions(work.session, person),
    )


def _remove(work: Work, person: Principal, role_id: str) -> None:
    roles.remove(work, person, scope.one(work.session, person, MANAGE, Role, role_id))


def _grants(chosen: list[str]) -> dict[str, str]:
    return {_code(each): each.partition("=")[2] for each in chosen}


def _code(grant: str) -> str:
    return grant.partition("=")[0]


async def _edit_page(
    request: Request, person: Principal, role: Role, form: Form[Change], status_code: int = 200
) -> HTMLResponse:
    context = await db.read(_grantable, person)
    theirs = []
    if form.data and form.data.version != role.version:  # somebody else was faster
        _, grants = await db.read(_own, person, role.id)
        saved = ", ".join(sorted(f"{code}={reach}" for code, reach in grants.items()))
        theirs = [
            (N_("Name"), role.name, form.data.name),
            (N_("Permissions"), saved, ", ".join(sorted(form.data.grants))),
        ]
        form.typed["version"] = [str(role.version)]
    return render(
        request,
        "admin_roles/edit.html",
        status_code=status_code,
        form=form,
        role=role,
        theirs=[each for each in theirs if each[1] != each[2]],
        **context,
    )
