"""/settings/delegations: which agents may act for me, how far, and until when."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import and_, exists, or_
from sqlmodel import Session, col, select

from app.access import scope
from app.console import flash, forms, zoned
from app.console.forms import Form
from app.console.pages.oauth import KNOWN_BY
from app.console.params import Cursor, Id
from app.console.view import render
from app.console.zoned import Moment
from app.identity import delegations, directory, users
from app.identity.deps import Person
from app.identity.directory import AgentsWanted, ListedAgent
from app.identity.models import (
    Agent,
    AgentKind,
    AgentStatus,
    ClientSource,
    Delegation,
    OAuthClient,
    TokenFamily,
)
from app.identity.oauth.consent import WORDS
from app.identity.paging import Page
from app.identity.principal import Principal, Scope
from app.kernel import clock, db, ids
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_

router = APIRouter(prefix="/settings/delegations")

HERE = "/settings/delegations"
BY_USER = "by_user"
FIND = "identity.agent.read"
GIVEN = [each for each in Scope if each != Scope.OFFLINE_ACCESS]  # that one is of applications
MADE = flash.notice(N_("The agent can act for you now, as far as you let it."))
PAUSED = flash.notice(N_("The agent is paused. It can do nothing until you let it go on."))
RESUMED = flash.notice(N_("The agent can go on."))
NARROWED = flash.notice(N_("What the agent may do was changed."))
REVOKED = flash.notice(N_("The agent can no longer act for you."))


class Narrowed(BaseModel):
    """Which of its scopes a delegation keeps."""

    model_config = ConfigDict(extra="forbid")

    scopes: Annotated[list[str], Field(min_length=1)]


class Given(BaseModel):
    """What a person lets an agent of theirs do."""

    model_config = ConfigDict(extra="forbid")

    agent_id: str
    scopes: Annotated[list[str], Field(min_length=1, validate_default=True)] = []
    expires_at: Moment | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A delegation with its agent, how it stands, and the applications that use it.

    Two agents may have one name; `known_by` says what this one is.
    """

    row: Delegation
    agent: Agent
    known_by: str
    state: str
    applications: list[tuple[str, datetime | None]]

    @property
    def scopes(self) -> list[tuple[str, str]]:
        """Code and words of what it allows, in the order of the words."""
        return [(each.value, WORDS[each]) for each in Scope if each in self.row.scopes]

    @property
    def may_get_more(self) -> bool:
        """Whether there is more that its person could let it do, of their own accord."""
        is_here = self.agent.kind == AgentKind.HOSTED and self.state in {"on", "paused"}
        return is_here and not set(GIVEN) <= set(self.row.scopes)


@dataclass(frozen=True, slots=True)
class Offer:
    """An agent a person can let act for them, and what they let it do already."""

    agent: Agent
    admin_name: str
    row: Delegation | None

    @property
    def held(self) -> list[str]:
        """Words of what it may do already."""
        return [WORDS[each] for each in Scope if self.row and each in self.row.scopes]

    @property
    def scopes(self) -> list[tuple[str, str]]:
        """Code and words of what can be given to it still."""
        held = self.row.scopes if self.row else []
        return [(each.value, WORDS[each]) for each in GIVEN if each not in held]


@router.get("")
async def show(request: Request, person: Person, after: Cursor = "") -> Response:
    """The page: those that stand, agents to choose from, and those that ended."""
    shown = await db.read(_all, person)
    return render(
        request,
        "settings/delegations.html",
        standing=[each for each in shown if each.state != "ended"],
        ended=[each for each in shown if each.state == "ended"],
        offered=await db.read(_offered, person, after),
    )


@router.get("/new")
async def new(request: Request, person: Person, agent: str = "") -> Response:
    """The question whether an agent may act for oneself; or the page of one that may do it all."""
    offer = await db.read(_offer, person, agent)
    if offer.row and not offer.scopes:
        return flash.see_other(f"{HERE}/{offer.row.id}")
    until = zoned.typed(offer.row.expires_at) if offer.row else ""
    return _draw_new(request, forms.blank(Given, expires_at=until), offer)


@router.post("")
async def make(request: Request, person: Person) -> Response:
    """Let an agent act for oneself; one that does already may do more then."""
    form = await forms.read(request, Given)
    agent_id = form.value("agent_id")
    if form.data:
        with form.catching():
            await db.transaction(_make, person, form.data)
            return flash.see_other(HERE, MADE)
    offer = await db.read(_offer, person, agent_id)
    return _draw_new(request, form, offer, status_code=422)


@router.get("/{delegation_id}")
async def one(request: Request, person: Person, delegation_id: Id) -> Response:
    """One delegation, to be narrowed or revoked."""
    shown = await db.read(_one, person, delegation_id)
    return _draw(request, forms.blank(Narrowed, scopes=shown.row.scopes), shown)


@router.post("/{delegation_id}")
async def narrow(request: Request, person: Person, delegation_id: Id) -> Response:
    """Keep fewer scopes; more can only be had by asking again."""
    form = await forms.read(request, Narrowed)
    if form.data:
        with form.catching():
            await db.transaction(_narrow, person, delegation_id, form.data.scopes)
            return flash.see_other(f"{HERE}/{delegation_id}", NARROWED)
    return _draw(request, form, await db.read(_one, person, delegation_id), status_code=422)


@router.post("/{delegation_id}/pause")
async def pause(person: Person, delegation_id: Id) -> Response:
    """Hold an agent back; stopping one needs no confirmation."""
    await db.transaction(_pause, person, delegation_id)
    return flash.see_other(HERE, PAUSED)


@router.post("/{delegation_id}/resumption")
async def resume(person: Person, delegation_id: Id) -> Response:
    """Let a paused agent go on."""
    await db.transaction(_resume, person, delegation_id)
    return flash.see_other(HERE, RESUMED)


@router.get("/{delegation_id}/revocation")
async def ask_revoke(request: Request, person: Person, delegation_id: Id) -> Response:
    """Ask before a delegation ends for good."""
    shown = await db.read(_one, person, delegation_id)
    return render(request, "settings/revoke.html", shown=shown)


@router.post("/{delegation_id}/revocation")
async def revoke(person: Person, delegation_id: Id) -> Response:
    """End a delegation, and the tokens that came of it."""
    await db.transaction(_revoke, person, delegation_id)
    return flash.see_other(HERE, REVOKED)


def _all(session: Session, person: Principal) -> list[Shown]:
    applications = _applications(session, person)
    found = delegations.of_user(session, person.tenant_id, person.user_id)
    known_by = _known_by(session, [agent for _, agent in found])
    return [
        Shown(row, agent, known_by[agent.id], _state(row, agent), applications[row.id])
        for row, agent in found
    ]


def _one(session: Session, person: Principal, delegation_id: str) -> Shown:
    row = delegations.own(session, person, delegation_id)
    agent = session.get_one(Agent, (row.tenant_id, row.agent_id))
    known_by = _known_by(session, [agent])[agent.id]
    return Shown(row, agent, known_by, _state(row, agent), _applications(session, person)[row.id])


def _offered(session: Session, person: Principal, after: str) -> Page[ListedAgent]:
    """Hosted agents that do not act for the person, by name."""
    acts = exists(
        select(Delegation.id).where(
            Delegation.tenant_id == person.tenant_id,
            Delegation.user_id == person.user_id,
            Delegation.agent_id == Agent.id,
            col(Delegation.revoked_at).is_(None),
            or_(col(Delegation.expires_at).is_(None), col(Delegation.expires_at) > clock.now()),
        )
    )
    visible = and_(scope.within(person, FIND, Agent), ~acts)
    wanted = AgentsWanted(kind=AgentKind.HOSTED, status=AgentStatus.PUBLISHED)
    return directory.agents(session, visible, wanted, after)


def _offer(session: Session, person: Principal, agent_id: str) -> Offer:
    agent = _published(session, person, agent_id)
    row = delegations.live(session, person.tenant_id, person.user_id, agent.id)
    if row is not None and not delegations.is_usable(row, clock.now()):
        row = None
    admin = users.one(session, agent.tenant_id, agent.admin_user_id)
    return Offer(agent, admin.display_name, row)


def _published(session: Session, person: Principal, agent_id: str) -> Agent:
    if not ids.is_ulid(agent_id):
        raise NotFound
    agent = scope.one(session, person, FIND, Agent, agent_id)
    if agent.kind != AgentKind.HOSTED or agent.status != AgentStatus.PUBLISHED:
        raise NotFound  # an outside application asks by itself; a draft is nobody's yet
    return agent


def _make(work: Work, person: Principal, given: Given) -> None:
    agent = _published(work.session, person, given.agent_id)
    if not set(given.scopes) <= set(GIVEN):
        raise Invalid(FieldError("scopes", N_("Choose one of the offered values.")))
    if given.expires_at is not None and given.expires_at <= clock.now():
        raise Invalid(FieldError("expires_at", N_("This moment has passed already.")))
    delegations.make_or_widen(work, person, agent, given.scopes, given.expires_at)


def _applications(
    session: Session, person: Principal
) -> dict[str, list[tuple[str, datetime | None]]]:
    """By delegation: the name of each application with live tokens, and when it used them last."""
    query = (
        select(TokenFamily.delegation_id, OAuthClient.name, TokenFamily.last_used_at)
        .where(TokenFamily.client_id == OAuthClient.id)
        .where(TokenFamily.tenant_id == person.tenant_id, TokenFamily.user_id == person.user_id)
        .where(col(TokenFamily.revoked_at).is_(None), TokenFamily.ends_at > clock.now())
        .order_by(col(TokenFamily.last_used_at).desc())
    )
    found: dict[str, dict[str, datetime | None]] = defaultdict(dict)
    for delegation_id, name, used_at in session.exec(query):
        found[delegation_id].setdefault(name, used_at)
    return defaultdict(list, {id_: list(names.items()) for id_, names in found.items()})


def _known_by(session: Session, agents: Sequence[Agent]) -> dict[str, str]:
    """By the id of an agent: what it is, in words."""
    wanted = {agent.client_id for agent in agents if agent.client_id}
    clients = select(OAuthClient.id, OAuthClient.source).where(col(OAuthClient.id).in_(wanted))
    sources = {id_: ClientSource(source) for id_, source in session.exec(clients)}
    return {
        agent.id: KNOWN_BY[sources.get(agent.client_id or "", ClientSource.HOSTED)]
        for agent in agents
    }


def _state(row: Delegation, agent: Agent) -> str:
    if not delegations.is_usable(row, clock.now()):
        return "ended"
    if agent.status != AgentStatus.PUBLISHED:
        return "agent_off"
    return "paused" if row.paused_at else "on"


def _narrow(work: Work, person: Principal, delegation_id: str, scopes: list[str]) -> None:
    row = delegations.own(work.session, person, delegation_id)
    if not set(scopes) <= set(row.scopes):
        raise Invalid(FieldError("scopes", N_("You can take something away here, not add to it.")))
    delegations.set_scopes(work, person, row, scopes)


def _pause(work: Work, person: Principal, delegation_id: str) -> None:
    row = delegations.own(work.session, person, delegation_id)
    delegations.pause(work, person, row, BY_USER)


def _resume(work: Work, person: Principal, delegation_id: str) -> None:
    delegations.resume(work, person, delegations.own(work.session, person, delegation_id))


def _revoke(work: Work, person: Principal, delegation_id: str) -> None:
    delegations.revoke(work, person, delegations.own(work.session, person, delegation_id))


def _draw(
    request: Request, form: Form[Narrowed], shown: Shown, *, status_code: int = 200
) -> Response:
    return render(
        request, "settings/delegation.html", status_code=status_code, form=form, shown=shown
    )


def _draw_new(
    request: Request, form: Form[Given], offer: Offer, *, status_code: int = 200
) -> Response:
    return render(
        request, "settings/new_delegation.html", status_code=status_code, form=form, offer=offer
    )
