"""What a person reads of runs: how one stands, what became of a message, of a call, and why.

The six ends of a run stay six in words too (UI-10), and red is for failure alone (UI-86).
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from app.kernel import clock
from app.kernel.i18n import N_, gettext
from app.runs.models import offline
from app.runs.reading import Chip, Standing
from app.runs.run_models import ModelRequest, Run, ToolCall
from app.runs.states import CallState, Hold, InputState, RunState, WaitKind


@dataclass(frozen=True, slots=True)
class Word:
    """How something stands, in the reader's language: a tone, an icon and words."""

    tone: str
    icon: str
    text: str


WAITS = {
    WaitKind.APPROVAL: N_("Waiting for a person's decision"),
    WaitKind.RUN: N_("Waiting for another agent"),
    WaitKind.CALL: N_("Waiting for an answer from outside"),
    WaitKind.MESSAGE: N_("Waiting for a message"),
    WaitKind.TIMER: N_("Waiting for a time to come"),
    WaitKind.PAUSE: N_("Paused"),
}
CANCELED = {
    "user_disabled": N_("Stopped: its person's account was switched off"),
    "delegation_revoked": N_("Stopped: it may not act for its person any more"),
    "not_member": N_("Stopped: it takes no part in the conversation any more"),
    "conversation_deleted": N_("Stopped: the conversation is gone"),
    "agent_disabled": N_("Stopped: the agent was switched off"),
    "context_reset": N_("Stopped: its memory of the conversation was cleared"),
    "nothing_to_do": N_("Nothing was left to do"),
}
LIMITS = {
    "steps": N_("Interrupted: it used all its steps"),
    "tokens": N_("Interrupted: it used all its tokens"),
    "money": N_("Interrupted: it used all its money"),
    "active_time": N_("Interrupted: it used all its time"),
    "daily_tokens": N_("Interrupted: the agent used all its tokens of the day"),
    "daily_money": N_("Interrupted: the agent used all its money of the day"),
    "crash_loop": N_("Interrupted: it broke off several times"),
}
FAILURES = {
    "truncated": N_("Failed: the model's answers were cut off"),
    "context_overflow": N_("Failed: there was more to read than the model takes"),
    "flawed": N_("Failed: the model asked for calls that cannot be made"),
    "failing": N_("Failed: too many calls failed in a row"),
    "repeating": N_("Failed: the same call was made again and again"),
    "config_changed": N_("Failed: the agent was changed while the run waited"),
    "internal": N_("Failed: the fault is ours"),
}
MODEL_FAILED = N_("Failed: the model gave no answer")
HOLDS = {
    Hold.PAUSED: N_("waits: the agent is paused"),
    Hold.QUOTA: N_("waits: enough was asked for the moment"),
    Hold.WAIT: N_("waits"),
    Hold.STEPS: N_("waits for the next run"),
    Hold.BUSY: N_("waits its turn"),
    Hold.APPROVAL: N_("waits for your decision"),
}
UNFINISHED = {
    InputState.FAILED: N_("not finished: the run failed"),
    InputState.CANCELED: N_("not finished: the run was stopped"),
    InputState.INTERRUPTED: N_("not finished: the run was interrupted"),
}
DROPPED = {
    "not_member": N_("dropped: one of the two is not in this conversation any more"),
    "deleted": N_("dropped: the message or the conversation is gone"),
    "context_reset": N_("dropped: the agent's memory of this conversation was cleared"),
    "principal_disabled": N_("dropped: the agent may not act for you any more"),
    "unlinked": N_("dropped: the client that wrote it is not linked to you any more"),
    "stopped": N_("not finished: the run was stopped"),
}
OTHERWISE_DROPPED = N_("dropped")
CALLS = {
    CallState.STARTED: Word("accent", "dot", N_("Running")),
    CallState.WAITING: Word("accent", "clock", N_("Waiting")),
    CallState.DONE: Word("ok", "check", N_("Done")),
    CallState.FAILED: Word("danger", "alert", N_("Refused")),
    CallState.DENIED: Word("neutral", "minus", N_("Denied")),
    CallState.EXPIRED: Word("neutral", "clock", N_("Expired")),
    CallState.NOT_STARTED: Word("neutral", "minus", N_("Not started")),
    CallState.INTERRUPTED: Word("neutral", "stop", N_("Interrupted: it did not take effect")),
    CallState.UNKNOWN: Word("warn", "alert", N_("Outcome unknown")),
}
FAULTS = {  # of one attempt to ask a model
    "cut": N_("Attempt %(number)s broke off."),
    "refused": N_("Attempt %(number)s was refused."),
    "failed": N_("Attempt %(number)s failed."),
    "cancelled": N_("Attempt %(number)s was stopped."),
    "abandoned": N_("Attempt %(number)s was given up."),
}


def of_run(each: Standing) -> Word:
    """How a run stands; "stopped" is said of one whose end is stored, and never before (UI-10)."""
    if each.is_stopping:
        return Word("neutral", "stop", gettext("Stopping…"))
    run = each.run
    match RunState(run.state):
        case RunState.QUEUED:
            return Word("neutral", "clock", gettext("Waiting to begin"))
        case RunState.RUNNING:
            return Word("accent", "dot", gettext("Working"))
        case RunState.SUSPENDED:
            return Word("accent", "pause", gettext(_wait(each)))
        case RunState.COMPLETED:
            silent = gettext("Finished without a message")
            return Word("ok", "check", silent if each.is_silent else gettext("Done"))
        case RunState.CANCELED:
            return Word("neutral", "stop", _canceled(each))
        case RunState.INTERRUPTED:
            said = LIMITS.get(run.reason or "", N_("Interrupted"))
            return Word("neutral", "stop", gettext(said))
        case RunState.OUTCOME_UNKNOWN:
            return Word("warn", "alert", gettext("Outcome unknown: somebody has to look"))
        case RunState.FAILED:
            return Word("danger", "alert", gettext(_failure(run)))


def of_call(call: ToolCall) -> Word:
    """How a tool call stands; a refusal names its stage."""
    if call.resolved_as:
        found = N_("It happened") if call.resolved_as == "happened" else N_("It did not happen")
        return Word("neutral", "check", gettext(found))
    word = CALLS[CallState(call.state)]
    if call.state == CallState.FAILED and call.stage:
        return Word(word.tone, word.icon, gettext("Refused at %(stage)s") % {"stage": call.stage})
    return Word(word.tone, word.icon, gettext(word.text))


def of_chip(chip: Chip) -> str:
    """What became of a message for one agent (UI-9)."""
    row = chip.row
    match InputState(row.state):
        case InputState.QUEUED:
            if row.hold:
                return gettext(HOLDS[Hold(row.hold)])
            return gettext("waits for this run to end") if _is_next(chip) else gettext("queued")
        case InputState.ACCEPTED:
            return gettext("accepted")
        case InputState.COMPLETED:
            return gettext("used")
        case InputState.DROPPED:
            return gettext(DROPPED.get(row.reason or "", OTHERWISE_DROPPED))
        case _:
            return gettext(UNFINISHED[InputState(row.state)])


def is_unfinished(chip: Chip) -> bool:
    """Whether sending the message again is worth offering."""
    return InputState(chip.row.state) in UNFINISHED or chip.row.reason == "stopped"


def of_request(request: ModelRequest) -> str:
    """What became of one attempt to ask the model."""
    return gettext(FAULTS.get(request.state, FAULTS["cut"])) % {"number": request.attempt}


def model_name(name: str) -> str:
    """What a model is called; the offline planner says what it is in every language (RUN-106)."""
    return gettext(offline.LABEL) if name == offline.NAME else name


def elapsed(run: Run) -> timedelta | None:
    """How long it has been at it, or was."""
    if run.started_at is None:
        return None
    return (run.ended_at or clock.now()) - run.started_at


def as_globals() -> dict[str, Any]:
    """For templates."""
    return {
        "run_word": of_run,
        "call_word": of_call,
        "chip_word": of_chip,
        "is_unfinished": is_unfinished,
        "request_word": of_request,
        "elapsed": elapsed,
        "model_name": model_name,
    }


def _wait(each: Standing) -> str:
    return WAITS[each.waits[0]] if each.waits else N_("Waiting")


def _canceled(each: Standing) -> str:
    if each.run.reason in CANCELED:
        return gettext(CANCELED[each.run.reason])
    if each.stopped_by:
        return gettext("Stopped by %(name)s") % {"name": each.stopped_by}
    return gettext("Stopped")


def _failure(run: Run) -> str:
    reason = run.reason or ""
    if reason.startswith("model_"):
        return MODEL_FAILED
    return FAILURES.get(reason, N_("Failed"))


def _is_next(chip: Chip) -> bool:
    return chip.row.mode == "follow_up" and chip.run is not None
