"""The kinds of faults of a model: which are worth another attempt, and what people read (RUN-102).

The public sentence is ours, and nothing of the provider's text is in it; that text goes to the
private diagnostic (RUN-41).
"""

from app.kernel.i18n import N_
from app.runs.models.protocol import ModelFault

DIAGNOSTIC_LIMIT = 8_000  # characters

RETRYABLE = frozenset({"connection", "timeout", "cut", "rate_limited", "overloaded", "server"})

PUBLIC = {
    "connection": N_("The model could not be reached."),
    "timeout": N_("The model did not answer in time."),
    "cut": N_("The model's answer broke off."),
    "rate_limited": N_("The model's provider takes no more requests for now."),
    "overloaded": N_("The model's provider is overloaded."),
    "server": N_("The model's provider had a fault of its own."),
    "overflow": N_("The conversation is longer than the model can read."),
    "authentication": N_("The model's provider did not accept the key."),
    "not_found": N_("The model's provider does not know this model."),
    "quota": N_("The account at the model's provider is used up."),
    "rejected": N_("The model's provider rejected the request."),
    "filter": N_("The model's provider withheld the answer."),
    "misconfigured": N_("The model is not set up completely."),
}


def fault(
    kind: str,
    *,
    retry_after_s: float | None = None,
    public: str = "",
    diagnostic: str = "",
) -> ModelFault:
    """A fault of one of the kinds of `PUBLIC`, with what follows from the kind filled in."""
    return ModelFault(
        kind,
        retryable=kind in RETRYABLE,
        retry_after_s=retry_after_s,
        public=public or PUBLIC[kind],
        diagnostic=diagnostic[:DIAGNOSTIC_LIMIT],
    )
