"""Methods of groups themselves: made, found, changed, suspended, handed on, dissolved."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field
from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, or_, select

from app.aun import method
from app.aun.caller import Caller
from app.aun.errors import BadParams
from app.aun.group_models import Group, GroupStatus, Member, Role, Visibility
from app.aun.groups import changes, invites, making, membership, roster, settings, transfer
from app.aun.groups.told import both, ms, public, whole
from app.aun.groups.transfer import Consent
from app.aun.models import ID_LENGTH
from app.aun.names import GROUP_NAME, Aid, GroupId, Shown
from app.aun.wire import Params
from app.kernel import json
from app.kernel.db import Work

PAGE, LONGEST_PAGE = 50, 200
LARGEST_DETAILS = 16_000  # bytes as JSON
MOST_AT_FIRST = 200  # members named in the making

Text = Annotated[str, Field(max_length=2_000)]
Size = Annotated[int, Field(ge=1)]
Details = dict[str, Any]


class OfGroup(Params):
    """A call about one group, by either of its names."""

    group_id: GroupId = Field(validation_alias=AliasChoices("group_id", "group_aid"))


class Create(Params):
    """What a new group is like."""

    name: Shown
    group_name: str | None = None
    public_key: str | None = None
    curve: str = making.CURVE
    visibility: Literal["public", "private"] = "private"
    description: Text = ""
    metadata: Details | None = None
    join_mode: Literal["open", "approval", "invite_only", "closed"] | None = None
    members: list[Any] = Field(default_factory=list, max_length=MOST_AT_FIRST)
    create_request_id: Annotated[str, Field(max_length=ID_LENGTH)] | None = Field(
        default=None, validation_alias="_create_request_id"
    )


def create(work: Work, caller: Caller, params: Create) -> dict[str, Any]:
    """Make a group, or find what an earlier try made."""
    values = {
        "name": params.name,
        "visibility": params.visibility,
        "description": params.description,
        "details": _details(params.metadata or {}),
        "join_mode": params.join_mode,
    }
    if params.group_name is None:
        group = making.anonymous(work, caller, params.create_request_id, **values)
    else:
        if params.public_key is None:
            raise BadParams("public_key is required with group_name")
        if not GROUP_NAME.fullmatch(params.group_name) or params.group_name.isdigit():
            raise BadParams("invalid group_name")
        key = making.key_of(params.public_key, params.curve)
        group = making.named(work, caller, params.group_name, key, **values)
    if group.event_seq == 1:  # new: nothing happened in it yet
        _first_members(work, caller, group, params.members)
    return _with_certificate(work, group)


class Bind(OfGroup):
    """A key for a group that has none."""

    public_key: str
    curve: str = making.CURVE


def bind(work: Work, caller: Caller, params: Bind) -> dict[str, Any]:
    """Give a group a key and a certificate of its own."""
    found = membership.held(work, caller, params.group_id, needs=Role.OWNER)
    making.bind(work, found.group, making.key_of(params.public_key, params.curve))
    return _with_certificate(work, found.group)


class Renew(OfGroup):
    """A new key, and the old one's consent."""

    old_public_key: str
    new_public_key: str
    curve: str = making.CURVE
    renew_proof: Consent


def renew(work: Work, caller: Caller, params: Renew) -> dict[str, Any]:
    """Replace the key of a group."""
    found = membership.held(work, caller, params.group_id, needs=Role.OWNER)
    old, new = params.old_public_key, params.new_public_key
    transfer.renew(
        work,
        caller,
        found.group,
        (old, making.key_of(old, making.CURVE)),
        (new, making.key_of(new, params.curve)),
        params.renew_proof,
    )
    return _with_certificate(work, found.group) | {"old_cert_revoked": True}


class Info(OfGroup):
    """A group to look at."""

    required: list[str] = Field(default_factory=list)


def get_info(session: Session, caller: Caller, params: Info) -> dict[str, Any]:
    """What a group is like; members learn more."""
    found = membership.known(session, caller, params.group_id)
    if found.member is None:
        return {"found": True, **public(found.group), "group": public(found.group)}
    shown = whole(found.group) | {"my_role": found.member.role, "role": found.member.role}
    if found.group.transfer_to:
        shown["pending_owner_transfer"] = transfer.pending(found.group)
    return {"found": True, **shown, "group": shown}


class Listing(Params):
    """How many of them."""

    size: Size = Field(default=LONGEST_PAGE, validation_alias=AliasChoices("size", "limit"))


def list_my(session: Session, caller: Caller, params: Listing) -> dict[str, Any]:
    """The caller's groups, suspended and dissolved ones with their status."""
    size = min(params.size, LONGEST_PAGE)
    is_mine = [Member.tenant_id == caller.tenant_id, Member.aid == caller.aid]
    query = (
        select(Group, Member)
        .join(
            Member,
            (col(Member.tenant_id) == Group.tenant_id) & (col(Member.group_id) == Group.id),
        )
        .where(*is_mine)
        .order_by(col(Group.updated_at).desc(), col(Group.id))
        .limit(size)
    )
    items = [
        whole(group)
        | {"role": member.role, "my_role": member.role, "joined_at": ms(member.joined_at)}
        for group, member in session.exec(query)
    ]
    total = session.exec(select(func.count()).select_from(Member).where(*is_mine)).one()
    return {"items": items, "total": total, "page": 1, "size": size, "aid": caller.aid}


class Search(Params):
    """Part of a name."""

    query: Annotated[str, Field(max_length=200)] = Field(
        default="", validation_alias=AliasChoices("query", "q")
    )
    size: Size = Field(default=PAGE, validation_alias=AliasChoices("size", "limit"))


def search(session: Session, caller: Caller, params: Search) -> dict[str, Any]:
    """Public groups of the tenant that are active."""
    size = min(params.size, LONGEST_PAGE)
    wanted = params.query.strip().lower()
    is_one: list[ColumnElement[bool]] = [
        col(Group.tenant_id) == caller.tenant_id,
        col(Group.visibility) == Visibility.PUBLIC,
        col(Group.status) == GroupStatus.ACTIVE,
    ]
    if wanted:
        is_one.append(
            or_(
                func.lower(Group.name).contains(wanted, autoescape=True),
                col(Group.id).contains(wanted, autoescape=True),
            )
        )
    found = session.exec(
        select(Group).where(*is_one).order_by(col(Group.name), col(Group.id)).limit(size)
    ).all()
    total = session.exec(select(func.count()).select_from(Group).where(*is_one)).one()
    items = [public(group) for group in found]
    return {"query": params.query, "items": items, "total": total, "page": 1, "size": size}


class Update(OfGroup):
    """What is to be otherwise; what is left out stays."""

    name: str | None = None
    description: str | None = None
    visibility: str | None = None
    metadata: Details | None = None


def update(work: Work, caller: Caller, params: Update) -> dict[str, Any]:
    """Change what a group is called and how it is described."""
    found = membership.held(work, caller, params.group_id, needs=Role.ADMIN)
    group = found.group
    given = {
        key: value
        for key in ("name", "description", "visibility")
        if (value := getattr(params, key)) is not None
    }
    for key, value in settings.understood(given).items():
        setattr(group, key, value)
    keys = sorted(given)
    if params.metadata is not None:
        group.details = transfer.kept(group) | _details(params.metadata)
        keys.append("metadata")
    if keys:
        changes.note(work, caller, group, "update", updated_keys=keys)
    return {"group": whole(group), "updated_keys": keys}


def suspend(work: Work, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """Let nobody but owner and administrators write."""
    return _switch(work, caller, params.group_id, GroupStatus.SUSPENDED, "suspended")


def resume(work: Work, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """Let everybody write again."""
    return _switch(work, caller, params.group_id, GroupStatus.ACTIVE, "resumed")


def dissolve(work: Work, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """End a group for good; its members can still read it. Once more changes nothing."""
    found = membership.inside(work.session, caller, params.group_id)
    if found.group.status != GroupStatus.DISSOLVED:
        found = membership.held(work, caller, params.group_id, needs=Role.OWNER)
        found.group.status = GroupStatus.DISSOLVED
        found.group.transfer_to = None
        making.end_key(work, found.group)
        invites.end_all(work, found.group)
        changes.note(work, caller, found.group, "dissolved", status="dissolved")
    membership.need(found, Role.OWNER)
    return {
        **both(params.group_id),
        "status": GroupStatus.DISSOLVED.value,
        "group": whole(found.group),
    }


class Transfer(OfGroup):
    """Who is to own it."""

    new_owner: Aid = Field(validation_alias=AliasChoices("new_owner", "aid"))
    transfer_auth: Consent | None = None


def transfer_owner(work: Work, caller: Caller, params: Transfer) -> dict[str, Any]:
    """Hand a group on: at once without a key, else as soon as the new owner brings one."""
    found = membership.held(work, caller, params.group_id, needs=Role.OWNER)
    status = transfer.start(work, caller, found, params.new_owner, params.transfer_auth)
    told = {
        **both(params.group_id),
        "status": status,
        "group": whole(found.group),
        "old_owner": caller.aid,
        "new_owner": params.new_owner,
    }
    if status == "pending_rekey":
        told |= {
            "requires_ca_rekey": True,
            "complete_rpc": "group.complete_transfer",
            "pending_owner_transfer": transfer.pending(found.group),
        }
    return told


class Complete(OfGroup):
    """The new owner's key and consent."""

    public_key: str
    curve: str = making.CURVE
    transfer_accept: Consent


def complete_transfer(work: Work, caller: Caller, params: Complete) -> dict[str, Any]:
    """Take over a group one was named the owner of."""
    found = membership.held(work, caller, params.group_id)
    key = making.key_of(params.public_key, params.curve)
    before = transfer.complete(work, caller, found, params.public_key, key, params.transfer_accept)
    return {
        **both(params.group_id),
        **_with_certificate(work, found.group),
        "status": "transferred",
        "old_owner": before,
        "new_owner": caller.aid,
    }


def _first_members(work: Work, caller: Caller, group: Group, named: list[Any]) -> None:
    for each in named:
        aid = each.get("aid") if isinstance(each, dict) else each
        if not isinstance(aid, str):
            raise BadParams("members are AIDs")
        if aid != caller.aid and work.session.get(Member, (group.tenant_id, group.id, aid)) is None:
            roster.admit(work, caller, group, aid, "member_added")


def _switch(
    work: Work, caller: Caller, group_id: str, status: GroupStatus, action: str
) -> dict[str, Any]:
    found = membership.held(work, caller, group_id, needs=Role.ADMIN)
    if found.group.status == status:
        return {**both(group_id), "group": whole(found.group), "status": "unchanged"}
    found.group.status = status
    changes.note(work, caller, found.group, action, status=status.value)
    return {**both(group_id), "group": whole(found.group), "status": status.value}


def _with_certificate(work: Work, group: Group) -> dict[str, Any]:
    told: dict[str, Any] = {"group": whole(group)}
    if found := making.certificate(work, group):
        told["aid_cert"] = found
    return told


def _details(given: Details) -> Details:
    if len(json.dumps(given)) > LARGEST_DETAILS:
        raise BadParams("metadata is larger than 16 kB")
    return transfer.without_ours(given)


WRITES = {
    "group.create": method.write(create),
    "group.bind_group_aid": method.write(bind),
    "group.renew_group_aid": method.write(renew),
    "group.update": method.write(update),
    "group.suspend": method.write(suspend),
    "group.resume": method.write(resume),
    "group.dissolve": method.write(dissolve),
    "group.transfer_owner": method.write(transfer_owner),
    "group.complete_transfer": method.write(complete_transfer),
}
READS = {
    "group.get_info": method.read(get_info),
    "group.list_my": method.read(list_my),
    "group.list": method.read(list_my),
    "group.search": method.read(search),
}
