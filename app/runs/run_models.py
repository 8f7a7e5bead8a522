"""The tables of runs (agent-loop.md, 2): what an agent heard, did and waits for.

The transcript is what the model saw: it can be rebuilt from entries and call records alone; a
checkpoint is a pointer with counters (RUN-59).
"""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, Index, Text, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from app.kernel.tables import json_field, one_of, owned
from app.runs.states import (
    CallKind,
    CallState,
    EntryKind,
    InputState,
    Mode,
    Purpose,
    RequestState,
    RunKind,
    RunState,
    SenderKind,
    TaskState,
    WaitKind,
)

_LIVE = text("kind = 'conversation' AND state IN ('queued', 'running', 'suspended')")
_WAITING = text("state = 'queued'")
_OPEN = text("satisfied_at IS NULL")


class Lane(SQLModel, table=True):
    """One agent, one principal, one conversation, one discussion: all that a run may touch.

    Attributes:
        party: `user:<id>`, or `peer:<AID>` for an outside peer without a link.
        discussion: the payload's `thread_id`; empty: none.
        reset_after_seq: of the event log; what is older never enters a context again.
        agent_streak: inputs of agents admitted in a row without a person's.
        hour_start, hour_used: the hour of the reply quota, and inputs admitted in it.
    """

    __tablename__: ClassVar[str] = "lane"
    __table_args__ = (
        owned("agent_id", "agent"),
        owned("user_id", "user"),
        owned("conversation_id", "conversation"),
        UniqueConstraint("tenant_id", "agent_id", "party", "conversation_id", "discussion"),
        Index(None, "tenant_id", "conversation_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    agent_id: str = Field(max_length=26)
    party: str = Field(max_length=210)
    user_id: str | None = Field(default=None, max_length=26)
    peer_aid: str | None = Field(default=None, max_length=200)
    conversation_id: str = Field(max_length=26)
    discussion: str = Field(default="", max_length=128)
    paused_at: datetime | None = None
    reset_after_seq: int | None = Field(default=None, sa_type=BigInteger)
    agent_streak: int = 0
    hour_start: datetime | None = None
    hour_used: int = 0
    created_at: datetime


class Run(SQLModel, table=True):
    """An agent's work on admitted inputs.

    Attributes:
        request_key: what asked for it, once: `message:<agent>:<message>`, `call:<parent call>`…
        config: the snapshot of the release when it was claimed first; `fingerprint` its digest.
        outside_pins: of the outside tools it had then, by their names here (RUN-96).
        actors: agent ids, the one that works first.
        scopes: of the delegations along the chain, intersected.
        root_run_id: the run whose steps are counted; itself, if nobody delegated it.
        claim_token: of this claim; every write names it (RUN-52, RUN-63).
        steps_used: on the root.
        round, turn, scope: where it is; a scope is the stretch in which sends are de-duplicated.
        tokens_used, cost_micros: of this run's requests, as far as they are known.
        note: what a person gave it to do, of a scheduled or delegated run.
    """

    __tablename__: ClassVar[str] = "run"
    __table_args__ = (
        owned("lane_id", "lane"),
        owned("agent_id", "agent"),
        owned("user_id", "user"),
        one_of("kind", RunKind),
        one_of("state", RunState),
        UniqueConstraint("tenant_id", "request_key"),
        Index(
            "uq_run_live",
            "tenant_id",
            "lane_id",
            unique=True,
            sqlite_where=_LIVE,
            postgresql_where=_LIVE,
        ),
        Index("ix_run_state", "state", "queued_at"),
        Index(None, "tenant_id", "agent_id", "queued_at"),
        Index("ix_run_user", "tenant_id", "user_id", "queued_at"),
        Index("ix_run_lane", "tenant_id", "lane_id", "queued_at"),
        Index("ix_run_parent", "tenant_id", "parent_run_id"),
        Index("ix_run_root", "tenant_id", "root_run_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    kind: str = Field(max_length=12)
    engine: str = Field(default="native", max_length=20)
    agent_id: str = Field(max_length=26)
    release_id: str | None = Field(default=None, max_length=26)
    config: dict[str, Any] = json_field(default_factory=dict)
    fingerprint: str | None = Field(default=None, max_length=64)
    workdir: str | None = Field(default=None, max_length=500)
    outside_pins: dict[str, Any] | None = json_field(default=None)
    lane_id: str | None = Field(default=None, max_length=26)
    conversation_id: str | None = Field(default=None, max_length=26)
    request_key: str = Field(max_length=300)
    user_id: str | None = Field(default=None, max_length=26)
    delegation_id: str | None = Field(default=None, max_length=26)
    actors: list[str] = json_field(default_factory=list)
    scopes: list[str] = json_field(default_factory=list)
    depth: int = 0
    origin_message_id: str | None = Field(default=None, max_length=26)
    parent_run_id: str | None = Field(default=None, max_length=26)
    parent_call_id: str | None = Field(default=None, max_length=26)
    root_run_id: str = Field(max_length=26)
    task_id: str | None = Field(default=None, max_length=26)
    note: str | None = Field(default=None, sa_type=Text)
    state: str = Field(default=RunState.QUEUED, max_length=16)
    reason: str | None = Field(default=None, max_length=64)
    public_error: str | None = Field(default=None, max_length=1_000)
    claim_token: str | None = Field(default=None, max_length=64)
    claimed_by: str | None = Field(default=None, max_length=64)
    lease_until: datetime | None = None
    takeovers: int = 0
    not_before: datetime | None = None
    cancel_requested_at: datetime | None = None
    cancel_requested_by: str | None = Field(default=None, max_length=26)
    step_limit: int = 24
    steps_used: int = 0
    turn: int = 0
    round: int = 0
    scope: int = 0
    tokens_used: int = 0
    cost_micros: int | None = Field(default=None, sa_type=BigInteger)
    currency: str | None = Field(default=None, max_length=3)
    active_ms: int = Field(default=0, sa_type=BigInteger)
    queued_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    version: int = 1


class RunInput(SQLModel, table=True):
    """A message an agent heard, and what became of it (RUN-22, RUN-56).

    Attributes:
        message_id: of the row in `message`.
        judged, judge_after: of an input that waits to be judged again (RUN-71).
        accepted_seq: of the transcript entry that is its receipt.
    """

    __tablename__: ClassVar[str] = "run_input"
    __table_args__ = (
        owned("agent_id", "agent"),
        owned("lane_id", "lane"),
        one_of("sender_kind", SenderKind),
        one_of("mode", Mode),
        one_of("state", InputState),
        UniqueConstraint("tenant_id", "agent_id", "message_id"),
        Index(
            "ix_run_input_queued",
            "tenant_id",
            "lane_id",
            "log_seq",
            sqlite_where=_WAITING,
            postgresql_where=_WAITING,
        ),
        Index("ix_run_input_run", "tenant_id", "run_id"),
        Index("ix_run_input_message", "tenant_id", "message_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    agent_id: str = Field(max_length=26)
    message_id: str = Field(max_length=26)
    log_seq: int = Field(sa_type=BigInteger)
    lane_id: str | None = Field(default=None, max_length=26)
    sender_aid: str = Field(max_length=200)
    sender_kind: str = Field(max_length=8)
    mode: str = Field(max_length=10)
    mode_source: str = Field(default="default", max_length=10)
    state: str = Field(default=InputState.QUEUED, max_length=12)
    hold: str | None = Field(default=None, max_length=10)
    reason: str | None = Field(default=None, max_length=40)
    judged: int = 0
    judge_after: datetime | None = None
    run_id: str | None = Field(default=None, max_length=26)
    round: int | None = None
    accepted_seq: int | None = None
    arrived_at: datetime
    accepted_at: datetime | None = None
    settled_at: datetime | None = None


class HeardUpTo(SQLModel, table=True):
    """How far into a conversation an agent's messages were delivered to it."""

    __tablename__: ClassVar[str] = "heard_up_to"
    __table_args__ = (owned("agent_id", "agent"), owned("conversation_id", "conversation"))

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    agent_id: str = Field(primary_key=True, max_length=26)
    conversation_id: str = Field(primary_key=True, max_length=26)
    log_seq: int = Field(sa_type=BigInteger)


class TranscriptEntry(SQLModel, table=True):
    """One piece of what the model saw; append-only."""

    __tablename__: ClassVar[str] = "transcript_entry"
    __table_args__ = (owned("run_id", "run"), one_of("kind", EntryKind))

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    run_id: str = Field(primary_key=True, max_length=26)
    seq: int = Field(primary_key=True)
    kind: str = Field(max_length=10)
    body: dict[str, Any] = json_field()
    provider: str | None = Field(default=None, max_length=40)
    provider_body: dict[str, Any] | None = json_field(default=None)  # in `{"body": …}`
    input_id: str | None = Field(default=None, max_length=26)
    turn: int = 0
    tokens: int = 0


class Checkpoint(SQLModel, table=True):
    """Where a run stood after a batch; the newest counts."""

    __tablename__: ClassVar[str] = "run_checkpoint"
    __table_args__ = (owned("run_id", "run"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    run_id: str = Field(primary_key=True, max_length=26)
    seq: int = Field(primary_key=True)
    transcript_seq: int
    turn: int
    round: int
    scope: int
    open_batch: bool = False
    allowance: int = 1  # overflow recoveries left (RUN-30)
    failures: dict[str, Any] = json_field(default_factory=dict)  # `reminded`: once a round
    fingerprint: str = Field(max_length=64)
    workdir: str | None = Field(default=None, max_length=500)
    format: int = 1


class ModelRequest(SQLModel, table=True):
    """One attempt to ask a model (RUN-28).

    Attributes:
        thought_id: the same for all attempts of one turn; names the block on the page.
        fragment: text of an attempt that broke off: for the page, never for the model.
        measured: whether the provider counted the tokens.
    """

    __tablename__: ClassVar[str] = "model_request"
    __table_args__ = (
        owned("run_id", "run"),
        one_of("purpose", Purpose),
        one_of("state", RequestState),
        UniqueConstraint("tenant_id", "run_id", "turn", "purpose", "attempt"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    run_id: str = Field(max_length=26)
    turn: int
    attempt: int
    purpose: str = Field(max_length=14)
    thought_id: str = Field(max_length=26)
    provider: str = Field(max_length=40)
    model: str = Field(max_length=200)
    model_version: str | None = Field(default=None, max_length=200)
    request_digest: str = Field(max_length=64)
    state: str = Field(default=RequestState.STARTED, max_length=12)
    finish: str | None = Field(default=None, max_length=40)
    fault: str | None = Field(default=None, max_length=40)
    public_error: str | None = Field(default=None, max_length=1_000)
    fragment: str | None = Field(default=None, sa_type=Text)
    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    measured: bool = False
    cost_micros: int | None = Field(default=None, sa_type=BigInteger)
    currency: str | None = Field(default=None, max_length=3)
    price_source: str | None = Field(default=None, max_length=20)
    started_at: datetime
    first_event_at: datetime | None = None
    ended_at: datetime | None = None


class ToolCall(SQLModel, table=True):
    """One call the model asked for; our id is the one of transcript, record and wire (RUN-82).

    Attributes:
        command_call_id: of the pipeline's call, `<id>.<attempt>`: the trail is asked by it.
        result: whole, to 1 MiB; the model sees it trimmed (RUN-86).
        timings: milliseconds of the pipeline's stages.
    """

    __tablename__: ClassVar[str] = "tool_call"
    __table_args__ = (
        owned("run_id", "run"),
        one_of("kind", CallKind),
        one_of("state", CallState),
        UniqueConstraint("tenant_id", "run_id", "turn", "ordinal"),
        Index("ix_tool_call_approval", "tenant_id", "approval_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    run_id: str = Field(max_length=26)
    turn: int
    ordinal: int
    provider_call_id: str = Field(max_length=200)
    tool: str = Field(max_length=200)
    kind: str = Field(max_length=10)
    command: str | None = Field(default=None, max_length=128)
    version: int | None = None
    arguments_redacted: dict[str, Any] = json_field(default_factory=dict)
    arguments_sha256: str = Field(max_length=64)
    state: str = Field(max_length=12)
    attempt: int = 1
    approval_id: str | None = Field(default=None, max_length=26)
    child_run_id: str | None = Field(default=None, max_length=26)
    stage: str | None = Field(default=None, max_length=40)
    reason: str | None = Field(default=None, max_length=64)
    advice: str | None = Field(default=None, max_length=40)
    public_error: str | None = Field(default=None, max_length=1_000)
    result: dict[str, Any] | None = json_field(default=None)
    audit_seq: int | None = Field(default=None, sa_type=BigInteger)
    timings: dict[str, Any] | None = json_field(default=None)
    resolved_as: str | None = Field(default=None, max_length=10)
    resolved_by: str | None = Field(default=None, max_length=26)
    resolved_at: datetime | None = None
    rev: int = 1
    started_at: datetime | None = None
    ended_at: datetime | None = None


class ToolCallDiagnostic(SQLModel, table=True):
    """The hidden cause of a fault; read by `python -m app diagnose-call` alone (RUN-41)."""

    __tablename__: ClassVar[str] = "tool_call_diagnostic"

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    tool_call_id: str = Field(primary_key=True, max_length=26)
    diagnostic: str = Field(sa_type=Text)
    at: datetime


class RunWait(SQLModel, table=True):
    """What a suspended run waits for; satisfied once, by the first answer.

    Attributes:
        ref: approval, child run, pipeline call or lane it is about.
        answer: JSON, in `{"value": …}`: `false`, `0`, `""` and null are answers.
    """

    __tablename__: ClassVar[str] = "run_wait"
    __table_args__ = (
        owned("run_id", "run"),
        one_of("kind", WaitKind),
        Index("ix_run_wait_open", "kind", "due_at", sqlite_where=_OPEN, postgresql_where=_OPEN),
        Index("ix_run_wait_ref", "tenant_id", "ref"),
        Index("ix_run_wait_run", "tenant_id", "run_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    run_id: str = Field(max_length=26)
    call_id: str | None = Field(default=None, max_length=26)
    kind: str = Field(max_length=10)
    ref: str | None = Field(default=None, max_length=64)
    due_at: datetime | None = None
    expects: dict[str, Any] | None = json_field(default=None)
    opened_at: datetime
    satisfied_at: datetime | None = None
    answer: dict[str, Any] | None = json_field(default=None)


class SentMessage(SQLModel, table=True):
    """What a run said, once for each scope, place and text (RUN-20).

    Attributes:
        message_id: of the row in `message`; the chain of whoever reads it is this run's (RUN-97).
    """

    __tablename__: ClassVar[str] = "sent_message"
    __table_args__ = (
        owned("run_id", "run"),
        Index("ix_sent_message_message", "tenant_id", "message_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    run_id: str = Field(primary_key=True, max_length=26)
    scope: int = Field(primary_key=True)
    conversation_id: str = Field(primary_key=True, max_length=26)
    content_sha256: str = Field(primary_key=True, max_length=64)
    message_id: str = Field(max_length=26)
    call_id: str | None = Field(default=None, max_length=26)
    turn: int = 0
    at: datetime


class Task(SQLModel, table=True):
    """Work that was assigned to an agent; a run that ends does not close it (RUN-94)."""

    __tablename__: ClassVar[str] = "agent_task"
    __table_args__ = (
        owned("agent_id", "agent"),
        owned("user_id", "user"),
        one_of("state", TaskState),
        Index(None, "tenant_id", "agent_id", "state"),
        Index("ix_agent_task_user", "tenant_id", "user_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    title: str = Field(max_length=200)
    instructions: str = Field(sa_type=Text)
    assigned_by: str = Field(max_length=26)
    agent_id: str = Field(max_length=26)
    user_id: str = Field(max_length=26)
    conversation_id: str | None = Field(default=None, max_length=26)
    process_ref: str | None = Field(default=None, max_length=64)
    state: str = Field(default=TaskState.OPEN, max_length=10)
    report: str | None = Field(default=None, sa_type=Text)
    run_id: str | None = Field(default=None, max_length=26)
    due_at: datetime | None = None
    reminded_at: datetime | None = None
    created_at: datetime
    version: int = 1


class AgentSchedule(SQLModel, table=True):
    """When an agent works for a person unasked: an instruction and a rule.

    Attributes:
        rule: `weekdays 9:00`, as the person wrote it; `zone` is theirs.
        run_count: of the runs it opened; in their request keys.
    """

    __tablename__: ClassVar[str] = "agent_schedule"
    __table_args__ = (
        owned("agent_id", "agent"),
        owned("user_id", "user"),
        Index("ix_agent_schedule_due", "next_at"),
        Index(None, "tenant_id", "user_id"),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    id: str = Field(primary_key=True, max_length=26)
    agent_id: str = Field(max_length=26)
    user_id: str = Field(max_length=26)
    instruction: str = Field(sa_type=Text)
    rule: str = Field(max_length=100)
    zone: str = Field(max_length=64)
    next_at: datetime | None = None
    last_at: datetime | None = None
    run_count: int = 0
    paused_at: datetime | None = None
    created_at: datetime
    version: int = 1


class AgentPause(SQLModel, table=True):
    """An agent paused for everybody, by an administrator."""

    __tablename__: ClassVar[str] = "agent_pause"
    __table_args__ = (owned("agent_id", "agent"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    agent_id: str = Field(primary_key=True, max_length=26)
    paused_at: datetime
    paused_by: str = Field(max_length=26)
