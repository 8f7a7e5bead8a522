"""The states of a run and of what belongs to it; each move is one conditional UPDATE (RUN-60)."""

from enum import StrEnum


class RunKind(StrEnum):
    """Why a run is there."""

    CONVERSATION = "conversation"
    WORK = "work"
    DELEGATED = "delegated"
    SCHEDULED = "scheduled"


class RunState(StrEnum):
    """How a run stands; the last five are final and stay apart everywhere (RUN-6)."""

    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    INTERRUPTED = "interrupted"
    OUTCOME_UNKNOWN = "outcome_unknown"


class InputState(StrEnum):
    """What became of a message for an agent."""

    QUEUED = "queued"
    ACCEPTED = "accepted"
    ARCHIVED = "archived"
    DROPPED = "dropped"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    INTERRUPTED = "interrupted"


class Hold(StrEnum):
    """Why an input is still queued."""

    PAUSED = "paused"
    QUOTA = "quota"
    WAIT = "wait"
    STEPS = "steps"
    BUSY = "busy"
    APPROVAL = "approval"


class SenderKind(StrEnum):
    """Who wrote an input."""

    PERSON = "person"
    AGENT = "agent"
    PEER = "peer"
    SYSTEM = "system"


class Mode(StrEnum):
    """When an input is to be taken: while a run works, or after its answer (RUN-9)."""

    STEERING = "steering"
    FOLLOW_UP = "follow_up"


class CallState(StrEnum):
    """How a tool call stands."""

    STARTED = "started"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    DENIED = "denied"
    EXPIRED = "expired"
    NOT_STARTED = "not_started"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"


class CallKind(StrEnum):
    """What a tool call reaches."""

    COMMAND = "command"
    FRAMEWORK = "framework"
    MCP = "mcp"
    DELEGATE = "delegate"


class RequestState(StrEnum):
    """How one attempt of a model request stands."""

    STARTED = "started"
    DONE = "done"
    CUT = "cut"
    REFUSED = "refused"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


class Purpose(StrEnum):
    """What a model was asked for."""

    TURN = "turn"
    COMPACTION = "compaction"
    PARTICIPATION = "participation"


class WaitKind(StrEnum):
    """What a suspended run waits for."""

    APPROVAL = "approval"
    RUN = "run"
    CALL = "call"
    MESSAGE = "message"
    TIMER = "timer"
    PAUSE = "pause"


class EntryKind(StrEnum):
    """The kinds of transcript entries."""

    SYSTEM = "system"
    HISTORY = "history"
    INPUT = "input"
    RESPONSE = "response"
    RESULTS = "results"
    NOTE = "note"
    SUMMARY = "summary"


class TaskState(StrEnum):
    """How assigned work stands in the ledger."""

    OPEN = "open"
    WORKING = "working"
    REPORTED = "reported"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL_RUNS = frozenset(
    {
        RunState.COMPLETED,
        RunState.FAILED,
        RunState.CANCELED,
        RunState.INTERRUPTED,
        RunState.OUTCOME_UNKNOWN,
    }
)
LIVE_RUNS = frozenset(RunState) - FINAL_RUNS
OPEN_CALLS = frozenset({CallState.STARTED, CallState.WAITING})
