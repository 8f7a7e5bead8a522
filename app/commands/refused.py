"""How a refusal reads on the wire: stage, reason, advice, status and words, in the one table.

Source: commands.md, 3 and 4.
"""

from typing import Any

from app.commands.definition import Text
from app.commands.errors import Rejected
from app.kernel import i18n
from app.kernel.errors import AppError, FieldError
from app.kernel.i18n import N_

FIX, WAIT, NEVER = "fix_arguments", "wait_and_reread", "do_not_retry"
OTHER, REREAD, REPORT = "escalate_to_other_user", "reread_state", "report_to_user"
ASK, LATER = "ask_user", "retry_later"

# reason -> (status, advice, words)
_KNOWN: dict[str, tuple[int, str, str]] = {
    "unknown_command": (404, NEVER, N_("There is no such command, or it is not in force.")),
    "permission_denied": (403, NEVER, N_("Your roles do not allow this.")),
    "human_session_required": (
        403,
        ASK,
        N_("Only a person can do this, in the browser. No agent ever may."),
    ),
    "record_not_found": (404, NEVER, N_("There is no such record, or it is not yours to see.")),
    "delegation_paused": (
        403,
        NEVER,
        N_("This agent was paused. Its user can let it go on."),
    ),
    "invalid_input": (422, FIX, N_("Some fields need another look.")),
    "in_flight": (409, WAIT, N_("The same call is still at work. Look at it again in a moment.")),
    "key_reused": (422, FIX, N_("This key was used for another call. Take a new one.")),
    "key_required": (422, FIX, N_("This command needs an Idempotency-Key.")),
    "feature_not_entitled": (403, NEVER, N_("Your workspace does not have this feature.")),
    "sod_conflict": (
        403,
        OTHER,
        N_("You or your agent already ran %(conflictsWith)s. Somebody else has to do this."),
    ),
    "illegal_state": (
        409,
        REREAD,
        N_("It stands at %(currentState)s; this is possible from %(allowedFrom)s."),
    ),
    "version_conflict": (409, REREAD, N_("It has changed meanwhile. Look at it again.")),
    "duplicate_value": (409, FIX, N_("Another record has this value already.")),
    "assertion_failed": (422, REPORT, N_("A condition of this command does not hold.")),
    "invariant_failed": (422, REPORT, N_("What would come of it breaks a rule.")),
    "cross_field_failed": (422, REPORT, N_("Some fields do not go together.")),
    "computation_failed": (422, REPORT, N_("A value could not be computed.")),
    "roll_up_failed": (422, REPORT, N_("A sum could not be kept up to date.")),
    "approval_required": (
        428,
        ASK,
        N_("A person has to assent to exactly this call before it runs."),
    ),
    "approval_stale": (
        409,
        ASK,
        N_("What was assented to is no longer what would run. It has to be asked anew."),
    ),
    "approval_expired": (409, ASK, N_("The assent came too late or was not used in time.")),
    "approval_denied": (409, REPORT, N_("The person who decides said no.")),
    "approval_consumed": (
        409,
        REREAD,
        N_("This assent was used already; it is good for one call."),
    ),
}
_FAULT = N_("The fault is ours, and it has been written down. Nothing was changed.")


class Refused(AppError):
    """A stage said no. Nothing of the call stays but its refusal entry (CMD-5).

    Attributes:
        stage: where. Of a follow-up command that was refused it is `post_action`; the facts say
            `innerStage`, and status, advice and words are those of the command that followed.
        text: the words of a rule, in both languages, instead of `says`.
        errors: what is wrong with which field of the input.
    """

    def __init__(
        self,
        stage: str,
        rejection: Rejected,
        *,
        call_id: str,
        code: str,
        people_only: bool = False,
        inner: "Refused | None" = None,
    ) -> None:
        super().__init__(**rejection.facts)
        status, advice, says = _words_of(stage, rejection, inner)
        self.stage = stage
        self.reason = rejection.reason  # type: ignore[misc]
        self.status = status  # type: ignore[misc]
        self.advice = ASK if people_only and advice == NEVER else advice  # type: ignore[misc]
        self.says = rejection.says or says  # type: ignore[misc]
        self.text: Text | None = rejection.text
        self.errors: tuple[FieldError, ...] = rejection.errors
        self.call_id = call_id
        self.code = code

    def words(self, language: str) -> str:
        """What people are told, in their language."""
        if self.text is not None:
            return self.text.in_(language)
        with i18n.speaking(language):
            return i18n.gettext(self.says) % self._shown()

    def _shown(self) -> dict[str, Any]:
        return {
            name: ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
            for name, value in self.facts.items()
        }


def _words_of(stage: str, rejection: Rejected, inner: Refused | None) -> tuple[int, str, str]:
    if inner is not None:
        return inner.status, inner.advice, inner.says
    if rejection.is_fault:
        return 500, REREAD, _FAULT
    if rejection.reason in _KNOWN:
        return _KNOWN[rejection.reason]
    if (status := rejection.status) is not None:
        otherwise = NEVER if stage in {"load", "authorize"} else REPORT
        return status, rejection.advice or otherwise, rejection.says
    return 422, REPORT, rejection.says or N_("This cannot be done.")


def known_reasons() -> dict[str, tuple[int, str, str]]:
    """Every documented reason: status, advice, words (for the API's description and the tests)."""
    return dict(_KNOWN)
