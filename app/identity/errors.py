"""What identity refuses."""

from app.kernel.errors import AppError
from app.kernel.i18n import N_


class AmbiguousCredentials(AppError):
    """A session cookie and an `Authorization` header in one request (SEC-1)."""

    reason = "ambiguous_credentials"
    status = 400
    says = N_("This request carries a person's session and an agent's token. Send one of them.")


class HumanSessionRequired(AppError):
    """An agent's token on a route of people (SEC-2)."""

    reason = "human_session_required"
    status = 403
    says = N_("This takes a person who is signed in, in a browser. A token cannot do it.")


class SignInRequired(AppError):
    """Nobody is signed in."""

    reason = "sign_in_required"
    status = 401
    says = N_("Sign in to go on.")


class CrossSite(AppError):
    """The request was made by a page of another origin."""

    reason = "cross_site"
    status = 403
    says = N_("This request came from another site and was not carried out.")


class CsrfToken(AppError):
    """The form's token is missing or of another browser session."""

    reason = "csrf_token"
    status = 403
    says = N_("This page is no longer current. Load it again and repeat what you did.")


class StepUpNeeded(AppError):
    """The sign-in is older than five minutes (SEC-38)."""

    reason = "step_up_required"
    status = 401
    says = N_("Confirm that it is you: your last sign-in is more than five minutes ago.")


class SignInFailed(AppError):
    """Wrong tenant, login or password: all look alike (SEC-41)."""

    reason = "sign_in_failed"
    status = 422
    says = N_("Login or password is wrong.")


class LinkInvalid(AppError):
    """A one-time link was used, is too old, or never was."""

    reason = "link_invalid"
    status = 404
    says = N_("This link was used already or has expired. Ask for a new one.")


class LastOwner(AppError):
    """A tenant keeps at least one active owner (SEC-10)."""

    reason = "last_owner"
    status = 409
    says = N_("This is the last active owner. Make somebody else an owner first.")


class BeyondYourRights(AppError):
    """Nobody gives away what they do not hold."""

    reason = "beyond_your_rights"
    status = 403
    says = N_("This role holds permissions that you do not hold yourself.")


class BuiltinRole(AppError):
    """A role that ships is not changed; a copy of it may be."""

    reason = "builtin_role"
    status = 409
    says = N_("Roles that ship with Assent stay as they are. Make a role of your own instead.")


class StillInUse(AppError):
    """Something depends on it."""

    reason = "still_in_use"
    status = 409
    says = N_("It is still in use: %(by)s.")


class WouldLoop(AppError):
    """An organisation cannot stand below itself."""

    reason = "would_loop"
    status = 409
    says = N_("An organisation cannot be moved below itself.")


class NotUsableNow(AppError):
    """It is in a state in which this cannot be done."""

    reason = "illegal_state"
    status = 409
    says = N_("This cannot be done in the state it is in (%(state)s).")


class ScopeUnknown(AppError):
    """A scope that does not exist was asked for."""

    reason = "invalid_scope"
    status = 422
    says = N_("One of the scopes does not exist.")


class PasskeyRefused(AppError):
    """A passkey did not prove anything: an unknown one, a wrong or late answer (SEC-39)."""

    reason = "passkey_refused"
    status = 400
    says = N_("This passkey could not be used here. Try again, or use another way to sign in.")


class LastWayIn(AppError):
    """A person keeps at least one way to sign in."""

    reason = "last_way_in"
    status = 409
    says = N_("This is your only way to sign in. Add another one first.")
