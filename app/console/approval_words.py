"""What ended a request for approval that nobody decided, in words."""

from app.kernel.i18n import N_, gettext

CANCELLED = {
    "run_canceled": N_("Cancelled: the run was stopped"),
    "run_failed": N_("Cancelled: the run failed"),
    "run_interrupted": N_("Cancelled: the run was interrupted"),
    "run_outcome_unknown": N_("Cancelled: the run ended"),
    "user_disabled": N_("Cancelled: its person's account was switched off"),
    "agent_disabled": N_("Cancelled: the agent was switched off"),
    "delegation_revoked": N_("Cancelled: the agent may not act for its person any more"),
    "delegation_expired": N_("Cancelled: the agent may not act for its person any more"),
}


def cancelled(why: str | None) -> str:
    """How a request that was cancelled ended."""
    return gettext(CANCELLED.get(why or "", N_("Cancelled")))
