"""Groups: made, who is in them, what they are like; all by the methods that clients use as well."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session

from app.aun import conversations, identities, reading, rpc
from app.aun.caller import Caller
from app.aun.errors import BadParams
from app.aun.groups import settings
from app.aun.models import AID_LENGTH
from app.aun.reading import Opened
from app.console import flash, forms
from app.console.forms import Form
from app.console.names import Name
from app.console.params import Id, Search
from app.console.view import render
from app.identity.deps import Person
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.errors import Invalid, NotFound
from app.kernel.i18n import N_

router = APIRouter(prefix="/conversations")

MOST_OFFERED = 200
MANAGERS = frozenset({"owner", "admin"})
SAVED = flash.notice(N_("The group was changed."))
ADDED = flash.notice(N_("The member was added."))
REMOVED = flash.notice(N_("The member was removed."))
LEFT = flash.notice(N_("You left the group."))
DISSOLVED = flash.notice(N_("The group was dissolved."))
JOINED = flash.notice(N_("You are in the group."))
DECLINED = flash.notice(N_("The invitation was declined."))
CODE_MADE = flash.notice(N_("The invite code was made."))
CODE_ENDED = flash.notice(N_("The invite code works no more."))
DECIDED = flash.notice(N_("The request was answered."))

AidField = Annotated[str, Field(max_length=AID_LENGTH)]


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewGroup(_Sent):
    """A group to be made."""

    name: Name
    description: Annotated[str, Field(max_length=2_000)] = ""
    members: Annotated[list[AidField], Field(max_length=MOST_OFFERED)] = []


class Look(_Sent):
    """What a group is like."""

    name: Name
    description: Annotated[str, Field(max_length=2_000)] = ""
    visibility: Literal["public", "private"]
    join_mode: Literal["open", "approval", "invite_only", "closed"]
    question: Annotated[str, Field(max_length=500)] = ""
    mention_mode: Literal["disabled", "mention-only"]


class OfMember(_Sent):
    """Somebody."""

    aid: AidField


class NewRole(OfMember):
    """What a member is to be."""

    role: Literal["admin", "member"]


class Verdict(OfMember):
    """What becomes of a wish to join."""

    verdict: Literal["accept", "decline"]


class Answer(_Sent):
    """What somebody does with an invitation."""

    verdict: Literal["accept", "decline"]


class NewCode(_Sent):
    """How often a code works."""

    max_uses: Annotated[int, Field(ge=1, le=1_000)] = 1


class Code(_Sent):
    """An invite code."""

    code: Annotated[str, Field(max_length=200)]


class Nothing(_Sent):
    """A form of one button."""


@router.get("/new/group")
async def new(request: Request, person: Person) -> HTMLResponse:
    """Name it, and choose who is in it."""
    return await _making(request, person, forms.blank(NewGroup), forms.blank(Code))


@router.post("/groups")
async def create(request: Request, person: Person) -> Response:
    """Make a group of the chosen ones, and go there."""
    form = await forms.read(request, NewGroup)
    if form.data:
        with form.catching(BadParams, at="name"):
            caller = await db.read(identities.caller_of_user, person)
            params = form.data.model_dump()
            made = await rpc.invoke(caller, "group.create", params)
            return await _to_group(caller, made["group"]["group_id"])
    return await _making(request, person, form, forms.blank(Code), 422)


@router.post("/memberships")
async def join(request: Request, person: Person) -> Response:
    """Come into a group with a code somebody gave."""
    form = await forms.read(request, Code)
    if form.data:
        with form.catching(BadParams, at="code"):
            caller = await db.read(identities.caller_of_user, person)
            params = {"code": form.data.code.strip()}
            joined = await rpc.invoke(caller, "group.use_invite_code", params)
            return await _to_group(caller, joined["group_id"], JOINED)
    return await _making(request, person, forms.blank(NewGroup), form, 422)


@router.post("/invitations/{invite_id}")
async def answer(request: Request, person: Person, invite_id: Id) -> Response:
    """Take an invitation, or do not."""
    sent = await _read(request, Answer)
    caller = await db.read(identities.caller_of_user, person)
    params = {"invite_id": invite_id}
    if sent.verdict == "decline":
        await rpc.invoke(caller, "group.reject_invite", params)
        return flash.see_other("/conversations", DECLINED)
    joined = await rpc.invoke(caller, "group.accept_invite", params)
    return await _to_group(caller, joined["group_id"], JOINED)


@router.get("/{conversation_id}/members")
async def members(
    request: Request, person: Person, conversation_id: Id, q: Search = ""
) -> HTMLResponse:
    """Who is in a group; whoever may, adds and removes."""
    context = await db.read(_members, person, conversation_id, q)
    return render(
        request, "conversations/members.html", conversation_id=conversation_id, q=q, **context
    )


@router.post("/{conversation_id}/members")
async def add(request: Request, person: Person, conversation_id: Id) -> Response:
    """Add somebody."""
    sent = await _read(request, OfMember)
    await _invoke(person, conversation_id, "group.add_member", aid=sent.aid)
    return flash.see_other(f"/conversations/{conversation_id}/members", ADDED)


@router.post("/{conversation_id}/members/removal")
async def remove(request: Request, person: Person, conversation_id: Id) -> Response:
    """Remove a member."""
    sent = await _read(request, OfMember)
    await _invoke(person, conversation_id, "group.kick", aid=sent.aid)
    return flash.see_other(f"/conversations/{conversation_id}/members", REMOVED)


@router.post("/{conversation_id}/members/role")
async def change_role(request: Request, person: Person, conversation_id: Id) -> Response:
    """Make a member an administrator, or the other way round."""
    sent = await _read(request, NewRole)
    await _invoke(person, conversation_id, "group.set_role", aid=sent.aid, role=sent.role)
    return flash.see_other(f"/conversations/{conversation_id}/members", SAVED)


@router.get("/{conversation_id}/departure")
async def ask_leave(request: Request, person: Person, conversation_id: Id) -> HTMLResponse:
    """Whether one really wants to go."""
    _, opened = await db.read(_group, person, conversation_id)
    return render(
        request, "conversations/leave.html", conversation_id=conversation_id, opened=opened
    )


@router.post("/{conversation_id}/departure")
async def leave(request: Request, person: Person, conversation_id: Id) -> Response:
    """Go."""
    await _read(request, Nothing)
    await _invoke(person, conversation_id, "group.leave")
    return flash.see_other("/conversations", LEFT)


@router.get("/{conversation_id}/settings")
async def show_settings(request: Request, person: Person, conversation_id: Id) -> HTMLResponse:
    """What a group is like, who wants in, and which codes there are."""
    return await _settings(request, person, conversation_id)


@router.post("/{conversation_id}/settings")
async def change(request: Request, person: Person, conversation_id: Id) -> Response:
    """Change what a group is like."""
    form = await forms.read(request, Look)
    if form.data:
        with form.catching(BadParams):
            await _invoke(
                person, conversation_id, "group.set_settings", settings=_as_settings(form.data)
            )
            return flash.see_other(f"/conversations/{conversation_id}/settings", SAVED)
    return await _settings(request, person, conversation_id, form, 422)


@router.post("/{conversation_id}/join-requests")
async def review(request: Request, person: Person, conversation_id: Id) -> Response:
    """Let somebody in who asked, or do not."""
    sent = await _read(request, Verdict)
    is_in = sent.verdict == "accept"
    method = "group.review_join_request"
    await _invoke(person, conversation_id, method, aid=sent.aid, approve=is_in)
    return flash.see_other(f"/conversations/{conversation_id}/settings", DECIDED)


@router.post("/{conversation_id}/invite-codes")
async def make_code(request: Request, person: Person, conversation_id: Id) -> Response:
    """Make a code that lets its holders in."""
    sent = await _read(request, NewCode)
    await _invoke(person, conversation_id, "group.create_invite_code", max_uses=sent.max_uses)
    return flash.see_other(f"/conversations/{conversation_id}/settings#codes", CODE_MADE)


@router.post("/{conversation_id}/invite-codes/revocation")
async def end_code(request: Request, person: Person, conversation_id: Id) -> Response:
    """Let a code work no more."""
    sent = await _read(request, Code)
    await _invoke(person, conversation_id, "group.revoke_invite_code", code=sent.code)
    return flash.see_other(f"/conversations/{conversation_id}/settings#codes", CODE_ENDED)


@router.post("/{conversation_id}/owner")
async def hand_on(request: Request, person: Person, conversation_id: Id) -> Response:
    """Hand the group to another member."""
    sent = await _read(request, OfMember)
    await _invoke(person, conversation_id, "group.transfer_owner", new_owner=sent.aid)
    return flash.see_other(f"/conversations/{conversation_id}/members", SAVED)


@router.get("/{conversation_id}/dissolution")
async def ask_dissolve(request: Request, person: Person, conversation_id: Id) -> HTMLResponse:
    """Whether the group is really to end."""
    _, opened = await db.read(_group, person, conversation_id)
    return render(
        request, "conversations/dissolve.html", conversation_id=conversation_id, opened=opened
    )


@router.post("/{conversation_id}/dissolution")
async def dissolve(request: Request, person: Person, conversation_id: Id) -> Response:
    """End the group for good."""
    await _read(request, Nothing)
    await _invoke(person, conversation_id, "group.dissolve")
    return flash.see_other(f"/conversations/{conversation_id}", DISSOLVED)


async def _read(request: Request, model: type[forms.Model]) -> forms.Model:
    form = await forms.read(request, model)
    if form.data is None:
        raise Invalid(*form.errors)
    return form.data


async def _invoke(
    person: Principal, conversation_id: str, method: str, **params: Any
) -> Mapping[str, Any]:
    caller, opened = await db.read(_group, person, conversation_id)
    return await rpc.invoke(caller, method, {"group_id": opened.line.group_id, **params})


async def _to_group(caller: Caller, group_id: str, said: flash.Notice | None = None) -> Response:
    found = await db.read(conversations.id_of_group, caller.tenant_id, group_id)
    return flash.see_other(f"/conversations/{found}", said)


async def _making(
    request: Request,
    person: Principal,
    form: Form[NewGroup],
    code: Form[Code],
    status_code: int = 200,
) -> HTMLResponse:
    offered = await db.read(_offered, person)
    return render(
        request,
        "conversations/new_group.html",
        status_code=status_code,
        form=form,
        code=code,
        offered=offered,
    )


async def _settings(
    request: Request,
    person: Principal,
    conversation_id: str,
    form: Form[Look] | None = None,
    status_code: int = 200,
) -> HTMLResponse:
    caller, opened = await db.read(_group, person, conversation_id)
    group = opened.group
    assert group is not None  # noqa: S101 - `_group` gives groups alone
    is_manager = opened.roles.get(caller.aid) in MANAGERS and group.status != "dissolved"
    requests: Any = {"items": []}
    codes: Any = {"items": []}
    if is_manager:
        of_group = {"group_id": group.id}
        requests = await rpc.invoke(caller, "group.list_join_requests", of_group)
        codes = await rpc.invoke(caller, "group.list_invite_codes", of_group)
    wish_aids = [each["aid"] for each in requests["items"]]
    return render(
        request,
        "conversations/settings.html",
        status_code=status_code,
        conversation_id=conversation_id,
        opened=opened,
        own_aid=caller.aid,
        is_manager=is_manager,
        form=form or forms.blank(Look, **_as_look(group)),
        requests=requests["items"],
        names=await db.read(identities.display_names, caller.tenant_id, wish_aids),
        codes=[each for each in codes["items"] if each["status"] == "active"],
    )


def _as_look(group: Any) -> dict[str, str]:
    return {
        "name": group.name,
        "description": group.description,
        "visibility": group.visibility,
        "join_mode": group.join_mode,
        "question": settings.value(group, "join.question"),
        "mention_mode": group.mention_mode,
    }


def _as_settings(look: Look) -> dict[str, str]:
    return {
        "name": look.name,
        "description": look.description,
        "visibility": look.visibility,
        "join.mode": look.join_mode,
        "join.question": look.question,
        "mention_mode": look.mention_mode,
    }


def _offered(session: Session, person: Principal) -> list[tuple[str, str]]:
    caller = identities.caller_of_user(session, person)
    found = reading.parties(session, caller.tenant_id, caller.aid, limit=MOST_OFFERED)
    return [(each.aid, each.named.name) for each in found]


def _group(session: Session, person: Principal, conversation_id: str) -> tuple[Caller, Opened]:
    caller = identities.caller_of_user(session, person)
    opened = reading.opened(session, caller.tenant_id, caller.aid, conversation_id)
    if opened is None or opened.group is None:
        raise NotFound
    return caller, opened


def _members(session: Session, person: Principal, conversation_id: str, q: str) -> dict[str, Any]:
    caller, opened = _group(session, person, conversation_id)
    found = reading.parties(session, caller.tenant_id, caller.aid, q) if q else []
    return {
        "opened": opened,
        "own_aid": caller.aid,
        "own_role": opened.roles.get(caller.aid, ""),
        "found": [each for each in found if each.aid not in opened.roles],
    }
