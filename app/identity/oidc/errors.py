"""What a sign-in with a provider can end in, besides a session."""

from app.kernel.errors import AppError
from app.kernel.i18n import N_


class ProviderRefused(AppError):
    """What came back does not prove who the person is; `rule` says which check failed."""

    reason = "provider_refused"
    status = 400
    says = N_("Signing in with this provider did not work (%(rule)s). Start again.")

    def __init__(self, rule: str) -> None:
        super().__init__(rule=rule)
        self.rule = rule


class ProviderUnusable(AppError):
    """The provider cannot be reached, or what it says of itself will not do."""

    reason = "provider_unusable"
    status = 502
    says = N_("This provider cannot be used at the moment (%(rule)s). Sign in another way.")

    def __init__(self, rule: str) -> None:
        super().__init__(rule=rule)
        self.rule = rule


class NotLinked(AppError):
    """The provider's account belongs to nobody here; an e-mail address is no proof (SEC-23)."""

    reason = "login_not_linked"
    status = 403
    says = N_(
        "This account is not linked to anybody here yet. "
        "Sign in another way and link it in your settings."
    )


class LinkedElsewhere(AppError):
    """The provider's account belongs to somebody already."""

    reason = "login_taken"
    status = 409
    says = N_("This account is linked already.")
