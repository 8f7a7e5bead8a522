"""A message to a group: made ready outside the transaction, stored with the group's number in it.

The group's label of the moment is stored with it; nothing is filtered here (aun.md, 6.3).
"""

from dataclasses import dataclass
from typing import Any

from app.aun import conversations, delivery, rendered
from app.aun.caller import HOSTED_DEVICE, Caller
from app.aun.delivery import Stored, ToGroup
from app.aun.e2ee import envelopes, hosted
from app.aun.errors import BadParams, GroupNotFound, NotAParty, StaleEpoch
from app.aun.group_models import Visibility
from app.aun.groups import membership, rows
from app.aun.groups.refusals import NotAMember
from app.aun.groups.told import both
from app.aun.models import IdentityStatus
from app.aun.wire import DUPLICATE, SENT
from app.kernel import db, json
from app.kernel.db import Work


@dataclass(frozen=True, slots=True)
class Ready:
    """What is to be stored: read by hosted members, and passed on to the others.

    Attributes:
        event_seq: of the group, when it was found that nothing is to be sealed.
    """

    payload: dict[str, Any] | None
    envelope: str | None = None
    unreadable: str | None = None
    html: str | None = None
    event_seq: int | None = None


async def ready(
    caller: Caller,
    group_id: str,
    message_id: str,
    payload: dict[str, Any],
    encrypt: bool | None,
) -> Ready:
    """Check, open or seal what somebody sends.

    Raises:
        BadParams, StaleKeys: an envelope is not for this group as it is now.
        NoUsableKey: nobody in it could read what would be sealed.
    """
    if envelopes.is_envelope(payload):
        await envelopes.checked_group(caller, group_id, message_id, payload)
        if not envelopes.fits(payload):
            raise BadParams("payload is too large for a frame")
        found = await hosted.opened_group(caller.tenant_id, group_id, caller.aid, payload)
        html = await rendered.html_of(found.payload)
        return Ready(found.payload, _text(payload), found.reason, html)
    html = await rendered.html_of(payload)
    if not caller.is_hosted or encrypt is False:
        return Ready(payload, html=html)
    standing = await db.read(membership.inside, caller, group_id)  # before any work is done for it
    if await hosted.should_encrypt_group(caller.tenant_id, group_id):
        sealed = await hosted.sealed_group(
            caller.tenant_id, caller.aid, group_id, payload, message_id
        )
        return Ready(payload, _text(sealed), html=html)
    return Ready(payload, html=html, event_seq=standing.group.event_seq)


def store(
    work: Work,
    caller: Caller,
    group_id: str,
    message_id: str,
    made: Ready,
    *,
    type: str = "",
    need_render: bool = True,
) -> dict[str, Any]:
    """Store a message and tell of it; the same id once more changes nothing.

    Raises:
        GroupNotFound, NotAMember, Banned, Suspended, Dissolved: the caller may not send here.
        StaleEpoch: somebody came meanwhile who could not read it.
    """
    known = delivery.known(work.connection, caller.tenant_id, caller.aid, message_id)
    conversation_id = conversations.id_of_group(work.session, caller.tenant_id, group_id)
    if conversation_id is None:
        raise GroupNotFound
    if known is not None:
        return _again(work, caller, known, conversation_id, group_id)
    group = _taken(work, caller, group_id)
    if made.event_seq is not None and made.event_seq != group.event_seq:
        raise StaleEpoch("the group changed meanwhile", retryable=True)
    is_sealed = made.envelope is not None and caller.is_hosted
    stored = delivery.store_group(
        work,
        ToGroup(
            tenant_id=caller.tenant_id,
            sender_aid=caller.aid,
            message_id=message_id,
            sender_device=HOSTED_DEVICE if is_sealed else caller.device_id,
            type=type,
            payload=made.payload,
            envelope=made.envelope,
            unreadable=made.unreadable,
            html=made.html,
            need_render=need_render,
            except_connection=caller.connection_id,
            group_id=group_id,
            conversation_id=conversation_id,
            seq=group.message_seq,
            mention_mode=group.mention_mode,
        ),
    )
    if not stored.is_new:  # the other of two equal sends was faster
        rows.GIVE_BACK.run(work.connection, tenant_id=caller.tenant_id, group_id=group_id)
        return _again(work, caller, stored, conversation_id, group_id)
    return _told(caller, group_id, stored, group.mention_mode, SENT, type)


def _taken(work: Work, caller: Caller, group_id: str) -> Any:
    key = {"tenant_id": caller.tenant_id, "group_id": group_id}
    group = rows.TAKE_SEQ.run(work.connection, **key).first()
    member = rows.MEMBER.run(work.connection, **key, aid=caller.aid).first()
    if group is None or (member is None and group.visibility == Visibility.PRIVATE):
        raise GroupNotFound
    if member is None:
        raise NotAMember
    if member.status != IdentityStatus.ACTIVE:
        raise NotAParty("sender is not active", retryable=False)
    membership.need_voice(group.status, member.role, is_banned=bool(member.is_banned))
    return group


def _again(
    work: Work, caller: Caller, known: Stored, conversation_id: str, group_id: str
) -> dict[str, Any]:
    """The first answer once more, with the label the message got then."""
    if known.conversation_id != conversation_id:
        raise BadParams("message_id was used elsewhere")
    row = rows.ONE.run(
        work.connection, tenant_id=caller.tenant_id, group_id=group_id, id=known.id
    ).one()
    return _told(caller, group_id, known, row.mention_mode, DUPLICATE, row.type)


def _told(
    caller: Caller, group_id: str, stored: Stored, mode: str, status: str, type: str
) -> dict[str, Any]:
    return {
        **both(group_id),
        "message_id": stored.message_id,
        "seq": stored.seq,
        "timestamp": stored.sent_ms,
        "status": status,
        "mention_mode": mode,
        "dispatch": {"mode": "broadcast"},
        "message": {
            **both(group_id),
            "seq": stored.seq,
            "message_id": stored.message_id,
            "sender_aid": caller.aid,
            "type": type,
            "mention_mode": mode,
            "created_at": stored.sent_ms,
        },
    }


def _text(envelope: dict[str, Any]) -> str:
    return json.dumps(envelope).decode()
