"""What deciding an approval refuses."""

from app.commands.approval_models import Approval
from app.kernel.errors import AppError
from app.kernel.i18n import N_


class ApprovalClosed(AppError):
    """It was decided by somebody else, or is over; `row` says how (CMD-13)."""

    reason = "approval_closed"
    status = 409
    says = N_("This request is closed already.")
    advice = "reread_state"

    def __init__(self, row: Approval) -> None:
        super().__init__(approvalId=row.id, state=row.state)
        self.row = row


class NotDecidedHere(AppError):
    """The digest or the nonce is not that of a dialog of this browser session (SEC-36)."""

    reason = "decision_not_shown"
    status = 409
    says = N_("This was not decided on what is shown here. Read it again, then decide.")
    advice = "reread_state"


class DialogTooOld(AppError):
    """The dialog was open for longer than two minutes: what it shows may be old."""

    reason = "dialog_too_old"
    status = 409
    says = N_("This page was open for a while. Read the request again, then decide.")
    advice = "reread_state"


class NotAnApprover(AppError):
    """The person may see it and not decide it (CMD-12)."""

    reason = "not_an_approver"
    status = 403
    says = N_("Somebody else decides this.")
    advice = "escalate_to_other_user"


class CannotRunAnyMore(AppError):
    """What it was asked for has changed since (UI-81)."""

    reason = "approval_stale"
    status = 409
    says = N_("What this is about has changed since it was asked for. Prepare it again.")
    advice = "ask_user"
