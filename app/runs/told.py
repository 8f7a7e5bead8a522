"""What happens in runs, for the streams and for the scheduler: ids and states, never arguments.

Each event is logged for the run's watcher and once more for auditors; what a sender may know of a
message goes to the sender too (RUN-80).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.access.standing import AUDIT_READ
from app.kernel import event_log
from app.kernel.db import Work
from app.kernel.event_log import Said
from app.kernel.events import Broadcast
from app.runs.run_models import Run, RunInput

RUN, TURN, CALL = "run.state", "run.turn", "tool_call.state"
INPUT, USAGE = "input.state", "run.usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint(Broadcast):
    """Something is there for the scheduler to look at; rows are the truth (RUN-61)."""

    what: str  # `input`, `run`, `wait`, `stop`
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """A run, as far as news of what happens in it tells: of its row, this never changes."""

    tenant_id: str
    id: str
    user_id: str | None
    conversation_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Began(Broadcast):
    """A request goes out: its text will grow in a node of its own. Never logged."""

    user_id: str
    run_id: str
    conversation_id: str | None
    turn: int
    thought_id: str
    attempt: int


def run(work: Work, row: Run) -> None:
    """A run is in another state."""
    data = {
        "conversation": row.conversation_id,
        "lane": row.lane_id,
        "state": row.state,
        "reason": row.reason,
    }
    event_log.append_all(work, row.tenant_id, _said(row.user_id, RUN, row.id, data))
    work.announce(Hint(tenant_id=row.tenant_id, what="run", id=row.id))


def turn(work: Work, row: Run | Whose, number: int, thought_id: str) -> None:
    """A response was accepted, or an attempt broke off: what the page shows of it is final."""
    event_log.append_all(work, row.tenant_id, _of_turn(row, number, thought_id))


def usage(work: Work, row: Run | Whose) -> None:
    """What a run used has changed."""
    event_log.append_all(work, row.tenant_id, _of_usage(row))


def response(work: Work, row: Run | Whose, number: int, thought_id: str) -> None:
    """The same two of a response that was accepted."""
    said = [*_of_usage(row), *_of_turn(row, number, thought_id)]
    event_log.append_all(work, row.tenant_id, said)


def call(work: Work, row: Run | Whose, made: Any) -> None:
    """A tool call is in another state."""
    event_log.append_all(work, row.tenant_id, _of_call(row, made))


def calls(work: Work, rows: Sequence[Any]) -> None:
    """Tool calls are in other states; each row also has `run_id` and what its run says of it."""
    said = [each for row in rows for each in _of_call(row, row, row.run_id)]
    if said:
        event_log.append_all(work, rows[0].tenant_id, said)


def _of_turn(row: Run | Whose, number: int, thought_id: str) -> list[Said]:
    data = {"conversation": row.conversation_id, "turn": number, "thought": thought_id}
    return _said(row.user_id, TURN, row.id, data)


def _of_usage(row: Run | Whose) -> list[Said]:
    return _said(row.user_id, USAGE, row.id, {"conversation": row.conversation_id})


def _of_call(row: Any, made: Any, run_id: str = "") -> list[Said]:
    data = {
        "run": run_id or row.id,
        "conversation": row.conversation_id,
        "turn": made.turn,
        "state": made.state,
        "rev": made.rev,
    }
    return _said(row.user_id, CALL, made.id, data)


def input(
    work: Work,
    row: RunInput,
    conversation_id: str,
    *,
    watcher_id: str | None,
    sender_id: str | None = None,
) -> None:
    """A message for an agent is in another state; its sender, a user, hears of it."""
    data = {
        "input": row.id,
        "conversation": conversation_id,
        "state": row.state,
        "hold": row.hold,
        "run": row.run_id,
    }
    said = [
        Said(kind=INPUT, subject=row.message_id, data=data, user_id=user_id)
        for user_id in {watcher_id, sender_id} - {None}
    ]
    if said:
        event_log.append_all(work, row.tenant_id, said)
    work.announce(Hint(tenant_id=row.tenant_id, what="input", id=row.id))


def _said(user_id: str | None, kind: str, subject: str, data: dict[str, Any]) -> list[Said]:
    said = [Said(kind=kind, subject=subject, data=data, permission=AUDIT_READ)]
    if user_id is not None:
        said.append(Said(kind=kind, subject=subject, data=data, user_id=user_id))
    return said
