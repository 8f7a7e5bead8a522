"""Methods about coming into a group: asked for, invited, or with a code."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field
from sqlmodel import Session

from app.aun import method
from app.aun.caller import Caller
from app.aun.errors import AunError, GroupNotFound
from app.aun.group_models import InviteStatus, JoinRequest, Member, RequestStatus, Role
from app.aun.groups import codes, invites, joining, membership
from app.aun.groups.refusals import BadCode, NoInvite
from app.aun.groups.told import both, code, invite, member, public, request, whole
from app.aun.methods.group import LONGEST_PAGE, PAGE, OfGroup
from app.aun.models import ID_LENGTH
from app.aun.names import Aid
from app.aun.wire import Params
from app.kernel.db import Work
from app.kernel.rates import Rates

MOST_REVIEWS = 100
_tries = Rates({"invite_code": "10/hour"})  # wrong ones, of one AID

Words = Annotated[str, Field(max_length=2_000)]
Number = Annotated[int, Field(ge=1)]


class Ask(OfGroup):
    """A wish to join."""

    message: Words = ""
    answer: Words = ""


class Requests(OfGroup):
    """Which wishes to list."""

    status: Literal["pending", "approved", "rejected"] = "pending"
    page: Number = 1
    size: Number = PAGE


class Decision(Params):
    """What becomes of one of them."""

    aid: Aid
    approve: bool = True
    reason: Annotated[str, Field(max_length=500)] = ""


class Review(OfGroup, Decision):
    """What becomes of one wish to join a group."""


class Reviews(OfGroup):
    """What becomes of several."""

    requests: Annotated[list[Decision], Field(max_length=MOST_REVIEWS)]


class MakeCode(OfGroup):
    """What a code is to be good for."""

    code: Annotated[str, Field(max_length=200)] | None = None
    max_uses: Annotated[int, Field(ge=1, le=codes.MOST_USES)] = 1
    expires_in_seconds: (
        Annotated[int, Field(ge=1, le=int(codes.LONGEST_LIFE.total_seconds()))] | None
    ) = None


class UseCode(Params):
    """A code somebody was given."""

    code: Annotated[str, Field(max_length=200)]


class OfCode(OfGroup):
    """A code of a group."""

    code: Annotated[str, Field(max_length=200)]


class Invitation(OfGroup):
    """Somebody to be invited."""

    aid: Aid = Field(validation_alias=AliasChoices("aid", "invitee_aid"))


class Mine(Params):
    """A page of invitations."""

    page: Number = 1
    size: Number = PAGE


class OfInvite(Params):
    """An invitation."""

    invite_id: Annotated[str, Field(max_length=ID_LENGTH)]


def request_join(work: Work, caller: Caller, params: Ask) -> dict[str, Any]:
    """Join at once, be asked a question, or wait."""
    found = membership.locked(work, caller, params.group_id)
    made = joining.ask(work, caller, found, params.message, params.answer)
    named = both(params.group_id)
    if isinstance(made, Member):
        group = whole(found.group)
        return {**named, "status": "joined", "group": group, "member": member(made)}
    if isinstance(made, JoinRequest):
        return {**named, "status": "pending", "request": request(made)}
    return {**named, "status": "question_required", "question": made}


def list_join_requests(session: Session, caller: Caller, params: Requests) -> dict[str, Any]:
    """Who wants to join."""
    found = membership.inside(session, caller, params.group_id)
    membership.need(found, Role.ADMIN)
    size = min(params.size, LONGEST_PAGE)
    page, total = joining.requests(
        session, found.group, RequestStatus(params.status), (params.page - 1) * size, size
    )
    items = [request(each) for each in page]
    return {
        **both(found.group.id),
        "items": items,
        "total": total,
        "page": params.page,
        "size": size,
    }


def review_join_request(work: Work, caller: Caller, params: Review) -> dict[str, Any]:
    """Let somebody in, or not."""
    found = membership.held(work, caller, params.group_id, needs=Role.ADMIN)
    decided = joining.review(
        work, caller, found.group, params.aid, approve=params.approve, reason=params.reason
    )
    return {
        **both(params.group_id),
        "status": decided.status,
        "request": request(decided),
        "group": whole(found.group),
    }


def batch_review_join_request(work: Work, caller: Caller, params: Reviews) -> dict[str, Any]:
    """Decide about several; what fails with one does not touch the others."""
    found = membership.held(work, caller, params.group_id, needs=Role.ADMIN)
    results: list[dict[str, Any]] = []
    for each in params.requests:
        try:
            decided = joining.review(
                work, caller, found.group, each.aid, approve=each.approve, reason=each.reason
            )
        except AunError as refused:  # raised before anything of it is written
            results.append({"aid": each.aid, "ok": False, "error": refused.text})
        else:
            told = {"status": decided.status, "request": request(decided)}
            results.append({"aid": each.aid, "ok": True} | told)
    done = sum(result["ok"] for result in results)
    return {
        **both(params.group_id),
        "results": results,
        "success_count": done,
        "fail_count": len(results) - done,
    }


def create_invite_code(work: Work, caller: Caller, params: MakeCode) -> dict[str, Any]:
    """Make a code that lets its holders in."""
    found = membership.held(work, caller, params.group_id, needs=Role.ADMIN)
    seconds = params.expires_in_seconds
    lives = timedelta(seconds=seconds) if seconds else codes.LIVES
    made, text = codes.make(work, caller, found.group, params.code, params.max_uses, lives)
    return {**both(params.group_id), "invite_code": code(made, text)}


def list_invite_codes(session: Session, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """The codes of a group, for its administrators."""
    found = membership.inside(session, caller, params.group_id)
    membership.need(found, Role.ADMIN)
    items = [code(each, text) for each, text in codes.of_group(session, found.group)]
    return {**both(found.group.id), "items": items, "invite_codes": items, "total": len(items)}


async def _not_guessing(caller: Caller, params: UseCode) -> UseCode:
    """Return while the caller has tries left; a right one costs none.

    Raises:
        TooMany: ten wrong ones within the hour.
    """
    if _tries.is_full("invite_code", caller.tenant_id, caller.aid):
        _tries.hit("invite_code", caller.tenant_id, caller.aid)
    return params


def use_invite_code(work: Work, caller: Caller, params: UseCode) -> dict[str, Any]:
    """Come in with a code."""
    try:
        found = codes.good(work, caller.tenant_id, params.code)
    except BadCode:
        _tries.hit("invite_code", caller.tenant_id, caller.aid)  # ends the unit: counted once
        raise
    group = membership.row(work, caller.tenant_id, found.group_id)
    if group is None:
        raise GroupNotFound
    membership.need_admitting(group)
    work.session.refresh(found)
    if found.revoked_at is not None or found.used_count >= found.max_uses:
        raise BadCode
    codes.use(work, found)
    made = joining.let_in(work, caller, group, caller.aid, "invite_code_used")
    return {
        **both(group.id),
        "status": "joined",
        "group": whole(group),
        "member": member(made),
        "invite_code": code(found, codes.text_of(found)),
    }


def revoke_invite_code(work: Work, caller: Caller, params: OfCode) -> dict[str, Any]:
    """Let a code work no more."""
    found = membership.held(work, caller, params.group_id, needs=Role.ADMIN)
    ended, text = codes.revoke(work, caller, found.group, params.code)
    return {**both(params.group_id), "status": "revoked", "invite_code": code(ended, text)}


def invite_member(work: Work, caller: Caller, params: Invitation) -> dict[str, Any]:
    """Invite somebody; whoever else invites them shares the invitation."""
    found = membership.held(work, caller, params.group_id)
    made = invites.invite(work, caller, found, params.aid)
    return invite(made, found.group)


def list_my_invites(session: Session, caller: Caller, params: Mine) -> dict[str, Any]:
    """The caller's invitations that wait."""
    size = min(params.size, LONGEST_PAGE)
    start = (params.page - 1) * size
    page, total = invites.of_invitee(session, caller, start, size)
    items = [invite(each, group) for each, group in page]
    return {
        "items": items,
        "invites": items,
        "total": total,
        "page": params.page,
        "size": size,
        "has_more": start + len(items) < total,
    }


def accept_invite(work: Work, caller: Caller, params: OfInvite) -> dict[str, Any]:
    """Come in by an invitation."""
    found = invites.one(work.session, caller, params.invite_id)
    group = membership.row(work, caller.tenant_id, found.group_id)
    if group is None or found.invitee_aid != caller.aid:
        raise NoInvite
    work.session.refresh(found)
    if found.status == InviteStatus.PENDING:
        membership.need_admitting(group)
    invites.end(work, found, InviteStatus.ACCEPTED)
    made = joining.let_in(work, caller, group, caller.aid, "joined")
    return invite(found, group) | {"group": whole(group), "member": member(made)}


def reject_invite(work: Work, caller: Caller, params: OfInvite) -> dict[str, Any]:
    """Turn an invitation down."""
    found = invites.one(work.session, caller, params.invite_id)
    group = membership.row(work, caller.tenant_id, found.group_id)
    if group is None or found.invitee_aid != caller.aid:
        raise NoInvite
    work.session.refresh(found)
    invites.end(work, found, InviteStatus.REJECTED)
    return invite(found, group) | {"group": public(group)}


def revoke_invite(work: Work, caller: Caller, params: OfInvite) -> dict[str, Any]:
    """Take back an invitation one made."""
    found = invites.one(work.session, caller, params.invite_id)
    membership.row(work, caller.tenant_id, found.group_id)
    work.session.refresh(found)
    if caller.aid not in found.inviter_aids:
        raise NoInvite
    invites.withdraw(work, caller, found)
    return invite(found)


WRITES = {
    "group.request_join": method.write(request_join),
    "group.review_join_request": method.write(review_join_request),
    "group.batch_review_join_request": method.write(batch_review_join_request),
    "group.create_invite_code": method.write(create_invite_code),
    "group.use_invite_code": method.write(use_invite_code, prepare=_not_guessing),
    "group.revoke_invite_code": method.write(revoke_invite_code),
    "group.invite_member": method.write(invite_member),
    "group.accept_invite": method.write(accept_invite),
    "group.reject_invite": method.write(reject_invite),
    "group.revoke_invite": method.write(revoke_invite),
}
READS = {
    "group.list_join_requests": method.read(list_join_requests),
    "group.list_invite_codes": method.read(list_invite_codes),
    "group.list_my_invites": method.read(list_my_invites),
}
