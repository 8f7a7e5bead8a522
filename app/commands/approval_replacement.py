"""Changing what is asked for: a new approval takes the place of an open one (CMD-28).

The new input passes the same guards and is rehearsed as the call's own principal; then the old
approval closes as superseded and the new one waits in its place, for the same tool call.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from app.access import acting
from app.commands import (
    approval_closing,
    approval_digest,
    approval_events,
    approval_rights,
    approvals,
    deciding,
    pipeline,
    published,
    registry,
)
from app.commands.approval_errors import ApprovalClosed, NotAnApprover, NotDecidedHere
from app.commands.approval_models import Approval, ApprovalState
from app.commands.call import Call
from app.commands.governed import GovernedRecord
from app.commands.outcome import Preview
from app.commands.rows import table_of
from app.identity import delegations, sessions
from app.identity.models import User
from app.identity.principal import Channel, Principal, Scope
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """What the edit form sends: the new input, and the digest of what it started from."""

    digest: str
    input: Mapping[str, Any]


async def attempt(person: Principal, approval_id: str, replacement: Replacement) -> Approval:
    """Replace; an attempt of somebody who may not is put on record (SEC-36, SEC-74).

    Raises:
        What `replace` raises.
    """
    try:
        return await db.transaction(replace, person, approval_id, replacement)
    except (NotDecidedHere, NotAnApprover, NotFound) as refused:
        await db.transaction(deciding.note_forged, person, approval_id, refused.reason)
        raise


def replace(work: Work, person: Principal, approval_id: str, replacement: Replacement) -> Approval:
    """Open a new approval with this input in the place of an open one; returns the new one.

    Raises:
        NotFound, NotAnApprover: it is not this person's to change.
        ApprovalClosed: it is over, or was used meanwhile.
        NotDecidedHere: it is not the request that was on the page.
        Refused: the new input would not run; nothing was changed.
    """
    acting.now_acting(work.connection, person, clock.now())
    old = work.session.get(Approval, (person.tenant_id, approval_id), populate_existing=True)
    if old is None or not approval_rights.may_see(work.session, person, old):
        raise NotFound
    if not approval_rights.may_decide(work.session, person, old):
        raise NotAnApprover
    if old.digest != replacement.digest:
        raise NotDecidedHere
    if old.state != ApprovalState.OPEN or old.expires_at <= clock.now():
        raise ApprovalClosed(old)
    target_id = replacement.input.get("targetRecordId", old.target_id)
    if target_id != old.target_id and not (
        isinstance(target_id, str) and approval_rights.reaches(work.session, person, old, target_id)
    ):
        raise NotFound  # or the rehearsal would show what the requester reaches
    call = Call(
        code=old.command,
        input=dict(replacement.input),
        principal=_requester(work.session, old),
        idempotency_key=old.idempotency_key,
        origin=approvals.origin_of(old),
    )
    is_changed = not approval_digest.same(approvals.arguments(old), call.input)
    preview = _rehearsed(work, call)
    made = approvals.draw_up(
        work, _asked(work, call, preview, old, person.user_id if is_changed else None)
    )
    known = approvals.asked_already(work, made)
    new = known if known is not None and known.id != old.id else made
    # the old one goes first: prepared again unchanged, the new one asks the same
    if not approval_closing.supersede(work, old, new.id, person):
        work.session.refresh(old)
        raise ApprovalClosed(old)
    if new is made:
        approvals.store(work, made)
        approval_events.tell(work, made)
    return new


def _rehearsed(work: Work, call: Call) -> Preview:
    trial = Work(work.connection)
    savepoint = work.connection.begin_nested()
    try:
        preview = pipeline.rehearse(trial, call)
        trial.flush()
    finally:
        trial.discard()
        savepoint.rollback()
    return preview


def _asked(
    work: Work, call: Call, preview: Preview, old: Approval, changed_by: str | None
) -> approvals.Asked:
    version = published.current(work.connection, old.tenant_id, old.command)
    if version is None:
        raise NotFound
    return approvals.Asked(
        call=call,
        published=version,
        org_id=old.org_id,
        record=_target(work, version, call),
        preview=preview,
        replaces=old,
        changed_by=changed_by,
    )


def _target(work: Work, version: published.Published, call: Call) -> GovernedRecord | None:
    target_id = call.input.get("targetRecordId")
    model = registry.record_types().get(version.definition.record or "")
    if model is None or not version.definition.targeted or not isinstance(target_id, str):
        return None
    table, tenant_id = table_of(model), call.principal.tenant_id
    found = table.by_id(False).run(work.connection, tenant_id=tenant_id, id=target_id).first()
    row: GovernedRecord | None = table.made(table.read(work.connection, found)) if found else None
    return row


def _requester(session: Session, row: Approval) -> Principal:
    """Whose call it is, as they stand now: the person, or the agent by its live delegation."""
    if row.agent_id is None:
        person = sessions.requester(session, row.tenant_id, row.user_id, row.session_id)
        if person is None:
            raise NotFound
        return person
    user = session.get(User, (row.tenant_id, row.user_id))
    delegation = delegations.live(session, row.tenant_id, row.user_id, row.actors[0])
    if user is None or delegation is None:
        raise NotFound
    return Principal(
        tenant_id=row.tenant_id,
        user_id=row.user_id,
        agent_release_id=row.agent_release_id,
        delegation_id=row.delegation_id,
        session_id=row.session_id,
        channel=Channel(row.channel),
        actors=tuple(row.actors),
        scopes=frozenset(Scope(each) for each in delegation.scopes if each in set(Scope)),
        epoch=user.authz_epoch,
    )
