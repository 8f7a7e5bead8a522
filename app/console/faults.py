"""Why something outside could not be reached or did not answer, as people read it."""

from app.kernel.i18n import N_

FAULTS = {
    "name": N_("The name has no address."),
    "connection": N_("No connection came about."),
    "timeout": N_("No answer came in time."),
    "encoding": N_("The answer could not be read."),
    "size": N_("The answer was too long."),
    "no_address": N_("Nobody set an address for it."),
    "performer_lost": N_("The server stopped after it was sent."),
}
NOT_CALLED = N_("This address must not be called from here.")
GUARDED = {"address", "scheme", "port", "credentials", "url", "unix_socket"}


def fault(error: str) -> str:
    """What went wrong with a try, as people read it; English source text."""
    return NOT_CALLED if error in GUARDED else FAULTS.get(error, "")
