"""/admin/delegations: everybody who lets an agent act for them, and a way to end it."""

from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlmodel import Session

from app.access import scope
from app.console import flash, forms
from app.console.nav import NavItem
from app.console.params import ChosenId, Cursor, Id, Search
from app.console.view import render
from app.identity import agents, delegations, directory, users
from app.identity.deps import Person
from app.identity.directory import DelegationsWanted
from app.identity.errors import NotUsableNow
from app.identity.models import Agent, Delegation, User
from app.identity.principal import Principal
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.i18n import N_

READ, MANAGE = "identity.delegation.read", "identity.delegation.manage"

router = APIRouter(prefix="/admin/delegations")
NAV = NavItem(
    N_("Delegations"), "/admin/delegations", "delegation", "administration", READ, order=70
)
REVOKED = flash.notice(N_("The delegation was revoked. The agent no longer acts for this person."))

State = Literal["live", "paused", "ended", "all"]


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@router.get("")
async def index(
    request: Request,
    person: Person,
    q: Search = "",
    state: State | Literal[""] = "live",
    user: ChosenId = "",
    agent: ChosenId = "",
    after: Cursor = "",
) -> HTMLResponse:
    """Delegations the viewer may see, the newest first."""
    chosen = state or "all"
    wanted = DelegationsWanted(q=q, state=chosen, user_id=user, agent_id=agent)
    context = await db.read(_list, person, wanted, after)
    query = {"q": q, "state": chosen, "user": user, "agent": agent}
    return render(
        request,
        "admin_delegations/index.html",
        wanted=wanted,
        query=query,
        now=clock.now(),
        **context,
    )


@router.get("/{delegation_id}/revocation")
async def ask_to_revoke(request: Request, person: Person, delegation_id: Id) -> HTMLResponse:
    """What revoking means."""
    context = await db.read(_one, person, delegation_id)
    return render(request, "admin_delegations/revoke.html", form=None, **context)


@router.post("/{delegation_id}/revocation")
async def revoke(request: Request, person: Person, delegation_id: Id) -> Response:
    """End it for good."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(NotUsableNow):
            await db.transaction(_revoke, person, delegation_id)
            return flash.see_other("/admin/delegations", REVOKED)
    context = await db.read(_one, person, delegation_id)
    return render(request, "admin_delegations/revoke.html", status_code=409, form=form, **context)


def _list(
    session: Session, person: Principal, wanted: DelegationsWanted, after: str
) -> dict[str, Any]:
    scope.require(session, person, READ)
    visible = scope.within(person, READ, Delegation)
    return {
        "page": directory.delegations(session, visible, wanted, after),
        "of_user": session.get(User, (person.tenant_id, wanted.user_id)),
        "of_agent": session.get(Agent, (person.tenant_id, wanted.agent_id)),
    }


def _one(session: Session, person: Principal, delegation_id: str) -> dict[str, Any]:
    delegation = scope.one(session, person, MANAGE, Delegation, delegation_id)
    return {
        "delegation": delegation,
        "user": users.one(session, person.tenant_id, delegation.user_id),
        "agent": agents.one(session, person.tenant_id, delegation.agent_id),
    }


def _revoke(work: Work, person: Principal, delegation_id: str) -> None:
    delegation = scope.one(work.session, person, MANAGE, Delegation, delegation_id)
    delegations.revoke(work, person, delegation)
