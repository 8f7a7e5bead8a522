"""Deciding an approval: one person's click on exactly what was displayed, once (SEC-36, CMD-13).

The dialog carries a nonce, an HMAC over browser session, approval, digest, preview digest and its
own end. It is one-time because the row leaves `open` once, by a conditional UPDATE: of two people,
two tabs or two buttons, one wins.
"""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from app.access import acting
from app.commands import approval_closing, approval_events, approval_rights, approval_staleness
from app.commands.approval_errors import (
    ApprovalClosed,
    CannotRunAnyMore,
    DialogTooOld,
    NotAnApprover,
    NotDecidedHere,
)
from app.commands.approval_models import Approval, ApprovalState
from app.commands.definition import Risk
from app.identity import facts
from app.identity.errors import StepUpNeeded
from app.identity.principal import Principal
from app.kernel import clock, db, ids, keyring
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_
from app.kernel.prepared import Prepared

PURPOSE = "decision"  # ring of keys
DIALOG_LIVES = timedelta(minutes=2)
LONGEST_REASON = 500  # characters

_DECIDE = Prepared(
    "UPDATE approval SET state = :state, decided_by = :person_id, decided_at = :now, "
    "decision_session_id = :session_id, surface = :surface, user_agent = :user_agent, "
    "typed = :typed, assertion = :assertion, reason = :reason, closed_at = :closed_at, "
    "closed_by = :closed_by, rev = rev + 1 "
    "WHERE tenant_id = :tenant_id AND id = :id AND state = 'open' AND digest = :digest "
    "AND expires_at > :now"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a dialog sends.

    Attributes:
        typed: the name of the target, which an L4 command asks for.
        reason: of a denial; the agent is told it word for word (UI-67).
    """

    verdict: Literal["approve", "deny"]
    digest: str
    nonce: str
    typed: str = ""
    reason: str = ""

    @property
    def state(self) -> ApprovalState:
        """What becomes of the approval."""
        return ApprovalState.APPROVED if self.verdict == "approve" else ApprovalState.DENIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """Where the click came from, for the record; whether its person proved who they are lately.

    Attributes:
        assertion: what a passkey of theirs signed over this very decision (`challenge`), as JSON.
    """

    is_fresh: bool
    assertion: str | None = None
    user_agent: str = ""
    surface: str = "console"


def nonce_for(row: Approval, session_id: str) -> str:
    """The nonce of a dialog that this browser session opens now; good for two minutes."""
    until = clock.epoch_s() + int(DIALOG_LIVES.total_seconds())
    return f"{until}.{keyring.sign(PURPOSE, _bound(row, session_id, until))}"


def challenge(approval_id: str, digest: str, nonce: str) -> bytes:
    """What a passkey signs for this decision, so that it can be checked years later (SEC-39)."""
    said = f"assent.decision.v1\n{approval_id}\n{digest}\n{nonce}"
    return hashlib.sha256(said.encode()).digest()


def to_type(row: Approval) -> str:
    """What has to be typed before an L4 command may be approved: its target, else its code."""
    if row.risk != Risk.L4:
        return ""
    return row.target_label or row.command


async def attempt(
    person: Principal, approval_id: str, decision: Decision, browser: Browser
) -> Approval:
    """Decide; an attempt that nobody could make in the dialog is put on record (SEC-74).

    Raises:
        What `decide` raises.
    """
    try:
        return await db.transaction(decide, person, approval_id, decision, browser)
    except (NotDecidedHere, NotAnApprover, NotFound) as refused:
        await db.transaction(note_forged, person, approval_id, refused.reason)
        raise


def decide(
    work: Work, person: Principal, approval_id: str, decision: Decision, browser: Browser
) -> Approval:
    """Approve or deny, as the person of the browser session and nobody else.

    The very same decision, posted twice by the same browser session, is one.

    Raises:
        NotFound: there is no such approval for this person.
        NotAnApprover: they may see it, and not decide it.
        ApprovalClosed: it was decided or is over; the row says how.
        NotDecidedHere, DialogTooOld: digest or nonce are not those of a dialog of this session.
        CannotRunAnyMore: what it is about has changed, so that nothing could come of it.
        Invalid: the typed text is not the target's name, or the reason is too long.
        StepUpNeeded: L4 takes a sign-in not older than five minutes, or a passkey's assertion.
    """
    now = clock.now()
    acting.now_acting(work.connection, person, now)  # held until the commit (SEC-33)
    row = work.session.get(Approval, (person.tenant_id, approval_id), populate_existing=True)
    if row is None or not approval_rights.may_see(work.session, person, row):
        raise NotFound
    if not approval_rights.may_decide(work.session, person, row):
        raise NotAnApprover
    if row.state != ApprovalState.OPEN or row.expires_at <= now:
        return _repeated(row, person, decision)
    _check_dialog(row, person, decision)
    if decision.verdict == "approve":
        _check_consent(work, row, decision, browser)
    if len(decision.reason) > LONGEST_REASON:
        raise Invalid(FieldError("reason", N_("At most 500 characters.")))
    if not _write(work, row, person, decision, browser):
        work.session.refresh(row)
        return _repeated(row, person, decision)
    work.session.refresh(row)
    said = {"reason": row.reason} if row.reason else None
    approval_closing.record(work, row, row.state, person, said=said)
    approval_events.tell(work, row)
    return row


def note_forged(work: Work, actor: Principal, approval_id: str, why: str) -> None:
    """Put on record that somebody tried to decide what they were not shown, or may not."""
    facts.record(
        work,
        "identity.approval.forged",
        actor,
        target=("approval", approval_id) if ids.is_ulid(approval_id) else None,
        outcome="refused",
        stage="authorize",
        reason=why,
    )


def _repeated(row: Approval, person: Principal, decision: Decision) -> Approval:
    is_same = (
        row.decided_by == person.user_id
        and row.decision_session_id == person.session_id
        and row.digest == decision.digest
        and (row.state == ApprovalState.DENIED) == (decision.verdict == "deny")
    )
    if is_same:
        return row
    raise ApprovalClosed(row)


def _check_dialog(row: Approval, person: Principal, decision: Decision) -> None:
    until, _, mac = decision.nonce.partition(".")
    is_number = until.isascii() and until.isdigit() and len(until) <= 12
    bound = _bound(row, person.session_id or "", int(until) if is_number else 0)
    if decision.digest != row.digest or not keyring.verifies(PURPOSE, bound, mac):
        raise NotDecidedHere
    if int(until) < clock.epoch_s():
        raise DialogTooOld


def _check_consent(work: Work, row: Approval, decision: Decision, browser: Browser) -> None:
    if approval_staleness.changed_targets(work.session, row):
        raise CannotRunAnyMore
    wanted = to_type(row)
    if wanted and decision.typed.strip() != wanted.strip():
        raise Invalid(FieldError("typed", N_("Type exactly what stands in bold.")))
    if wanted and not browser.is_fresh and browser.assertion is None:
        raise StepUpNeeded


def _write(
    work: Work, row: Approval, person: Principal, decision: Decision, browser: Browser
) -> bool:
    now, denies = clock.now(), decision.verdict == "deny"
    won = _DECIDE.run(
        work.connection,
        tenant_id=row.tenant_id,
        id=row.id,
        digest=decision.digest,
        state=decision.state.value,
        person_id=person.user_id,
        session_id=person.session_id,
        surface=browser.surface,
        user_agent=browser.user_agent[:500],
        typed=decision.typed.strip()[:500] or None,
        assertion=browser.assertion,
        reason=decision.reason.strip() or None,
        closed_at=now if denies else None,
        closed_by=person.user_id if denies else None,
        now=now,
    )
    return won.rowcount == 1


def _bound(row: Approval, session_id: str, until: int) -> str:
    return "\n".join((session_id, row.id, row.digest, row.preview_digest, str(until)))
