"""`message.thought.*`, `group.thought.*`: let one other party see what one thinks (aun.md, 7.1)."""

from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, Field
from sqlmodel import Session

from app.aun import queries, thoughts
from app.aun.caller import Caller
from app.aun.e2ee import envelopes, hosted
from app.aun.errors import BadParams, NotAParty
from app.aun.groups import membership
from app.aun.method import Cost, Method, read, write
from app.aun.models import ID_LENGTH, IdentityStatus, Thought, ThoughtHead
from app.aun.names import Aid, GroupId
from app.aun.thoughts import LONGEST, Heading
from app.aun.wire import MessageId, Params
from app.kernel import ids, json
from app.kernel.db import Work

MOST_BYTES = 3 << 19  # of items in an answer: the newest that fit

Text = Annotated[str, Field(min_length=1, max_length=ID_LENGTH)]


def _short_enough(payload: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(payload)) > LONGEST:
        raise ValueError("payload is larger than 64 KiB")
    return payload


class Context(Params):
    """What it is about: a run, a task."""

    type: Text
    id: Text


class _Put(Params):
    context: Context
    payload: Annotated[dict[str, Any], AfterValidator(_short_enough)]


class Put(_Put):
    """`message.thought.put`."""

    to: Aid
    thought_id: MessageId = Field(default_factory=lambda: f"mt-{ids.ulid().lower()}")


class PutGroup(_Put):
    """`group.thought.put`."""

    group_id: GroupId = Field(validation_alias=AliasChoices("group_id", "group_aid"))
    thought_id: MessageId = Field(default_factory=lambda: f"gt-{ids.ulid().lower()}")


class Get(Params):
    """`message.thought.get`."""

    sender_aid: Aid
    context: Context
    peer_aid: Aid | None = Field(default=None, validation_alias=AliasChoices("peer_aid", "to"))


class GetGroup(Params):
    """`group.thought.get`."""

    sender_aid: Aid
    context: Context
    group_id: GroupId = Field(validation_alias=AliasChoices("group_id", "group_aid"))


async def prepare(caller: Caller, params: Put) -> Put:
    """Check an envelope and read it for a hosted peer, or seal what leaves for outside.

    Raises:
        BadParams, StaleKeys, NoSuchParty, NoUsableKey: nothing was kept.
    """
    payload = params.payload
    if envelopes.is_envelope(payload):
        await envelopes.checked_direct(caller, params.to, params.thought_id, payload)
        opened = await hosted.opened(caller.tenant_id, params.to, caller.aid, payload)
        return params.model_copy(update={"payload": opened.payload or payload})
    if not caller.is_hosted:
        return params
    if not await hosted.should_encrypt(caller.tenant_id, caller.aid, params.to):
        return params
    sealed = await hosted.sealed_direct(
        caller.tenant_id, caller.aid, params.to, payload, params.thought_id
    )
    return params.model_copy(update={"payload": sealed})


async def prepare_group(caller: Caller, params: PutGroup) -> PutGroup:
    """Check an envelope, or seal for a group with members outside.

    Raises:
        BadParams, StaleKeys, NoUsableKey: nothing was kept.
    """
    payload = params.payload
    if envelopes.is_envelope(payload):
        await envelopes.checked_group(caller, params.group_id, params.thought_id, payload)
        return params
    if not caller.is_hosted:
        return params
    if not await hosted.should_encrypt_group(caller.tenant_id, params.group_id):
        return params
    sealed = await hosted.sealed_group(
        caller.tenant_id, caller.aid, params.group_id, payload, params.thought_id
    )
    return params.model_copy(update={"payload": sealed})


def put(work: Work, caller: Caller, params: Put) -> dict[str, Any]:
    """Keep a thought for one peer.

    Raises:
        NoSuchParty: there is no such peer.
        NotAParty: the author is switched off.
    """
    _check_active(work.session, caller)
    queries.party(work.session, caller.tenant_id, params.to)
    return _put(work, caller, params, params.to, {"peer_aid": params.to, "to": params.to})


def put_group(work: Work, caller: Caller, params: PutGroup) -> dict[str, Any]:
    """Keep a thought for the members of a group.

    Raises:
        GroupNotFound, GroupRefused: the caller may not speak there.
    """
    _check_active(work.session, caller)
    found = membership.inside(work.session, caller, params.group_id)
    membership.need_voice(
        found.group.status, found.member.role, is_banned=found.member.banned_at is not None
    )
    return _put(work, caller, params, found.group.id, {"group_id": found.group.id})


def get(session: Session, caller: Caller, params: Get) -> dict[str, Any]:
    """Show thoughts to their author, or to the peer they are for.

    Raises:
        NotAParty: they are for somebody else.
    """
    if params.sender_aid == caller.aid:
        if params.peer_aid is None:
            raise BadParams("invalid params: peer_aid: Field required")
        peer = params.peer_aid
    else:
        peer = caller.aid
        if params.peer_aid not in {None, caller.aid}:
            raise NotAParty("not a party of these thoughts")
    told = {"sender_aid": params.sender_aid, "peer_aid": peer}
    return _shown(session, caller, params.sender_aid, peer, params.context, told)


def get_group(session: Session, caller: Caller, params: GetGroup) -> dict[str, Any]:
    """Show thoughts to a member of the group they are for.

    Raises:
        GroupNotFound, GroupRefused: the caller is no member.
    """
    found = membership.inside(session, caller, params.group_id)
    told = {"sender_aid": params.sender_aid, "group_id": found.group.id}
    return _shown(session, caller, params.sender_aid, found.group.id, params.context, told)


def _put(
    work: Work, caller: Caller, params: Put | PutGroup, peer: str, told: dict[str, Any]
) -> dict[str, Any]:
    kept = thoughts.append(
        work,
        _heading(caller.tenant_id, caller.aid, peer, params.context),
        params.thought_id,
        params.payload,
        is_encrypted=envelopes.is_envelope(params.payload),
    )
    return {
        "sender_aid": caller.aid,
        **told,
        "context": params.context.model_dump(),
        "thought_id": params.thought_id,
        "stored_count": kept.count,
        "updated_at": int(kept.updated_at.timestamp() * 1000),
    }


def _shown(
    session: Session,
    caller: Caller,
    sender_aid: str,
    peer: str,
    context: Context,
    told: dict[str, Any],
) -> dict[str, Any]:
    made = {**told, "context": context.model_dump()}
    found = thoughts.under(session, _heading(caller.tenant_id, sender_aid, peer, context))
    if found is None:
        return {**made, "found": False, "thoughts": [], "updated_at": None}
    head, items = found
    return {
        **made,
        "found": True,
        "thoughts": _newest([_item(head, each) for each in items]),
        "updated_at": int(head.updated_at.timestamp() * 1000),
    }


def _newest(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    size, kept = 0, 0
    for item in reversed(items):
        size += len(json.dumps(item))
        if kept and size > MOST_BYTES:
            break
        kept += 1
    return items[len(items) - kept :]


def _item(head: ThoughtHead, thought: Thought) -> dict[str, Any]:
    return {
        "thought_id": thought.thought_id,
        "message_id": thought.thought_id,
        "context": {"type": head.context_type, "id": head.context_id},
        "from": head.sender_aid,
        "to": head.peer,
        "payload": thought.payload,
        "created_at": thought.created_ms,
    }


def _heading(tenant_id: str, sender_aid: str, peer: str, context: Context) -> Heading:
    return Heading(
        tenant_id=tenant_id,
        sender_aid=sender_aid,
        peer=peer,
        context_type=context.type,
        context_id=context.id,
    )


def _check_active(session: Session, caller: Caller) -> None:
    found = queries.identity(session, caller.tenant_id, caller.aid)
    if found is None or found.status != IdentityStatus.ACTIVE:
        raise NotAParty("author is not active", retryable=False)


WRITES: dict[str, Method] = {
    "message.thought.put": write(put, cost=Cost.SEND, prepare=prepare),
    "group.thought.put": write(put_group, cost=Cost.SEND, prepare=prepare_group),
}
READS: dict[str, Method] = {
    "message.thought.get": read(get),
    "group.thought.get": read(get_group),
}
