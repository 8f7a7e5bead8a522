"""What can be refused, with a stable reason and facts; each door turns it into words and codes.

`says` is English source text in gettext form, with `%(name)s` for facts; the doors translate it.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from app.kernel.i18n import N_


class AppError(Exception):
    """Something was refused.

    Attributes:
        reason: stable code, part of the wire (`last_owner`).
        status: the HTTP status of the doors that speak HTTP.
        says: the sentence for people, in English, with `%(fact)s` in it.
        advice: what a program had best do next, one of the words of `spec/commands.md` §4, or none.
        facts: what the sentence and a program need to know.
    """

    reason: ClassVar[str] = "refused"
    status: ClassVar[int] = 400
    says: ClassVar[str] = N_("This cannot be done.")
    advice: ClassVar[str] = ""

    def __init__(self, **facts: Any) -> None:
        super().__init__(self.reason)
        self.facts = facts


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field. `pointer` is its name, nested ones joined by `/`."""

    pointer: str
    says: str
    facts: dict[str, Any] = field(default_factory=dict)


class Invalid(AppError):
    """The input does not do; `errors` say what and where."""

    reason = "invalid_input"
    status = 422
    says = N_("Some fields need another look.")
    advice = "fix_arguments"

    def __init__(self, *errors: FieldError, **facts: Any) -> None:
        super().__init__(**facts)
        self.errors = errors


class NotFound(AppError):
    """There is no such thing, or not for this caller: the two look alike (UI-26)."""

    reason = "not_found"
    status = 404
    says = N_("There is nothing here, or it is not yours to see.")
    advice = "do_not_retry"


class PermissionDenied(AppError):
    """The caller lacks a permission."""

    reason = "permission_denied"
    status = 403
    says = N_("Your roles do not allow this.")
    advice = "do_not_retry"


class Conflict(AppError):
    """Somebody was faster, or the thing is no longer as it was."""

    reason = "conflict"
    status = 409
    says = N_("It has changed meanwhile. Look at it again.")
    advice = "reread_state"


class TooMany(AppError):
    """Too often; `retry_after_s` says when to come back."""

    reason = "rate_limited"
    status = 429
    says = N_("Too many tries. Wait a moment and try again.")
    advice = "retry_later"

    def __init__(self, retry_after_s: int, **facts: Any) -> None:
        super().__init__(retry_after_s=retry_after_s, **facts)
        self.retry_after_s = retry_after_s


class Busy(AppError):
    """The database or a bounded resource had no place in time."""

    reason = "busy"
    status = 503
    says = N_("The server is busy. Try again in a moment.")
    advice = "retry_later"


class MethodNotAllowed(AppError):
    """The address exists, but not for this method."""

    reason = "method_not_allowed"
    status = 405
    says = N_("This address does not take that kind of request.")


class BadRequest(AppError):
    """The request cannot be read."""

    reason = "bad_request"
    status = 400
    says = N_("The request could not be understood.")
