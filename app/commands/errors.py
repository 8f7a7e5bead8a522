"""How a call ends badly: a stage rejects, the pipeline makes it a refusal with the stage's name.

Stage, reason and advice are the wire (commands.md, 3 and 4); the words are added at the doors.
"""

from typing import Any

from app.kernel.errors import AppError, FieldError


class Rejected(Exception):
    """A stage says no. It does not know its own name, nor the status: only why.

    `says` is English source text for people, with `%(fact)s` in it; a rule's own message comes as
    `text`, in both languages. `status` and `advice` are those of an
    error of another slice which it stands for.
    """

    is_fault = False

    def __init__(
        self,
        reason: str,
        *errors: FieldError,
        says: str = "",
        text: Any = None,
        status: int | None = None,
        advice: str = "",
        inner: Any = None,
        **facts: Any,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.says = says
        self.text = text
        self.status = status
        self.advice = advice
        self.inner = inner
        self.errors = errors
        self.facts = facts


class Fault(Rejected):
    """A bug, ours or a pack's: it refuses like a rule does, and is on record."""

    is_fault = True


class CallerGone(AppError):
    """The call's own guard said no: whoever made it no longer owns its work (CMD-26)."""

    reason = "caller_gone"
    status = 409
    advice = "reread_state"
