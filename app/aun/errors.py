"""What a method refuses, as clients of AUN know it: a number, a text, `retryable` (aun.md, 11)."""

from typing import Any, ClassVar

from app.kernel.errors import AppError
from app.kernel.i18n import N_


class AunError(AppError):
    """A method was refused.

    Attributes:
        code: the number on the wire; the client picks its exception class by it.
        text: the message on the wire, which clients search for words; never translated.
        data: further members of `error.data`; `retryable` overrides the client's class.
    """

    code: ClassVar[int] = -32602
    reason = "aun_refused"
    status = 400
    says = N_("The message server refused this.")

    def __init__(self, text: str = "", **data: Any) -> None:
        super().__init__(**data)
        self.text = text or self.reason.replace("_", " ")
        self.data = data

    def __str__(self) -> str:
        return self.text


class BadParams(AunError):
    """The parameters are not usable as they are."""

    code = -32602
    reason = "bad_params"
    status = 422
    says = N_("The message server cannot use this as it is.")


class BadRequestFrame(AunError):
    """It is no request object."""

    code = -32600
    reason = "bad_request"


class UnknownMethod(AunError):
    """There is no such method here."""

    code = -32601
    reason = "unknown_method"
    status = 404


class NotConnected(AunError):
    """Called before `auth.connect`."""

    code = -32013
    reason = "not_connected"
    status = 401


class ProtocolVersion(AunError):
    """No protocol version in common."""

    code = -32000
    reason = "protocol_version"


class BadToken(AunError):
    """The access token counts for nothing; logging in anew helps."""

    code = 4001
    reason = "bad_token"
    status = 401


class BadNonce(AunError):
    """The nonce is not the one of this socket."""

    code = 4010
    reason = "bad_nonce"
    status = 401


class LoginFailed(AunError):
    """A step of the login failed."""

    code = -32001
    reason = "login_failed"
    status = 401


class NotAdmitted(AunError):
    """This name may not register, or this AID is shut out."""

    code = -32003
    reason = "not_admitted"
    status = 403


class NotAParty(AunError):
    """The caller takes no part in it."""

    code = -32004
    reason = "not_a_party"
    status = 403
    says = N_("You take no part in this, or cannot act in it now.")


class NoSuchParty(AunError):
    """The AID is not known here, or is not reachable any more."""

    code = -32008
    reason = "unknown_aid"
    status = 404
    says = N_("Nobody can be reached under this AID.")


class VersionConflict(AunError):
    """The name is taken, or somebody was faster."""

    code = -32009
    reason = "version_conflict"
    status = 409


class BadSignature(AunError):
    """A signature inside the parameters is not the caller's, or not of these."""

    code = -32051
    reason = "bad_client_signature"


class Throttled(AunError):
    """Too much at once; `data.retry_after_ms` says when to come back."""

    code = -32429
    reason = "throttled"
    status = 429
    says = N_("Too much at once. Wait a moment, then try again.")

    def __init__(self, text: str = "rate limited", *, retry_after_ms: int = 1_000) -> None:
        super().__init__(text, retryable=True, retry_after_ms=retry_after_ms)


class StaleKeys(AunError):
    """Encrypted to keys that are not current: the client fetches the directory and sends again."""

    code = -33011
    reason = "stale_recipient_keys"


class StaleEpoch(AunError):
    """The group's epoch went on."""

    code = -33012
    reason = "stale_epoch"
    says = N_("The group changed meanwhile. Send it again.")


class StateMismatch(AunError):
    """The group's state is not the one this builds on."""

    code = -33050
    reason = "state_mismatch"


class NoSuchProposal(AunError):
    """There is no such proposal of a group state."""

    code = -33052
    reason = "unknown_proposal"


class GroupNotFound(AunError):
    """There is no such group, or not for this caller."""

    code = -33001
    reason = "group_not_found"
    status = 404
    says = N_("There is no such group.")

    def __init__(self, text: str = "group not found") -> None:
        super().__init__(text, retryable=False)


class GroupInactive(AunError):
    """The group is suspended or dissolved, or its name is taken."""

    code = -33002
    reason = "group_inactive"
    status = 409
    says = N_("The group is not active.")


class GroupRefused(AunError):
    """The group's rules do not allow it; the words tell the client whether to go on."""

    code = -33004
    reason = "group_refused"
    status = 403
    says = N_("The rules of the group do not allow this.")
