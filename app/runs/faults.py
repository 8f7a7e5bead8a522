"""What the model may know of a call that raised; the cause stays private (RUN-41, RUN-88)."""

import traceback

import structlog

from app.commands.errors import CallerGone
from app.commands.refused import Refused as CommandRefused
from app.kernel import i18n
from app.kernel.errors import AppError, Invalid
from app.runs.errors import LeaseLost
from app.runs.outcome import Refused, Result, Unknown
from app.runs.session import RunSession
from app.runs.tool import Prepared

log = structlog.get_logger(__name__)

INTERNAL = "internal"
SAYS_INTERNAL = "The fault is ours, and it has been written down. Nothing was changed."


def result_of(run: RunSession, call: Prepared, fault: Exception) -> Result:
    """The one result of a call that raised: refused, or unknown where it reached outside.

    Raises:
        LeaseLost: the fault is that the run is not ours any more.
    """
    if isinstance(fault, CallerGone):
        raise LeaseLost from fault
    if isinstance(fault, AppError):
        return refusal_of(run, fault)
    if call.tool.effect == "external":
        return Unknown(_diagnostic(call, fault))
    return internal(call, fault)


def internal(call: Prepared, fault: Exception) -> Refused:
    """The refusal of a call that fell over here, with nothing of it committed."""
    return Refused(
        reason=INTERNAL,
        advice="reread_state",
        detail=SAYS_INTERNAL,
        diagnostic=_diagnostic(call, fault),
    )


def _diagnostic(call: Prepared, fault: Exception) -> str:
    log.error("tool_failed", tool=call.call.tool, call_id=call.call.id, exc_info=fault)
    return "".join(traceback.format_exception(fault))


def refusal_of(run: RunSession, error: AppError) -> Refused:
    """A refusal of a stage or of a tool, in the words of the principal's language."""
    stage = error.stage if isinstance(error, CommandRefused) else None
    return Refused(
        reason=error.reason,
        stage=stage,
        advice=error.advice or None,
        detail=words_of(error, run.facts.locale),
        facts=_facts(error, run.facts.locale),
    )


def words_of(error: AppError, locale: str) -> str:
    """What is said of a refusal, in one language."""
    if isinstance(error, CommandRefused):
        return error.words(locale)
    with i18n.speaking(locale):
        return i18n.gettext(error.says) % error.facts


def _facts(error: AppError, locale: str) -> dict[str, object]:
    facts = dict(error.facts)
    if isinstance(error, Invalid | CommandRefused) and error.errors:
        with i18n.speaking(locale):
            facts["fields"] = [
                {
                    "field": each.pointer,
                    "problem": i18n.gettext(each.says) % each.facts,
                    **each.facts,
                }
                for each in error.errors
            ]
    return {name: value for name, value in facts.items() if _is_plain(value)}


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool | list | dict | None)
