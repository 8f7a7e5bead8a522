"""An outside AID becomes a user's, when both say so: the AID by a code, the user by signing in.

Only a link gives an outside AID's messages a user's authority (aun.md, 4.5). A wrong, late or
repeated code changes nothing and is answered with nothing.
"""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, col, select

from app.aun import queries
from app.aun.caller import Caller
from app.aun.events import Evicted
from app.aun.models import IdentityKind, IdentityStatus
from app.aun.pki_models import LinkCode
from app.identity import facts
from app.identity.models import PeerLink
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import AppError, NotFound
from app.kernel.i18n import N_

LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # none looks like another
LENGTH = 10
LIVES = timedelta(minutes=10)  # until it is sent, and again until it is confirmed
CLOSED_NORMALLY = 1000  # the client may come back as a contact


class NotProved(AppError):
    """No AID proved itself with a code of this session, or too long ago."""

    reason = "not_proved"
    status = 409
    says = N_("This proof is over. Ask for another code.")


class LinkedAlready(AppError):
    """The AID is a user's already."""

    reason = "linked_already"
    status = 409
    says = N_("This AID is linked already. Its link has to end first.")


def begin(work: Work, person: Principal) -> str:
    """A code to send from the outside client; the session's earlier ones end."""
    now = clock.now()
    work.session.execute(
        update(LinkCode)
        .where(*_of_session(person))
        .where(col(LinkCode.used_at).is_(None))
        .values(used_at=now)
    )
    code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
    work.session.add(
        LinkCode(
            tenant_id=person.tenant_id,
            digest=_digest(person.tenant_id, code),
            user_id=person.user_id,
            session_id=person.session_id or "",
            created_at=now,
            expires_at=now + LIVES,
        )
    )
    return code


def listen(work: Work, caller: Caller, payload: Mapping[str, Any], is_signed: bool) -> None:
    """Take what an AID told the tenant's own AID: a code that counts proves it, whatever else not.

    `is_signed`: the call carried a valid `client_signature` of the caller.
    """
    if caller.kind != IdentityKind.OUTSIDE or not is_signed:
        return
    found = work.session.get(
        LinkCode, (caller.tenant_id, _digest(caller.tenant_id, _text(payload)))
    )
    if found is None or found.used_at or found.proved_at or found.expires_at <= clock.now():
        return
    work.session.execute(
        update(LinkCode)
        .where(col(LinkCode.tenant_id) == found.tenant_id, col(LinkCode.digest) == found.digest)
        .where(col(LinkCode.proved_at).is_(None))
        .values(proved_aid=caller.aid, proved_at=clock.now())
    )


def waiting(session: Session, person: Principal) -> LinkCode | None:
    """The code of this session that counts now: not sent yet, or proved and to be confirmed."""
    query = select(LinkCode).where(*_of_session(person), col(LinkCode.used_at).is_(None))
    rows = session.exec(query.order_by(col(LinkCode.created_at).desc())).all()
    return next((row for row in rows if _counts(row)), None)


def confirm(work: Work, person: Principal, aid: str) -> PeerLink:
    """Link the AID that proved itself to this person, who just signed in anew.

    Raises:
        NotProved: it did not, with a code of this session, or too long ago.
        LinkedAlready: it is somebody's.
    """
    found = waiting(work.session, person)
    identity = queries.identity(work.session, person.tenant_id, aid)
    is_active = identity is not None and identity.status == IdentityStatus.ACTIVE
    if found is None or found.proved_aid != aid or not is_active or not _take(work, found):
        raise NotProved
    link = work.session.get(
        PeerLink, (person.tenant_id, aid), with_for_update=True, populate_existing=True
    )
    if link is not None and link.revoked_at is None:
        raise LinkedAlready
    link = link or PeerLink(
        tenant_id=person.tenant_id, aid=aid, user_id=person.user_id, linked_at=clock.now()
    )
    link.user_id, link.linked_by_session = person.user_id, person.session_id
    link.linked_at, link.revoked_at = clock.now(), None
    work.session.add(link)
    details = {"user_id": person.user_id}
    facts.record(work, "identity.contact.link", person, target=("contact", aid), details=details)
    return link


def links(session: Session, person: Principal) -> list[PeerLink]:
    """The person's links, the newest first."""
    query = select(PeerLink).where(
        PeerLink.tenant_id == person.tenant_id,
        PeerLink.user_id == person.user_id,
        col(PeerLink.revoked_at).is_(None),
    )
    return list(session.exec(query.order_by(col(PeerLink.linked_at).desc(), col(PeerLink.aid))))


def link_of(session: Session, person: Principal, aid: str) -> PeerLink:
    """One link of the person.

    Raises:
        NotFound: there is none to this AID.
    """
    found = session.get(PeerLink, (person.tenant_id, aid))
    if found is None or found.user_id != person.user_id or found.revoked_at is not None:
        raise NotFound
    return found


def end(work: Work, person: Principal, aid: str) -> None:
    """End a link of one's own; sockets of the AID close, and it may return as a contact.

    Raises:
        NotFound: there is none to this AID.
    """
    found = link_of(work.session, person, aid)
    found.revoked_at = clock.now()
    work.session.add(found)
    details = {"user_id": found.user_id}
    facts.record(work, "identity.contact.unlink", person, target=("contact", aid), details=details)
    evict(work, person.tenant_id, aid, "unlinked")


def evict(work: Work, tenant_id: str, aid: str, reason: str, code: int = CLOSED_NORMALLY) -> None:
    """Let every open connection of an AID end, once this is committed."""
    work.announce(Evicted(tenant_id=tenant_id, aid=aid, code=code, reason=reason))


def _of_session(person: Principal) -> tuple[Any, ...]:
    return (
        col(LinkCode.tenant_id) == person.tenant_id,
        col(LinkCode.user_id) == person.user_id,
        col(LinkCode.session_id) == (person.session_id or ""),
    )


def _counts(row: LinkCode) -> bool:
    until = row.proved_at + LIVES if row.proved_at else row.expires_at
    return until > clock.now()


def _take(work: Work, found: LinkCode) -> bool:
    taken = work.session.execute(
        update(LinkCode)
        .where(col(LinkCode.tenant_id) == found.tenant_id, col(LinkCode.digest) == found.digest)
        .where(col(LinkCode.used_at).is_(None))
        .values(used_at=clock.now())
    )
    return bool(taken.rowcount == 1)  # type: ignore[attr-defined]


def _digest(tenant_id: str, code: str) -> str:
    return ids.sha256(f"{tenant_id}:{code}")


def _text(payload: Mapping[str, Any]) -> str:
    """What was typed: with spaces and hyphens, in small letters, as people type codes."""
    text = payload.get("text") or payload.get("content") or ""
    typed = text[:100] if isinstance(text, str) else ""
    return "".join(typed.split()).replace("-", "").upper()
