"""/admin/users/{id}/roles and /explain: what a person holds, and why they may do something."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlmodel import Session, col, select

from app.access import scope
from app.access.explain import Explanation, explain
from app.console import flash, forms
from app.console.forms import Form
from app.console.pages.admin_users import READ, ROLES
from app.console.params import ChosenId, FormId, Id
from app.console.view import render
from app.console.zoned import Moment
from app.identity import orgs, roles
from app.identity.deps import FreshPerson, Person
from app.identity.errors import BeyondYourRights, LastOwner
from app.identity.models import Org, Permission, Role, RoleAssignment, User
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.kernel.i18n import N_

router = APIRouter(prefix="/admin/users/{user_id}")
ASSIGNED = flash.notice(N_("The role was assigned. It counts from the next click on."))
TAKEN = flash.notice(N_("The role was taken away. It counts no more."))

Whose = Literal["own", "other"]


class Assignment(BaseModel):
    """Which role, from which organisation, and until when."""

    model_config = ConfigDict(extra="forbid")

    role_id: FormId
    org_id: FormId
    ends_at: Moment | None = None


class Removal(BaseModel):
    """Which assignment to take away."""

    model_config = ConfigDict(extra="forbid")

    role_id: FormId
    org_id: FormId


@dataclass(frozen=True, slots=True)
class Question:
    """A permission, and a record it is asked of."""

    permission: str
    whose: Whose
    org_id: str


@router.get("/roles/new")
async def new(request: Request, person: FreshPerson, user_id: Id) -> HTMLResponse:
    """The form that assigns a role."""
    context = await db.read(_choices, person, user_id)
    form = forms.blank(Assignment, org_id=context["user"].org_id)
    return render(request, "admin_users/assign.html", form=form, **context)


@router.post("/roles")
async def assign(request: Request, person: FreshPerson, user_id: Id) -> Response:
    """Let the person hold a role."""
    form = await forms.read(request, Assignment)
    if form.data:
        with form.catching(BeyondYourRights, LastOwner, at="role_id"):
            await db.transaction(_assign, person, user_id, form.data)
            return flash.see_other(f"/admin/users/{user_id}", ASSIGNED)
    context = await db.read(_choices, person, user_id)
    return render(request, "admin_users/assign.html", status_code=422, form=form, **context)


@router.get("/roles/removal")
async def ask_to_unassign(
    request: Request, person: FreshPerson, user_id: Id, role: ChosenId = "", org: ChosenId = ""
) -> HTMLResponse:
    """What taking a role away means."""
    form = forms.blank(Removal, role_id=role, org_id=org)
    return await _ask(request, person, user_id, form)


@router.post("/roles/removal")
async def unassign(request: Request, person: FreshPerson, user_id: Id) -> Response:
    """Take a role away."""
    form = await forms.read(request, Removal)
    if form.data is None:
        raise NotFound
    with form.catching(LastOwner):
        await db.transaction(_unassign, person, user_id, form.data)
        return flash.see_other(f"/admin/users/{user_id}", TAKEN)
    return await _ask(request, person, user_id, form, status_code=409)


@router.get("/explain")
async def why(
    request: Request,
    person: Person,
    user_id: Id,
    permission: Annotated[str, Query(pattern=r"^[a-z0-9_.-]{0,127}$")] = "",
    whose: Whose = "other",
    org: ChosenId = "",
) -> HTMLResponse:
    """Why this person may, or may not, do something with a record."""
    asked = Question(permission, whose, org)
    context = await db.read(_explained, person, user_id, asked)
    return render(request, "admin_users/explain.html", asked=asked, **context)


def _choices(session: Session, person: Principal, user_id: str) -> dict[str, Any]:
    user = scope.one(session, person, ROLES, User, user_id)
    scope.require(session, person, ROLES)
    return {
        "user": user,
        "roles": scope.reachable(session, person, ROLES, Role),
        "orgs": [org for org in orgs.tree(session, person.tenant_id) if org.status == "active"],
        "held": scope.tenant_wide_permissions(session, person),
    }


def _assign(work: Work, person: Principal, user_id: str, wanted: Assignment) -> None:
    session = work.session
    user = scope.one(session, person, ROLES, User, user_id)
    role = scope.one(session, person, ROLES, Role, wanted.role_id)
    org = scope.one(session, person, ROLES, Org, wanted.org_id)
    held = scope.tenant_wide_permissions(session, person)
    roles.assign(work, person, user, role, org, ends_at=wanted.ends_at, held=held)


def _unassign(work: Work, person: Principal, user_id: str, which: Removal) -> None:
    user = scope.one(work.session, person, ROLES, User, user_id)
    _, role, org = _held(work.session, user, which.role_id, which.org_id)
    roles.unassign(work, person, user, role, org)


def _held(
    session: Session, user: User, role_id: str, org_id: str
) -> tuple[RoleAssignment, Role, Org]:
    for assignment, role, org in roles.assignments_of(session, user):
        if (role.id, org.id) == (role_id, org_id):
            return assignment, role, org
    raise NotFound


def _removal(session: Session, person: Principal, user_id: str, role_id: str, org_id: str) -> Any:
    user = scope.one(session, person, ROLES, User, user_id)
    _, role, org = _held(session, user, role_id, org_id)
    return {"user": user, "role": role, "org": org}


async def _ask(
    request: Request, person: Principal, user_id: str, form: Form[Removal], status_code: int = 200
) -> HTMLResponse:
    context = await db.read(_removal, person, user_id, form.value("role_id"), form.value("org_id"))
    return render(
        request, "admin_users/unassign.html", status_code=status_code, form=form, **context
    )


def _explained(
    session: Session, person: Principal, user_id: str, asked: Question
) -> dict[str, Any]:
    user = scope.one(session, person, READ, User, user_id)
    tree = orgs.tree(session, person.tenant_id)
    answer: Explanation | None = None
    if asked.permission:
        somebody = replace(person, user_id=user.id)  # it reads rows alone, and grants nothing
        owner_id = user.id if asked.whose == "own" else None
        org_id = asked.org_id or user.org_id
        answer = explain(session, somebody, asked.permission, owner_id, org_id)
    return {
        "user": user,
        "orgs": tree,
        "permissions": session.exec(select(Permission).order_by(col(Permission.code))).all(),
        "answer": answer,
    }
