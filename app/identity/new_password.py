"""A new password: by its owner, by an invitation, or by the link of a reset (SEC-40)."""

from app.identity import epochs, facts, links, passwords, sessions, users
from app.identity.errors import LinkInvalid
from app.identity.links import Opened
from app.identity.models import LinkPurpose, User
from app.identity.principal import Principal
from app.kernel.db import Work


def change(work: Work, person: Principal, argon2id: str) -> None:
    """The person's own new password; their other browser sessions end."""
    user = users.one(work.session, person.tenant_id, person.user_id)
    passwords.keep(work, user, argon2id)
    facts.record(work, "identity.password.change", person, target=("user", user.id))
    sessions.end_all(work, person, user, "password_changed", besides=person.session_id)


def accept_invitation(work: Work, secret: str, argon2id: str) -> User:
    """Use an invitation up: its person can sign in from now on.

    Raises:
        LinkInvalid: it was used, is too old or never was.
    """
    user = _take(work, secret, LinkPurpose.INVITE).user
    passwords.keep(work, user, argon2id)
    users.activate(work, user)
    _record(work, user, "identity.user.accept")
    return user


def reset(work: Work, secret: str, argon2id: str) -> User:
    """Use a reset up: all browser sessions end, and so do the tokens of the old epoch (SEC-9).

    Raises:
        LinkInvalid: as for an invitation.
    """
    user = _take(work, secret, LinkPurpose.RESET).user
    passwords.keep(work, user, argon2id)
    users.activate(work, user)
    _record(work, user, "identity.password.reset")
    sessions.end_all(work, None, user, "password_reset")
    epochs.raise_for(work, user.tenant_id, [user.id], "password_reset")
    return user


def _take(work: Work, secret: str, purpose: LinkPurpose) -> Opened:
    opened = links.take(work, secret)
    if opened.link.purpose != purpose:
        raise LinkInvalid
    return opened


def _record(work: Work, user: User, action: str) -> None:
    facts.record(
        work,
        action,
        None,
        tenant_id=user.tenant_id,
        user_id=user.id,
        target=("user", user.id),
    )
