"""/admin: where this installation stands, in numbers."""

import asyncio
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from sqlalchemy import ColumnElement
from sqlmodel import Session, SQLModel, func, select

from app.access import scope
from app.audit import checkpoints
from app.audit import queries as trail
from app.audit.checkpoints import Checkpoint
from app.audit.queries import Head
from app.console.nav import NavItem
from app.console.view import render
from app.identity.deps import Person
from app.identity.models import Agent, AgentStatus, Delegation, Org, Role, User, UserStatus
from app.identity.principal import Principal
from app.kernel import db, settings
from app.kernel.errors import PermissionDenied
from app.kernel.i18n import N_

SYSTEM = "system.read"

router = APIRouter(prefix="/admin")
NAV = NavItem(N_("Overview"), "/admin", "info", "administration", SYSTEM, order=5)


@dataclass(frozen=True, slots=True)
class Count:
    """One number, and the list behind it."""

    label: str
    number: int
    path: str


@dataclass(frozen=True, slots=True)
class Overview:
    """What the page shows. `head` only to those who may read the trail."""

    counts: list[Count]
    head: Head | None
    may_audit: bool


@router.get("")
async def index(request: Request, person: Person) -> HTMLResponse:
    """Counts, the end of the audit chain, the database and the version."""
    overview = await db.read(_overview, person)
    newest: Checkpoint | None = None
    if overview.may_audit:
        folder = settings.current().checkpoints
        newest = await asyncio.to_thread(checkpoints.newest, folder, person.tenant_id)
    return render(
        request,
        "admin_overview/index.html",
        overview=overview,
        newest=newest,
        database="SQLite" if db.is_sqlite() else "PostgreSQL",
        version=request.app.version,
        origin=settings.current().origin,
    )


def _overview(session: Session, person: Principal) -> Overview:
    held = scope.tenant_wide_permissions(session, person)
    if SYSTEM not in held:
        raise PermissionDenied(permission=SYSTEM)
    wanted: list[tuple[str, str, type[SQLModel], str, list[Any]]] = [
        (
            N_("People who can sign in"),
            "identity.user.read",
            User,
            "/admin/users?status=active",
            [User.status == UserStatus.ACTIVE],
        ),
        (
            N_("Invited"),
            "identity.user.read",
            User,
            "/admin/users?status=invited",
            [User.status == UserStatus.INVITED],
        ),
        (N_("Organisations"), "identity.org.read", Org, "/admin/orgs", []),
        (N_("Roles"), "identity.role.read", Role, "/admin/roles", []),
        (
            N_("Published agents"),
            "identity.agent.read",
            Agent,
            "/admin/agents?status=published",
            [Agent.status == AgentStatus.PUBLISHED],
        ),
        (
            N_("Live delegations"),
            "identity.delegation.read",
            Delegation,
            "/admin/delegations",
            [Delegation.revoked_at == None],  # noqa: E711 - SQL
        ),
    ]
    return Overview(
        [
            Count(label, _count(session, person, model, conditions), path)
            for label, permission, model, path, conditions in wanted
            if permission in held
        ],
        trail.head(session, person.tenant_id) if "audit.read" in held else None,
        may_audit="audit.read" in held,
    )


def _count(
    session: Session,
    person: Principal,
    model: type[SQLModel],
    conditions: list[ColumnElement[bool]],
) -> int:
    of_tenant = model.tenant_id == person.tenant_id  # type: ignore[attr-defined]
    query = select(func.count()).select_from(model).where(of_tenant, *conditions)
    return session.exec(query).one()
