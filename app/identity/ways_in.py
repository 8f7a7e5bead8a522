"""The ways a person can sign in; the last one cannot be taken away."""

from collections.abc import Sequence

from sqlmodel import Session, col, select

from app.identity.errors import LastWayIn
from app.identity.models import Credential, CredentialKind, ExternalLogin, User


def keep_one_besides(session: Session, user: User, id_: str) -> None:
    """Let the credential or external login `id_` go, if there is another way in.

    Raises:
        LastWayIn: there is none.
    """
    known = {row.id for row in credentials(session, user)}
    known |= {row.id for row in external(session, user)}
    if not known - {id_}:
        raise LastWayIn


def credentials(session: Session, user: User) -> Sequence[Credential]:
    """The password and the passkeys that count, the oldest first."""
    query = (
        select(Credential)
        .where(Credential.tenant_id == user.tenant_id, Credential.user_id == user.id)
        .where(col(Credential.revoked_at).is_(None))
        .order_by(col(Credential.created_at), col(Credential.id))
    )
    return session.exec(query).all()


def passkeys(session: Session, user: User) -> list[Credential]:
    """The passkeys that count, the oldest first."""
    return [row for row in credentials(session, user) if row.kind == CredentialKind.PASSKEY]


def external(session: Session, user: User) -> Sequence[ExternalLogin]:
    """The accounts of other providers that are linked, the oldest first."""
    query = (
        select(ExternalLogin)
        .where(ExternalLogin.tenant_id == user.tenant_id, ExternalLogin.user_id == user.id)
        .order_by(col(ExternalLogin.linked_at), col(ExternalLogin.id))
    )
    return session.exec(query).all()
