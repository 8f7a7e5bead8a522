"""The ways a run's execution is broken off; how it then ends is written in `ending.py`."""


class Cancelled(Exception):
    """Somebody stopped the run, or the standing of its principal is gone.

    Attributes:
        reason: `by_user`, `user_disabled`, `delegation_revoked`, `not_member`,
            `conversation_deleted`, `agent_disabled`, `nothing_to_do`.
    """

    def __init__(self, reason: str = "by_user") -> None:
        super().__init__(reason)
        self.reason = reason


class LeaseLost(Exception):
    """Another worker took the run over; nothing more may be written here (RUN-52)."""


class OutcomeUnknown(Exception):
    """An outside effect may or may not have happened; a person has to look (RUN-51)."""

    def __init__(self, call_id: str) -> None:
        super().__init__(call_id)
        self.call_id = call_id


class RunFailed(Exception):
    """The run cannot go on: model, configuration, or a fault of our own.

    Attributes:
        reason: `model_<fault>`, `truncated`, `context_overflow`, `flawed`, `failing`,
            `repeating`, `config_changed`, `engine_unavailable`, `internal`.
        public: a sentence for people.
    """

    def __init__(self, reason: str, public: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.public = public


class LimitReached(Exception):
    """The system stops the run: `steps`, `tokens`, `money`, `active_time`, `daily_tokens`."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit
