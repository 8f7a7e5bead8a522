"""`/v1/runs`: what agents did for a person, and stopping one. No thought is in here (UI-12).

For the principal's user, auditors and administrators; what is not theirs does not exist.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field
from sqlmodel import Session

from app.api.problem_docs import PROBLEMS
from app.api.strict import Strict
from app.api.wire import Wire
from app.identity import bearer
from app.identity.deps import Caller
from app.identity.doors import Door
from app.identity.principal import Principal, Scope
from app.kernel import db, ids
from app.kernel.db import Work
from app.kernel.errors import NotFound, PermissionDenied
from app.runs import cancelling, reading, timeline
from app.runs.reading import Wanted
from app.runs.run_models import ModelRequest, Run, RunInput, ToolCall
from app.runs.timeline import Timeline, Turn

router = APIRouter(prefix="/v1", tags=["runs"], route_class=Strict)

State = Literal[
    "queued",
    "running",
    "suspended",
    "completed",
    "failed",
    "canceled",
    "interrupted",
    "outcome_unknown",
]


class RunSummary(Wire):
    """One run, as it stands."""

    run_id: str
    kind: Literal["conversation", "work", "delegated", "scheduled"]
    state: State
    reason: str | None
    public_error: str | None
    agent_id: str
    release_id: str | None
    user_id: str | None
    conversation_id: str | None
    origin_message_id: str | None
    parent_run_id: str | None
    root_run_id: str
    turn: int
    round: int
    step_limit: int
    steps_used: int = Field(description="Of the root run, with all it handed over.")
    tokens_used: int
    cost_micros: int | None = Field(description="Millionths of the currency; null: not known.")
    currency: str | None
    active_ms: int
    queued_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    cancel_requested_at: datetime | None

    @classmethod
    def of(cls, row: Run) -> "RunSummary":
        """As the wire has it."""
        own = {name: getattr(row, name) for name in cls.model_fields if name != "run_id"}
        return cls.model_validate({**own, "run_id": row.id})


class InputShown(Wire):
    """A message the run heard, and what became of it."""

    message_id: str
    mode: Literal["steering", "follow_up"]
    state: str
    reason: str | None
    round: int | None
    arrived_at: datetime
    accepted_at: datetime | None
    settled_at: datetime | None

    @classmethod
    def of(cls, row: RunInput) -> "InputShown":
        """As the wire has it."""
        return cls.model_validate({name: getattr(row, name) for name in cls.model_fields})


class RequestShown(Wire):
    """One attempt to ask the model."""

    attempt: int
    provider: str
    model: str
    model_version: str | None
    state: str
    finish: str | None
    public_error: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_micros: int | None
    currency: str | None
    started_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, row: ModelRequest) -> "RequestShown":
        """As the wire has it."""
        return cls.model_validate({name: getattr(row, name) for name in cls.model_fields})


class CallShown(Wire):
    """One tool call; secrets in its arguments are marks."""

    tool_call_id: str
    tool: str
    kind: Literal["command", "framework", "mcp", "delegate"]
    command: str | None
    version: int | None
    arguments: dict[str, Any]
    state: str
    stage: str | None
    reason: str | None
    advice: str | None
    public_error: str | None
    approval_id: str | None
    child_run_id: str | None
    audit_seq: int | None
    timings: dict[str, Any] | None
    started_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, row: ToolCall) -> "CallShown":
        """As the wire has it."""
        named = {"tool_call_id": row.id, "arguments": row.arguments_redacted}
        own = {name: getattr(row, name) for name in cls.model_fields if name not in named}
        return cls.model_validate(own | named)


class TurnShown(Wire):
    """One turn: its requests, its calls, and the messages it sent."""

    turn: int
    started_at: datetime
    requests: list[RequestShown]
    calls: list[CallShown]
    message_ids: list[str]

    @classmethod
    def of(cls, turn: Turn) -> "TurnShown":
        """As the wire has it."""
        return cls(
            turn=turn.number,
            started_at=turn.started_at,
            requests=[RequestShown.of(each) for each in turn.requests],
            calls=[CallShown.of(each.row) for each in turn.calls],
            message_ids=[each.message_id for each in turn.said],
        )


class RunShown(RunSummary):
    """One run with everything it heard and did."""

    inputs: list[InputShown]
    turns: list[TurnShown]


class RunPage(Wire):
    """A page; `next` and `previous` are values of `cursor`."""

    runs: list[RunSummary]
    total: int
    next: str | None
    previous: str | None


@router.get("/runs", responses=PROBLEMS)
async def index(
    caller: Caller,
    agent_id: Annotated[str, Query(alias="agentId", max_length=26)] = "",
    state: State | Literal["all"] = "all",
    cursor: Annotated[str, Query(max_length=2_000)] = "",
) -> RunPage:
    """The runs the caller may see, the newest first."""
    bearer.require(caller, Scope.COMMANDS_READ, Door.V1)
    wanted = Wanted(agent_id=agent_id, state="" if state == "all" else state)
    page = await db.read(reading.listed, caller, wanted, cursor or None)
    return RunPage(
        runs=[RunSummary.of(each.run) for each in page.rows],
        total=page.total,
        next=page.next,
        previous=page.previous,
    )


@router.get("/runs/{runId}", responses=PROBLEMS)
async def one(caller: Caller, run_id: Annotated[str, Path(alias="runId")]) -> RunShown:
    """One run; another's is not found."""
    bearer.require(caller, Scope.COMMANDS_READ, Door.V1)
    run, told = await db.read(_told, caller, _known(run_id))
    return RunShown(
        **RunSummary.of(run).model_dump(),
        inputs=[InputShown.of(each.row) for each in told.heard],
        turns=[TurnShown.of(turn) for turn in told.turns],
    )


@router.post("/runs/{runId}/cancellation", responses=PROBLEMS)
async def cancel(caller: Caller, run_id: Annotated[str, Path(alias="runId")]) -> RunSummary:
    """Ask a run to stop; `state` says canceled when it has. One that is over stays as it is."""
    bearer.require(caller, Scope.COMMANDS_INVOKE, Door.V1)
    return RunSummary.of(await db.transaction(_cancel, caller, _known(run_id)))


def _known(run_id: str) -> str:
    if not ids.is_ulid(run_id):
        raise NotFound
    return run_id


def _told(session: Session, caller: Principal, run_id: str) -> tuple[Run, Timeline]:
    run, _ = reading.one(session, caller, run_id)
    return run, timeline.of_run(session, run, sees_thoughts=False)


def _cancel(work: Work, caller: Principal, run_id: str) -> Run:
    run, sight = reading.one(work.session, caller, run_id)
    if not sight.may_stop:
        raise PermissionDenied
    cancelling.cancel(work, run, caller)
    work.session.refresh(run)
    return run
