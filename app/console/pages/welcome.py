"""/ and /welcome: where a session begins, with the next steps that are still to take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from sqlmodel import Session, select

from app.aun import reading
from app.commands import catalogue, registry
from app.console.nav import NavItem
from app.console.view import render
from app.identity import delegations, users, ways_in
from app.identity.deps import Person
from app.identity.models import Agent, AgentKind, AgentStatus, Delegation, User
from app.identity.principal import Principal, Scope
from app.kernel import clock, db
from app.kernel.i18n import N_, language
from app.runs.run_models import Run

router = APIRouter()
NAV = NavItem(N_("Start"), "/welcome", "home", "workspace", order=0)

MOST = 3  # requests to try


@dataclass(frozen=True, slots=True)
class Asked:
    """An agent, and requests that it would understand."""

    agent: Agent
    texts: tuple[str, ...]


@router.get("/")
async def start(person: Person) -> Response:
    """The conversation in which something was said last, or the start page."""
    last = await db.read(_last_conversation, person)
    return RedirectResponse(f"/conversations/{last}" if last else "/welcome", status_code=303)


@router.get("/welcome")
async def welcome(request: Request, person: Person) -> Response:
    """The page."""
    return render(request, "welcome/page.html", **await db.read(_steps, person))


def _last_conversation(session: Session, person: Principal) -> str | None:
    user = users.one(session, person.tenant_id, person.user_id)
    return reading.last(session, person.tenant_id, user.aid) if user.aid else None


def _steps(session: Session, person: Principal) -> Mapping[str, Any]:
    """Whether there is a passkey, somebody else in the tenant, and an agent that acts."""
    user = users.one(session, person.tenant_id, person.user_id)
    others = select(User.id).where(User.tenant_id == person.tenant_id, User.id != person.user_id)
    given = delegations.of_user(session, person.tenant_id, person.user_id)
    return {
        "has_passkey": bool(ways_in.passkeys(session, user)),
        "has_company": session.exec(others).first() is not None,
        "has_agent": bool(given),
        "asked": _asked(session, person, given),
        "has_asked": _has_asked(session, person),
    }


def _asked(
    session: Session, person: Principal, given: Sequence[tuple[Delegation, Agent]]
) -> Asked | None:
    """An agent that may act for the person, the one that may most, and what to ask it for."""
    able = [
        (len(row.scopes), agent)
        for row, agent in given
        if agent.kind == AgentKind.HOSTED
        and agent.status == AgentStatus.PUBLISHED
        and agent.aid
        and Scope.COMMANDS_INVOKE in row.scopes
        and row.paused_at is None
        and delegations.is_usable(row, clock.now())
    ]
    if not able:
        return None
    agent = max(able, key=lambda each: each[0])[1]
    seen = catalogue.of(session, person)
    texts = [
        text.in_(language())
        for pack in registry.packs()
        for code, text in pack.samples.items()
        if seen.find(code) is not None
    ]
    return Asked(agent, tuple(texts[:MOST]))


def _has_asked(session: Session, person: Principal) -> bool:
    query = select(Run.id).where(Run.tenant_id == person.tenant_id, Run.user_id == person.user_id)
    return session.exec(query.limit(1)).first() is not None
