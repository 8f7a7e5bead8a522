"""/admin/users: who is here, and who may sign in."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlmodel import Session

from app.access import scope
from app.console import flash, forms
from app.console.forms import Form
from app.console.names import Name
from app.console.nav import NavItem
from app.console.params import ChosenId, Cursor, FormId, Id, Search
from app.console.view import render, url
from app.identity import delegations, directory, links, orgs, roles, sessions, standing, users
from app.identity.deps import FreshPerson, Person
from app.identity.directory import Listed, PeopleWanted
from app.identity.errors import BeyondYourRights, LastOwner, NotUsableNow
from app.identity.models import (
    Agent,
    BrowserSession,
    Delegation,
    LinkPurpose,
    Org,
    Role,
    RoleAssignment,
    User,
    UserStatus,
)
from app.identity.paging import Page
from app.identity.principal import Principal
from app.kernel import clock, db, settings
from app.kernel.db import Work
from app.kernel.errors import Conflict
from app.kernel.i18n import N_

READ, MANAGE, ROLES = "identity.user.read", "identity.user.manage", "identity.role.manage"

router = APIRouter(prefix="/admin/users")
NAV = NavItem(
    N_("People"),
    "/admin/users",
    "users",
    "administration",
    (MANAGE, "identity.role.read"),  # everybody may read their own entry
    order=10,
)
CHANGED = flash.notice(N_("The changes were saved."))
DISABLED = flash.notice(N_("The account was disabled. Everything that acted for it has stopped."))
ENABLED = flash.notice(N_("The account is active again. Nothing that had ended came back."))
SIGNED_OUT = flash.notice(N_("All sessions of this person were ended."))

Sort = Literal["name", "-name", "login", "-login", "since", "-since"]


def _email(text: str) -> str:
    name, at, host = text.strip().rpartition("@")
    if not (name and at and "." in host) or any(char.isspace() for char in text.strip()):
        raise ValueError(N_("Write an e-mail address, such as name@example.com."))
    return text.strip()


Email = Annotated[str, Field(max_length=254), AfterValidator(_email)]


class NewUser(BaseModel):
    """Whom to invite."""

    model_config = ConfigDict(extra="forbid")

    display_name: Name
    login: Annotated[str, Field(max_length=100)]
    email: Email | None = None
    org_id: FormId
    role_id: FormId | None = None


class Change(BaseModel):
    """What an administrator changes of a person."""

    model_config = ConfigDict(extra="forbid")

    display_name: Name
    email: Email | None = None
    org_id: FormId
    version: int


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Listing:
    """The list with what it can be filtered by."""

    page: Page[Listed]
    orgs: list[Org]
    roles: list[Role]


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything the page of a person shows."""

    user: User
    org: Org
    assignments: list[tuple[RoleAssignment, Role, Org]]
    sessions: list[BrowserSession]
    delegations: list[tuple[Delegation, Agent]]
    may_manage: bool
    may_assign: bool
    may_revoke: bool

    @property
    def live_delegations(self) -> list[tuple[Delegation, Agent]]:
        """What agents may do for them now."""
        now = clock.now()
        return [pair for pair in self.delegations if delegations.is_usable(pair[0], now)]


@dataclass(frozen=True, slots=True)
class Link:
    """A one-time link, shown once."""

    user: User
    purpose: LinkPurpose
    secret: str

    @property
    def address(self) -> str:
        """What to send to the person."""
        return f"{settings.current().origin}/{self.purpose}/{self.secret}"


@router.get("")
async def index(
    request: Request,
    person: Person,
    q: Search = "",
    status: UserStatus | Literal[""] = "",
    org: ChosenId = "",
    role: ChosenId = "",
    sort: Sort = "name",
    after: Cursor = "",
) -> HTMLResponse:
    """People the viewer may see."""
    wanted = PeopleWanted(q=q, status=status or None, org_id=org, role_id=role, sort=sort)
    listing = await db.read(_list, person, wanted, after)
    return render(
        request,
        "admin_users/index.html",
        listing=listing,
        wanted=wanted,
        query={"q": q, "status": status, "org": org, "role": role, "sort": sort},
    )


@router.get("/new")
async def new(
    request: Request, person: FreshPerson, org: Annotated[str, Query(max_length=26)] = ""
) -> HTMLResponse:
    """The form that invites somebody."""
    choices = await db.read(_choices, person, MANAGE)
    preset = org or choices["root_id"]
    form = forms.blank(NewUser, org_id=preset, role_id=choices["member_id"])
    return render(request, "admin_users/new.html", form=form, **choices)


@router.post("")
async def create(request: Request, person: FreshPerson) -> Response:
    """Make the account, and show its link once."""
    form = await forms.read(request, NewUser)
    if form.data:
        with form.catching(BeyondYourRights, at="role_id"):
            link = await db.transaction(_invite, person, form.data)
            return _shown_once(request, link)
    choices = await db.read(_choices, person, MANAGE)
    return render(request, "admin_users/new.html", status_code=422, form=form, **choices)


@router.get("/{user_id}")
async def show(request: Request, person: Person, user_id: Id) -> HTMLResponse:
    """One person."""
    profile = await db.read(_profile, person, user_id)
    return render(
        request, "admin_users/show.html", profile=profile, user=profile.user, now=clock.now()
    )


@router.get("/{user_id}/edit")
async def edit(request: Request, person: FreshPerson, user_id: Id) -> HTMLResponse:
    """The form that changes a person."""
    user = await db.read(scope.one, person, MANAGE, User, user_id)
    return await _edit_page(request, person, user, _typed(user))


@router.post("/{user_id}")
async def change(request: Request, person: FreshPerson, user_id: Id) -> Response:
    """Keep what was changed."""
    form = await forms.read(request, Change)
    if form.data:
        with form.catching(Conflict):
            await db.transaction(_change, person, user_id, form.data)
            return flash.see_other(_path(user_id), CHANGED)
    user = await db.read(scope.one, person, MANAGE, User, user_id)
    return await _edit_page(request, person, user, form, status_code=422)


@router.get("/{user_id}/deactivation")
async def ask_to_disable(request: Request, person: FreshPerson, user_id: Id) -> HTMLResponse:
    """What will stop when this person is disabled."""
    return await _ask(request, person, user_id, "admin_users/disable.html")


@router.post("/{user_id}/deactivation")
async def disable(request: Request, person: FreshPerson, user_id: Id) -> Response:
    """Stop the person and everything that acts for them."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(LastOwner, NotUsableNow):
            await db.transaction(_disable, person, user_id)
            return flash.see_other(_path(user_id), DISABLED)
    return await _ask(request, person, user_id, "admin_users/disable.html", form)


@router.get("/{user_id}/activation")
async def ask_to_enable(request: Request, person: FreshPerson, user_id: Id) -> HTMLResponse:
    """What comes back, and what does not."""
    return await _ask(request, person, user_id, "admin_users/enable.html")


@router.post("/{user_id}/activation")
async def enable(request: Request, person: FreshPerson, user_id: Id) -> Response:
    """Let the person sign in again."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(NotUsableNow):
            await db.transaction(_enable, person, user_id)
            return flash.see_other(_path(user_id), ENABLED)
    return await _ask(request, person, user_id, "admin_users/enable.html", form)


@router.get("/{user_id}/link")
async def ask_for_link(request: Request, person: FreshPerson, user_id: Id) -> HTMLResponse:
    """Which link it would be: an invitation, or the reset of a password."""
    return await _ask(request, person, user_id, "admin_users/link.html")


@router.post("/{user_id}/link")
async def make_link(request: Request, person: FreshPerson, user_id: Id) -> Response:
    """Make the link, and show it once."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(BeyondYourRights, NotUsableNow):
            return _shown_once(request, await db.transaction(_make_link, person, user_id))
    return await _ask(request, person, user_id, "admin_users/link.html", form)


@router.get("/{user_id}/sign-out")
async def ask_to_sign_out(request: Request, person: FreshPerson, user_id: Id) -> HTMLResponse:
    """How many sessions would end."""
    return await _ask(request, person, user_id, "admin_users/sign_out.html")


@router.post("/{user_id}/sign-out")
async def sign_out(request: Request, person: FreshPerson, user_id: Id) -> Response:
    """End every session of the person."""
    await db.transaction(_sign_out, person, user_id)
    return flash.see_other(_path(user_id), SIGNED_OUT)


def _list(session: Session, person: Principal, wanted: PeopleWanted, after: str) -> Listing:
    scope.require(session, person, READ)
    visible = scope.within(person, READ, User)
    return Listing(
        directory.people(session, visible, wanted, after),
        list(orgs.tree(session, person.tenant_id)),
        list(roles.of_tenant(session, person.tenant_id)),
    )


def _choices(session: Session, person: Principal, permission: str) -> dict[str, Any]:
    scope.require(session, person, permission)
    within = {org.id for org in scope.reachable(session, person, permission, Org)}
    tree = [org for org in orgs.tree(session, person.tenant_id) if org.id in within]
    held = roles.of_tenant(session, person.tenant_id)
    member = next((role.id for role in held if role.code == "member"), "")
    return {
        "orgs": [org for org in tree if org.status == "active"],
        "roles": held if scope.may(session, person, ROLES) else [],
        "root_id": tree[0].id if tree else "",
        "member_id": member,
    }


def _invite(work: Work, person: Principal, new: NewUser) -> Link:
    session = work.session
    org = scope.one(session, person, MANAGE, Org, new.org_id)
    user = users.create(
        work, person, org, login=new.login, display_name=new.display_name, email=new.email
    )
    if new.role_id:
        role = scope.one(session, person, ROLES, Role, new.role_id)
        held = scope.tenant_wide_permissions(session, person)
        roles.assign(work, person, user, role, org, held=held)
    return Link(user, LinkPurpose.INVITE, links.make(work, person, user, LinkPurpose.INVITE))


def _profile(session: Session, person: Principal, user_id: str) -> Profile:
    user = scope.one(session, person, READ, User, user_id)
    return Profile(
        user,
        orgs.one(session, user.tenant_id, user.org_id),
        list(roles.assignments_of(session, user)),
        list(sessions.of_user(session, user.tenant_id, user.id)),
        list(delegations.of_user(session, user.tenant_id, user.id)),
        may_manage=scope.reached(session, person, MANAGE, User, user.id),
        may_assign=scope.reached(session, person, ROLES, User, user.id),
        may_revoke=scope.reached(session, person, "identity.delegation.manage", User, user.id),
    )


def _change(work: Work, person: Principal, user_id: str, change: Change) -> None:
    user = scope.one(work.session, person, MANAGE, User, user_id)
    stays = change.org_id == user.org_id
    org = (
        orgs.one(work.session, user.tenant_id, user.org_id)
        if stays
        else scope.one(work.session, person, MANAGE, Org, change.org_id)
    )
    users.change(
        work,
        person,
        user,
        display_name=change.display_name,
        email=change.email,
        org=org,
        expected_version=change.version,
    )


def _disable(work: Work, person: Principal, user_id: str) -> None:
    users.disable(work, person, scope.one(work.session, person, MANAGE, User, user_id))


def _enable(work: Work, person: Principal, user_id: str) -> None:
    users.enable(work, person, scope.one(work.session, person, MANAGE, User, user_id))


def _make_link(work: Work, person: Principal, user_id: str) -> Link:
    user = scope.one(work.session, person, MANAGE, User, user_id)
    standing.check_is_within(
        work.session,
        user,
        scope.permissions_of(work.session, person),
        scope.tenant_wide_permissions(work.session, person),
    )
    invited = user.status == UserStatus.INVITED
    purpose = LinkPurpose.INVITE if invited else LinkPurpose.RESET
    return Link(user, purpose, links.make(work, person, user, purpose))


def _sign_out(work: Work, person: Principal, user_id: str) -> None:
    user = scope.one(work.session, person, MANAGE, User, user_id)
    own = person.session_id if user.id == person.user_id else None
    sessions.end_all(work, person, user, "ended_by_administrator", besides=own)


def _typed(user: User) -> Form[Change]:
    return forms.blank(
        Change,
        display_name=user.display_name,
        email=user.email or "",
        org_id=user.org_id,
        version=user.version,
    )


async def _edit_page(
    request: Request, person: Principal, user: User, form: Form[Change], status_code: int = 200
) -> HTMLResponse:
    choices = await db.read(_choices, person, MANAGE)
    org_names = {org.id: org.name for org in choices["orgs"]}
    theirs = []
    if form.data and form.data.version != user.version:  # somebody else was faster
        theirs = [
            (N_("Name"), user.display_name, form.data.display_name),
            (N_("E-mail"), user.email or "", form.data.email or ""),
            (N_("Organisation"), *map(org_names.get, (user.org_id, form.data.org_id))),
        ]
        form.typed["version"] = [str(user.version)]
    return render(
        request,
        "admin_users/edit.html",
        status_code=status_code,
        form=form,
        user=user,
        theirs=[each for each in theirs if each[1] != each[2]],
        **choices,
    )


async def _ask(
    request: Request,
    person: Principal,
    user_id: str,
    template: str,
    form: Form[Nothing] | None = None,
) -> HTMLResponse:
    await db.read(scope.one, person, MANAGE, User, user_id)
    profile = await db.read(_profile, person, user_id)
    status = 409 if form else 200
    return render(
        request, template, status_code=status, form=form, profile=profile, user=profile.user
    )


def _shown_once(request: Request, link: Link) -> HTMLResponse:
    return render(request, "admin_users/link_made.html", status_code=201, link=link, user=link.user)


def _path(user_id: str) -> str:
    return url(f"/admin/users/{user_id}")
