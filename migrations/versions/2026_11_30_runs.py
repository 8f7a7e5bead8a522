"""Runs: lanes, runs, inputs, transcripts, requests, tool calls, waits, tasks, schedules."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "runs"
down_revision: str | None = "lean_audit"
branch_labels: str | None = None
depends_on: str | None = None


def _json() -> Any:
    return sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql")


def upgrade() -> None:
    op.create_table(
        "tool_call_diagnostic",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("tool_call_id", sa.String(length=26), nullable=False),
        sa.Column("diagnostic", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_tool_call_diagnostic_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "tool_call_id", name=op.f("pk_tool_call_diagnostic")),
    )
    op.create_table(
        "agent_pause",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=False),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("paused_by", sa.String(length=26), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agent.tenant_id", "agent.id"],
            name=op.f("fk_agent_pause_tenant_id_agent_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_agent_pause_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "agent_id", name=op.f("pk_agent_pause")),
    )
    op.create_table(
        "agent_schedule",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("instruction", sa.Text(), nullable=False),
        sa.Column("rule", sa.String(length=100), nullable=False),
        sa.Column("zone", sa.String(length=64), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("run_count", sa.Integer(), nullable=False),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agent.tenant_id", "agent.id"],
            name=op.f("fk_agent_schedule_tenant_id_agent_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_agent_schedule_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_agent_schedule_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_agent_schedule")),
    )
    op.create_index("ix_agent_schedule_due", "agent_schedule", ["next_at"], unique=False)
    op.create_index(
        op.f("ix_agent_schedule_tenant_id_user_id"),
        "agent_schedule",
        ["tenant_id", "user_id"],
        unique=False,
    )
    op.create_table(
        "agent_task",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("instructions", sa.Text(), nullable=False),
        sa.Column("assigned_by", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("conversation_id", sa.String(length=26), nullable=True),
        sa.Column("process_ref", sa.String(length=64), nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("report", sa.Text(), nullable=True),
        sa.Column("run_id", sa.String(length=26), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reminded_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "state IN ('open', 'working', 'reported', 'done', 'failed', 'cancelled')",
            name=op.f("ck_agent_task_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agent.tenant_id", "agent.id"],
            name=op.f("fk_agent_task_tenant_id_agent_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_agent_task_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_agent_task_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_agent_task")),
    )
    op.create_index(
        op.f("ix_agent_task_tenant_id_agent_id_state"),
        "agent_task",
        ["tenant_id", "agent_id", "state"],
        unique=False,
    )
    op.create_index("ix_agent_task_user", "agent_task", ["tenant_id", "user_id"], unique=False)
    op.create_table(
        "heard_up_to",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=False),
        sa.Column("conversation_id", sa.String(length=26), nullable=False),
        sa.Column("log_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agent.tenant_id", "agent.id"],
            name=op.f("fk_heard_up_to_tenant_id_agent_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "conversation_id"],
            ["conversation.tenant_id", "conversation.id"],
            name=op.f("fk_heard_up_to_tenant_id_conversation_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_heard_up_to_tenant_id")
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "agent_id", "conversation_id", name=op.f("pk_heard_up_to")
        ),
    )
    op.create_table(
        "lane",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=False),
        sa.Column("party", sa.String(length=210), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=True),
        sa.Column("peer_aid", sa.String(length=200), nullable=True),
        sa.Column("conversation_id", sa.String(length=26), nullable=False),
        sa.Column("discussion", sa.String(length=128), nullable=False),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reset_after_seq", sa.BigInteger(), nullable=True),
        sa.Column("agent_streak", sa.Integer(), nullable=False),
        sa.Column("hour_start", sa.DateTime(timezone=True), nullable=True),
        sa.Column("hour_used", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agent.tenant_id", "agent.id"],
            name=op.f("fk_lane_tenant_id_agent_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "conversation_id"],
            ["conversation.tenant_id", "conversation.id"],
            name=op.f("fk_lane_tenant_id_conversation_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_lane_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_lane_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_lane")),
        sa.UniqueConstraint(
            "tenant_id",
            "agent_id",
            "party",
            "conversation_id",
            "discussion",
            name=op.f("uq_lane_tenant_id_agent_id_party_conversation_id_discussion"),
        ),
    )
    op.create_index(
        op.f("ix_lane_tenant_id_conversation_id"),
        "lane",
        ["tenant_id", "conversation_id"],
        unique=False,
    )
    op.create_table(
        "run",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("engine", sa.String(length=20), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=False),
        sa.Column("release_id", sa.String(length=26), nullable=True),
        sa.Column(
            "config",
            _json(),
            nullable=False,
        ),
        sa.Column("fingerprint", sa.String(length=64), nullable=True),
        sa.Column("workdir", sa.String(length=500), nullable=True),
        sa.Column("lane_id", sa.String(length=26), nullable=True),
        sa.Column("conversation_id", sa.String(length=26), nullable=True),
        sa.Column("request_key", sa.String(length=300), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=True),
        sa.Column("delegation_id", sa.String(length=26), nullable=True),
        sa.Column(
            "actors",
            _json(),
            nullable=False,
        ),
        sa.Column(
            "scopes",
            _json(),
            nullable=False,
        ),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("origin_message_id", sa.String(length=26), nullable=True),
        sa.Column("parent_run_id", sa.String(length=26), nullable=True),
        sa.Column("parent_call_id", sa.String(length=26), nullable=True),
        sa.Column("root_run_id", sa.String(length=26), nullable=False),
        sa.Column("task_id", sa.String(length=26), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("public_error", sa.String(length=1000), nullable=True),
        sa.Column("claim_token", sa.String(length=64), nullable=True),
        sa.Column("claimed_by", sa.String(length=64), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("takeovers", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_requested_by", sa.String(length=26), nullable=True),
        sa.Column("step_limit", sa.Integer(), nullable=False),
        sa.Column("steps_used", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("scope", sa.Integer(), nullable=False),
        sa.Column("tokens_used", sa.Integer(), nullable=False),
        sa.Column("cost_micros", sa.BigInteger(), nullable=True),
        sa.Column("currency", sa.String(length=3), nullable=True),
        sa.Column("active_ms", sa.BigInteger(), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('conversation', 'work', 'delegated', 'scheduled')", name=op.f("ck_run_kind")
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'suspended', 'completed', 'failed', "
            "'canceled', 'interrupted', 'outcome_unknown')",
            name=op.f("ck_run_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agent.tenant_id", "agent.id"],
            name=op.f("fk_run_tenant_id_agent_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "lane_id"],
            ["lane.tenant_id", "lane.id"],
            name=op.f("fk_run_tenant_id_lane_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_run_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_run_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_run")),
        sa.UniqueConstraint("tenant_id", "request_key", name=op.f("uq_run_tenant_id_request_key")),
    )
    op.create_index("ix_run_lane", "run", ["tenant_id", "lane_id", "queued_at"], unique=False)
    op.create_index("ix_run_parent", "run", ["tenant_id", "parent_run_id"], unique=False)
    op.create_index("ix_run_root", "run", ["tenant_id", "root_run_id"], unique=False)
    op.create_index("ix_run_state", "run", ["state", "queued_at"], unique=False)
    op.create_index(
        op.f("ix_run_tenant_id_agent_id_queued_at"),
        "run",
        ["tenant_id", "agent_id", "queued_at"],
        unique=False,
    )
    op.create_index("ix_run_user", "run", ["tenant_id", "user_id", "queued_at"], unique=False)
    op.create_index(
        "uq_run_live",
        "run",
        ["tenant_id", "lane_id"],
        unique=True,
        sqlite_where=sa.text(
            "kind = 'conversation' AND state IN ('queued', 'running', 'suspended')"
        ),
        postgresql_where=sa.text(
            "kind = 'conversation' AND state IN ('queued', 'running', 'suspended')"
        ),
    )
    op.create_table(
        "run_input",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=False),
        sa.Column("message_id", sa.String(length=26), nullable=False),
        sa.Column("log_seq", sa.BigInteger(), nullable=False),
        sa.Column("lane_id", sa.String(length=26), nullable=True),
        sa.Column("sender_aid", sa.String(length=200), nullable=False),
        sa.Column("sender_kind", sa.String(length=8), nullable=False),
        sa.Column("mode", sa.String(length=10), nullable=False),
        sa.Column("mode_source", sa.String(length=10), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("hold", sa.String(length=10), nullable=True),
        sa.Column("reason", sa.String(length=40), nullable=True),
        sa.Column("judged", sa.Integer(), nullable=False),
        sa.Column("judge_after", sa.DateTime(timezone=True), nullable=True),
        sa.Column("run_id", sa.String(length=26), nullable=True),
        sa.Column("round", sa.Integer(), nullable=True),
        sa.Column("accepted_seq", sa.Integer(), nullable=True),
        sa.Column("arrived_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("mode IN ('steering', 'follow_up')", name=op.f("ck_run_input_mode")),
        sa.CheckConstraint(
            "sender_kind IN ('person', 'agent', 'peer', 'system')",
            name=op.f("ck_run_input_sender_kind"),
        ),
        sa.CheckConstraint(
            "state IN ('queued', 'accepted', 'archived', 'dropped', 'completed', "
            "'failed', 'canceled', 'interrupted')",
            name=op.f("ck_run_input_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agent.tenant_id", "agent.id"],
            name=op.f("fk_run_input_tenant_id_agent_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "lane_id"],
            ["lane.tenant_id", "lane.id"],
            name=op.f("fk_run_input_tenant_id_lane_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_run_input_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_run_input")),
        sa.UniqueConstraint(
            "tenant_id",
            "agent_id",
            "message_id",
            name=op.f("uq_run_input_tenant_id_agent_id_message_id"),
        ),
    )
    op.create_index("ix_run_input_message", "run_input", ["tenant_id", "message_id"], unique=False)
    op.create_index(
        "ix_run_input_queued",
        "run_input",
        ["tenant_id", "lane_id", "log_seq"],
        unique=False,
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_index("ix_run_input_run", "run_input", ["tenant_id", "run_id"], unique=False)
    op.create_table(
        "model_request",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("purpose", sa.String(length=14), nullable=False),
        sa.Column("thought_id", sa.String(length=26), nullable=False),
        sa.Column("provider", sa.String(length=40), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("model_version", sa.String(length=200), nullable=True),
        sa.Column("request_digest", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("finish", sa.String(length=40), nullable=True),
        sa.Column("fault", sa.String(length=40), nullable=True),
        sa.Column("public_error", sa.String(length=1000), nullable=True),
        sa.Column("fragment", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("cache_read_tokens", sa.Integer(), nullable=True),
        sa.Column("cache_write_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=True),
        sa.Column("measured", sa.Boolean(), nullable=False),
        sa.Column("cost_micros", sa.BigInteger(), nullable=True),
        sa.Column("currency", sa.String(length=3), nullable=True),
        sa.Column("price_source", sa.String(length=20), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("first_event_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "purpose IN ('turn', 'compaction', 'participation')",
            name=op.f("ck_model_request_purpose"),
        ),
        sa.CheckConstraint(
            "state IN ('started', 'done', 'cut', 'refused', 'failed', 'cancelled', 'abandoned')",
            name=op.f("ck_model_request_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "run_id"],
            ["run.tenant_id", "run.id"],
            name=op.f("fk_model_request_tenant_id_run_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_model_request_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_model_request")),
        sa.UniqueConstraint(
            "tenant_id",
            "run_id",
            "turn",
            "purpose",
            "attempt",
            name=op.f("uq_model_request_tenant_id_run_id_turn_purpose_attempt"),
        ),
    )
    op.create_table(
        "run_checkpoint",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("transcript_seq", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("scope", sa.Integer(), nullable=False),
        sa.Column("open_batch", sa.Boolean(), nullable=False),
        sa.Column("allowance", sa.Integer(), nullable=False),
        sa.Column(
            "failures",
            _json(),
            nullable=False,
        ),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("workdir", sa.String(length=500), nullable=True),
        sa.Column("format", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "run_id"],
            ["run.tenant_id", "run.id"],
            name=op.f("fk_run_checkpoint_tenant_id_run_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_run_checkpoint_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "run_id", "seq", name=op.f("pk_run_checkpoint")),
    )
    op.create_table(
        "run_wait",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("call_id", sa.String(length=26), nullable=True),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("ref", sa.String(length=64), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "expects",
            _json(),
            nullable=True,
        ),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("satisfied_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "answer",
            _json(),
            nullable=True,
        ),
        sa.CheckConstraint(
            "kind IN ('approval', 'run', 'call', 'message', 'timer', 'pause')",
            name=op.f("ck_run_wait_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "run_id"],
            ["run.tenant_id", "run.id"],
            name=op.f("fk_run_wait_tenant_id_run_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_run_wait_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_run_wait")),
    )
    op.create_index(
        "ix_run_wait_open",
        "run_wait",
        ["kind", "due_at"],
        unique=False,
        sqlite_where=sa.text("satisfied_at IS NULL"),
        postgresql_where=sa.text("satisfied_at IS NULL"),
    )
    op.create_index("ix_run_wait_ref", "run_wait", ["tenant_id", "ref"], unique=False)
    op.create_index("ix_run_wait_run", "run_wait", ["tenant_id", "run_id"], unique=False)
    op.create_table(
        "sent_message",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("scope", sa.Integer(), nullable=False),
        sa.Column("conversation_id", sa.String(length=26), nullable=False),
        sa.Column("content_sha256", sa.String(length=64), nullable=False),
        sa.Column("message_id", sa.String(length=26), nullable=False),
        sa.Column("call_id", sa.String(length=26), nullable=True),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "run_id"],
            ["run.tenant_id", "run.id"],
            name=op.f("fk_sent_message_tenant_id_run_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_sent_message_tenant_id")
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id",
            "run_id",
            "scope",
            "conversation_id",
            "content_sha256",
            name=op.f("pk_sent_message"),
        ),
    )
    op.create_index(
        "ix_sent_message_message", "sent_message", ["tenant_id", "message_id"], unique=False
    )
    op.create_table(
        "tool_call",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("provider_call_id", sa.String(length=200), nullable=False),
        sa.Column("tool", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("command", sa.String(length=128), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column(
            "arguments_redacted",
            _json(),
            nullable=False,
        ),
        sa.Column("arguments_sha256", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("approval_id", sa.String(length=26), nullable=True),
        sa.Column("child_run_id", sa.String(length=26), nullable=True),
        sa.Column("stage", sa.String(length=40), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("advice", sa.String(length=40), nullable=True),
        sa.Column("public_error", sa.String(length=1000), nullable=True),
        sa.Column(
            "result",
            _json(),
            nullable=True,
        ),
        sa.Column("audit_seq", sa.BigInteger(), nullable=True),
        sa.Column(
            "timings",
            _json(),
            nullable=True,
        ),
        sa.Column("resolved_as", sa.String(length=10), nullable=True),
        sa.Column("resolved_by", sa.String(length=26), nullable=True),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("rev", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('command', 'framework', 'mcp', 'delegate')", name=op.f("ck_tool_call_kind")
        ),
        sa.CheckConstraint(
            "state IN ('started', 'waiting', 'done', 'failed', 'denied', 'expired', "
            "'not_started', 'interrupted', 'unknown')",
            name=op.f("ck_tool_call_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "run_id"],
            ["run.tenant_id", "run.id"],
            name=op.f("fk_tool_call_tenant_id_run_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_tool_call_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_tool_call")),
        sa.UniqueConstraint(
            "tenant_id",
            "run_id",
            "turn",
            "ordinal",
            name=op.f("uq_tool_call_tenant_id_run_id_turn_ordinal"),
        ),
    )
    op.create_index(
        "ix_tool_call_approval", "tool_call", ["tenant_id", "approval_id"], unique=False
    )
    op.create_table(
        "transcript_entry",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column(
            "body",
            _json(),
            nullable=False,
        ),
        sa.Column("provider", sa.String(length=40), nullable=True),
        sa.Column(
            "provider_body",
            _json(),
            nullable=True,
        ),
        sa.Column("input_id", sa.String(length=26), nullable=True),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('system', 'history', 'input', 'response', 'results', 'note', 'summary')",
            name=op.f("ck_transcript_entry_kind"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "run_id"],
            ["run.tenant_id", "run.id"],
            name=op.f("fk_transcript_entry_tenant_id_run_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_transcript_entry_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "run_id", "seq", name=op.f("pk_transcript_entry")),
    )
    _begin_behind_what_was_said()


def _begin_behind_what_was_said() -> None:
    """Agents work on what is said from now on: old messages are no requests."""
    op.execute(
        "INSERT INTO heard_up_to (tenant_id, agent_id, conversation_id, log_seq) "
        "SELECT p.tenant_id, i.owner_id, p.conversation_id, c.last_seq "
        "FROM conversation_participant p "
        "JOIN aun_identity i ON i.tenant_id = p.tenant_id AND i.aid = p.aid AND i.kind = 'agent' "
        "JOIN agent a ON a.tenant_id = i.tenant_id AND a.id = i.owner_id "
        "JOIN conversation c ON c.tenant_id = p.tenant_id AND c.id = p.conversation_id"
    )


def downgrade() -> None:
    raise RuntimeError("runs are not thrown away; restore a backup instead")
