"""A conversation of somebody, with a message and an invitation, as rows."""

from sqlmodel import select

from app.aun import conversations, delivery
from app.aun.caller import CONSOLE_DEVICE, Caller, Door
from app.aun.groups import invites, making, membership, sending
from app.aun.groups.sending import Ready
from app.aun.models import IdentityKind
from app.identity.models import User, UserStatus
from app.identity.principal import Principal
from app.kernel import ids
from app.kernel.db import Work


def something(work: Work, person: Principal) -> dict[str, str]:
    """A group that the person owns, what they said in it, and whom they invite; the ids."""
    user = work.session.get_one(User, (person.tenant_id, person.user_id))
    caller = caller_of(user)
    group = making.anonymous(
        work,
        caller,
        None,
        name="Theirs",
        visibility="private",
        description="",
        details={},
        join_mode=None,
    )
    message_id = f"m-{ids.ulid().lower()}"
    sending.store(work, caller, group.id, message_id, Ready({"type": "text", "text": "Theirs"}))
    stored = delivery.known(work.connection, caller.tenant_id, caller.aid, message_id)
    assert stored is not None
    invitee = _another(work, user)
    found = membership.held(work, caller, group.id)
    invite = invites.invite(work, caller, found, invitee.aid or "")
    conversation_id = conversations.id_of_group(work.session, caller.tenant_id, group.id)
    return {
        "conversation_id": conversation_id or "",
        "message_id": stored.id,
        "invite_id": invite.id,
        "group_id": group.id,
    }


def caller_of(user: User) -> Caller:
    """Somebody at the console."""
    return Caller(
        tenant_id=user.tenant_id,
        aid=user.aid or "",
        kind=IdentityKind.USER,
        device_id=CONSOLE_DEVICE,
        door=Door.CONSOLE,
    )


def _another(work: Work, user: User) -> User:
    others = select(User).where(
        User.tenant_id == user.tenant_id, User.id != user.id, User.status == UserStatus.ACTIVE
    )
    found = work.session.exec(others.order_by(User.login)).first()
    assert found is not None, "nobody else is here"
    return found
