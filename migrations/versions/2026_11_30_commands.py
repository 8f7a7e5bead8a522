"""Commands: their versions, calls, approvals, outbox, webhooks, and the tables of packs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "commands"
down_revision: str | None = "events_of_records"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.create_table(
        "command_number",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_command_number_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "name", name=op.f("pk_command_number")),
    )
    op.create_table(
        "command_outcome",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("key_digest", sa.String(length=64), nullable=False),
        sa.Column("call_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=True),
        sa.Column("code", sa.String(length=128), nullable=False),
        sa.Column("input_digest", sa.String(length=64), nullable=False),
        sa.Column(
            "outcome",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=True,
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_command_outcome_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "key_digest", name=op.f("pk_command_outcome")),
        sa.UniqueConstraint(
            "tenant_id", "call_id", name=op.f("uq_command_outcome_tenant_id_call_id")
        ),
    )
    with op.batch_alter_table("command_outcome") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_command_outcome_expires_at"), ["expires_at"], unique=False
        )

    op.create_table(
        "command_version",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("code", sa.String(length=128), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("pack", sa.String(length=64), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column(
            "definition",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("is_override", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=True),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("published_by", sa.String(length=26), nullable=True),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("retired_by", sa.String(length=26), nullable=True),
        sa.CheckConstraint(
            "status IN ('draft', 'published', 'retired')", name=op.f("ck_command_version_status")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_command_version_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_command_version")),
        sa.UniqueConstraint(
            "tenant_id", "code", "version", name=op.f("uq_command_version_tenant_id_code_version")
        ),
    )
    op.create_table(
        "expense_budget",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("period", sa.String(length=7), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("limit_minor", sa.BigInteger(), nullable=True),
        sa.Column("submitted_minor", sa.BigInteger(), nullable=False),
        sa.Column("approved_minor", sa.BigInteger(), nullable=False),
        sa.Column("paid_minor", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "limit_minor IS NULL OR limit_minor >= 0", name=op.f("ck_expense_budget_limit_minor")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_expense_budget_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_expense_budget")),
        sa.UniqueConstraint(
            "tenant_id",
            "org_id",
            "period",
            "currency",
            name=op.f("uq_expense_budget_tenant_id_org_id_period_currency"),
        ),
    )
    op.create_table(
        "expense_line",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("report_id", sa.String(length=26), nullable=False),
        sa.Column("spent_on", sa.String(length=10), nullable=False),
        sa.Column("category", sa.String(length=20), nullable=False),
        sa.Column("description", sa.String(length=200), nullable=False),
        sa.Column("amount_minor", sa.BigInteger(), nullable=False),
        sa.Column("receipt_id", sa.String(length=26), nullable=False),
        sa.CheckConstraint("amount_minor > 0", name=op.f("ck_expense_line_amount_minor")),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_expense_line_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_expense_line")),
    )
    with op.batch_alter_table("expense_line") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_expense_line_tenant_id_report_id"),
            ["tenant_id", "report_id"],
            unique=False,
        )

    op.create_table(
        "expense_payment",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("report_id", sa.String(length=26), nullable=False),
        sa.Column("reference", sa.String(length=60), nullable=False),
        sa.Column("amount_minor", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("payee_name", sa.String(length=200), nullable=False),
        sa.Column("payee_account", sa.String(length=42), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("amount_minor > 0", name=op.f("ck_expense_payment_amount_minor")),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_expense_payment_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_expense_payment")),
        sa.UniqueConstraint(
            "tenant_id", "report_id", name=op.f("uq_expense_payment_tenant_id_report_id")
        ),
    )
    op.create_table(
        "expense_receipt",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("report_id", sa.String(length=26), nullable=False),
        sa.Column("number", sa.String(length=60), nullable=False),
        sa.Column("issuer", sa.String(length=200), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_expense_receipt_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_expense_receipt")),
    )
    with op.batch_alter_table("expense_receipt") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_expense_receipt_tenant_id_report_id"),
            ["tenant_id", "report_id"],
            unique=False,
        )

    op.create_table(
        "expense_report",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("number", sa.String(length=30), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("period", sa.String(length=7), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("total_minor", sa.BigInteger(), nullable=False),
        sa.Column("line_count", sa.Integer(), nullable=False),
        sa.Column("payee_name", sa.String(length=200), nullable=False),
        sa.Column("payee_account", sa.String(length=42), nullable=False),
        sa.Column("note", sa.String(length=500), nullable=False),
        sa.Column("budget_id", sa.String(length=26), nullable=True),
        sa.Column("approver_id", sa.String(length=26), nullable=True),
        sa.Column("submitted_by", sa.String(length=26), nullable=True),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("decided_by", sa.String(length=26), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("reminded_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('draft', 'submitted', 'approved', 'rejected', 'paid', 'voided')",
            name=op.f("ck_expense_report_state"),
        ),
        sa.CheckConstraint("total_minor >= 0", name=op.f("ck_expense_report_total_minor")),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_expense_report_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_expense_report")),
        sa.UniqueConstraint("tenant_id", "number", name=op.f("uq_expense_report_tenant_id_number")),
    )
    with op.batch_alter_table("expense_report") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_expense_report_tenant_id_budget_id_state"),
            ["tenant_id", "budget_id", "state"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_expense_report_tenant_id_org_id_state"),
            ["tenant_id", "org_id", "state"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_expense_report_tenant_id_owner_id_state"),
            ["tenant_id", "owner_id", "state"],
            unique=False,
        )

    op.create_table(
        "external_effect",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("call_id", sa.String(length=64), nullable=False),
        sa.Column("code", sa.String(length=128), nullable=False),
        sa.Column("performer", sa.String(length=128), nullable=False),
        sa.Column("is_idempotent", sa.Boolean(), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("record_type", sa.String(length=64), nullable=True),
        sa.Column("record_id", sa.String(length=26), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "result",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=True,
        ),
        sa.Column("last_error", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('waiting', 'started', 'done', 'failed', 'unknown')",
            name=op.f("ck_external_effect_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_external_effect_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "call_id", name=op.f("pk_external_effect")),
    )
    with op.batch_alter_table("external_effect") as batch_op:
        batch_op.create_index(
            "ix_external_effect_open",
            ["due_at"],
            unique=False,
            sqlite_where=sa.text("state IN ('waiting', 'started')"),
            postgresql_where=sa.text("state IN ('waiting', 'started')"),
        )
        batch_op.create_index(
            batch_op.f("ix_external_effect_tenant_id_state_created_at"),
            ["tenant_id", "state", "created_at"],
            unique=False,
        )

    op.create_table(
        "governance_cursor",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_governance_cursor_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_governance_cursor")),
    )
    op.create_table(
        "governance_snapshot",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("call_id", sa.String(length=64), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("command", sa.String(length=128), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("agent_release", sa.String(length=26), nullable=True),
        sa.Column("permission", sa.String(length=100), nullable=False),
        sa.Column(
            "grants",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "rules",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("as_of_seq", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_governance_snapshot_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "call_id", name=op.f("pk_governance_snapshot")),
    )
    with op.batch_alter_table("governance_snapshot") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_governance_snapshot_tenant_id_seq"), ["tenant_id", "seq"], unique=False
        )

    op.create_table(
        "inventory_item",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("sku", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("unit", sa.String(length=20), nullable=False),
        sa.Column("description", sa.String(length=500), nullable=False),
        sa.Column("on_hand", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_inventory_item_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_inventory_item")),
        sa.UniqueConstraint("tenant_id", "sku", name=op.f("uq_inventory_item_tenant_id_sku")),
    )
    op.create_table(
        "inventory_location",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("code", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("on_hand", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_inventory_location_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_inventory_location")),
        sa.UniqueConstraint("tenant_id", "code", name=op.f("uq_inventory_location_tenant_id_code")),
    )
    op.create_table(
        "inventory_period",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("period", sa.String(length=7), nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_by", sa.String(length=26), nullable=True),
        sa.Column("moves", sa.Integer(), nullable=False),
        sa.Column("on_hand", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.String(length=500), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_inventory_period_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_inventory_period")),
        sa.UniqueConstraint(
            "tenant_id", "period", name=op.f("uq_inventory_period_tenant_id_period")
        ),
    )
    op.create_table(
        "outbox_event",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("line", sa.String(length=64), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("call_id", sa.String(length=64), nullable=False),
        sa.Column("record_type", sa.String(length=64), nullable=True),
        sa.Column("record_id", sa.String(length=26), nullable=True),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("permission", sa.String(length=100), nullable=False),
        sa.Column("is_for_receivers", sa.Boolean(), nullable=False),
        sa.Column(
            "data",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("done_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_error", sa.String(length=200), nullable=False),
        sa.CheckConstraint(
            "state IN ('pending', 'done', 'dead')", name=op.f("ck_outbox_event_state")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_outbox_event_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_outbox_event")),
    )
    with op.batch_alter_table("outbox_event") as batch_op:
        batch_op.create_index(
            "ix_outbox_event_due",
            ["due_at"],
            unique=False,
            sqlite_where=sa.text("state = 'pending'"),
            postgresql_where=sa.text("state = 'pending'"),
        )
        batch_op.create_index(
            "ix_outbox_event_line",
            ["tenant_id", "line", "seq", "place"],
            unique=False,
            sqlite_where=sa.text("state = 'pending'"),
            postgresql_where=sa.text("state = 'pending'"),
        )
        batch_op.create_index(
            batch_op.f("ix_outbox_event_tenant_id_call_id"), ["tenant_id", "call_id"], unique=False
        )

    op.create_table(
        "webhook_subscription",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("url", sa.String(length=2000), nullable=False),
        sa.Column("description", sa.String(length=200), nullable=False),
        sa.Column(
            "event_types",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("api_call", sa.String(length=128), nullable=True),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("old_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("old_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("down_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("down_tries", sa.Integer(), nullable=False),
        sa.Column("resting_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.CheckConstraint(
            "state IN ('active', 'paused', 'gone')", name=op.f("ck_webhook_subscription_state")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_webhook_subscription_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_webhook_subscription")),
    )
    op.create_table(
        "inventory_order",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("number", sa.String(length=40), nullable=False),
        sa.Column("supplier", sa.String(length=200), nullable=False),
        sa.Column("item_id", sa.String(length=26), nullable=False),
        sa.Column("location_id", sa.String(length=26), nullable=False),
        sa.Column("quantity", sa.BigInteger(), nullable=False),
        sa.Column("unit_price_minor", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("total_minor", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.String(length=500), nullable=False),
        sa.Column("ordered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ordered_by", sa.String(length=26), nullable=True),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("received_quantity", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "item_id"],
            ["inventory_item.tenant_id", "inventory_item.id"],
            name=op.f("fk_inventory_order_tenant_id_item_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "location_id"],
            ["inventory_location.tenant_id", "inventory_location.id"],
            name=op.f("fk_inventory_order_tenant_id_location_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_inventory_order_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_inventory_order")),
        sa.UniqueConstraint(
            "tenant_id", "number", name=op.f("uq_inventory_order_tenant_id_number")
        ),
    )
    with op.batch_alter_table("inventory_order") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_inventory_order_tenant_id_item_id"),
            ["tenant_id", "item_id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_inventory_order_tenant_id_state"), ["tenant_id", "state"], unique=False
        )

    op.create_table(
        "inventory_stock",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("item_id", sa.String(length=26), nullable=False),
        sa.Column("location_id", sa.String(length=26), nullable=False),
        sa.Column("on_hand", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("min_level", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "item_id"],
            ["inventory_item.tenant_id", "inventory_item.id"],
            name=op.f("fk_inventory_stock_tenant_id_item_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "location_id"],
            ["inventory_location.tenant_id", "inventory_location.id"],
            name=op.f("fk_inventory_stock_tenant_id_location_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_inventory_stock_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_inventory_stock")),
        sa.UniqueConstraint(
            "tenant_id",
            "item_id",
            "location_id",
            name=op.f("uq_inventory_stock_tenant_id_item_id_location_id"),
        ),
    )
    with op.batch_alter_table("inventory_stock") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_inventory_stock_tenant_id_location_id"),
            ["tenant_id", "location_id"],
            unique=False,
        )

    op.create_table(
        "webhook_delivery",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("subscription_id", sa.String(length=26), nullable=False),
        sa.Column("event_id", sa.String(length=26), nullable=False),
        sa.Column("type", sa.String(length=128), nullable=False),
        sa.Column("line", sa.String(length=100), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("refusals", sa.Integer(), nullable=False),
        sa.Column("waits_since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("response_status", sa.Integer(), nullable=True),
        sa.Column("last_error", sa.String(length=200), nullable=False),
        sa.Column("took_ms", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('pending', 'done', 'dead')", name=op.f("ck_webhook_delivery_state")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "subscription_id"],
            ["webhook_subscription.tenant_id", "webhook_subscription.id"],
            name=op.f("fk_webhook_delivery_tenant_id_subscription_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_webhook_delivery_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_webhook_delivery")),
    )
    with op.batch_alter_table("webhook_delivery") as batch_op:
        batch_op.create_index(
            "ix_webhook_delivery_due",
            ["tenant_id", "subscription_id", "due_at"],
            unique=False,
            sqlite_where=sa.text("state = 'pending'"),
            postgresql_where=sa.text("state = 'pending'"),
        )
        batch_op.create_index(
            "ix_webhook_delivery_line",
            ["tenant_id", "line", "seq", "place"],
            unique=False,
            sqlite_where=sa.text("state = 'pending'"),
            postgresql_where=sa.text("state = 'pending'"),
        )
        batch_op.create_index(
            batch_op.f("ix_webhook_delivery_tenant_id_subscription_id_id"),
            ["tenant_id", "subscription_id", "id"],
            unique=False,
        )

    op.create_table(
        "approval",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("rev", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("ask_key", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("command", sa.String(length=128), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("risk", sa.String(length=2), nullable=False),
        sa.Column("idempotent", sa.Boolean(), nullable=False),
        sa.Column("reversible", sa.Boolean(), nullable=False),
        sa.Column(
            "arguments",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("sealed_input", sa.LargeBinary(), nullable=True),
        sa.Column("expected_version", sa.Integer(), nullable=True),
        sa.Column("idempotency_key", sa.String(length=500), nullable=True),
        sa.Column("target_type", sa.String(length=64), nullable=True),
        sa.Column("target_id", sa.String(length=26), nullable=True),
        sa.Column("target_label", sa.String(length=500), nullable=True),
        sa.Column(
            "target_versions",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "preview",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("preview_digest", sa.String(length=64), nullable=False),
        sa.Column("previewed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=True),
        sa.Column("agent_release_id", sa.String(length=26), nullable=True),
        sa.Column("delegation_id", sa.String(length=26), nullable=True),
        sa.Column("session_id", sa.String(length=64), nullable=True),
        sa.Column("channel", sa.String(length=10), nullable=False),
        sa.Column(
            "actors",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("call_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=26), nullable=True),
        sa.Column("turn", sa.Integer(), nullable=True),
        sa.Column("tool_call_id", sa.String(length=200), nullable=True),
        sa.Column(
            "origin",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("approver_permission", sa.String(length=100), nullable=True),
        sa.Column("requesters", sa.String(length=1000), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_by", sa.String(length=26), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("decision_session_id", sa.String(length=64), nullable=True),
        sa.Column("surface", sa.String(length=20), nullable=True),
        sa.Column("user_agent", sa.String(length=500), nullable=True),
        sa.Column("typed", sa.String(length=500), nullable=True),
        sa.Column("assertion", sa.String(length=20000), nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_by", sa.String(length=26), nullable=True),
        sa.Column("closed_why", sa.String(length=64), nullable=True),
        sa.Column("failed_stage", sa.String(length=40), nullable=True),
        sa.Column("failed_reason", sa.String(length=64), nullable=True),
        sa.Column("consumed_by_call", sa.String(length=64), nullable=True),
        sa.Column("carried_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("replaces", sa.String(length=26), nullable=True),
        sa.Column("superseded_by", sa.String(length=26), nullable=True),
        sa.Column("changed_by", sa.String(length=26), nullable=True),
        sa.Column(
            "original",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=True,
        ),
        sa.CheckConstraint(
            "state IN ('open', 'approved', 'consumed', 'failed', 'denied', 'expired', 'superseded', 'cancelled')",  # noqa: E501
            name=op.f("ck_approval_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "decided_by"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_approval_tenant_id_decided_by"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_approval_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_approval_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_approval")),
    )
    with op.batch_alter_table("approval") as batch_op:
        batch_op.create_index(
            "ix_approval_live",
            ["tenant_id", "expires_at"],
            unique=False,
            sqlite_where=sa.text("state IN ('open', 'approved')"),
            postgresql_where=sa.text("state IN ('open', 'approved')"),
        )
        batch_op.create_index(
            batch_op.f("ix_approval_tenant_id_decided_by_opened_at"),
            ["tenant_id", "decided_by", "opened_at"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_approval_tenant_id_opened_at"), ["tenant_id", "opened_at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_approval_tenant_id_run_id"), ["tenant_id", "run_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_approval_tenant_id_user_id_opened_at"),
            ["tenant_id", "user_id", "opened_at"],
            unique=False,
        )
        batch_op.create_index(
            "uq_approval_asked",
            ["tenant_id", "ask_key"],
            unique=True,
            sqlite_where=sa.text("state = 'open'"),
            postgresql_where=sa.text("state = 'open'"),
        )

    op.create_table(
        "inventory_move",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("owner_id", sa.String(length=26), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("updated_by", sa.String(length=26), nullable=False),
        sa.Column("number", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("item_id", sa.String(length=26), nullable=False),
        sa.Column("location_id", sa.String(length=26), nullable=False),
        sa.Column("to_location_id", sa.String(length=26), nullable=True),
        sa.Column("quantity", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(length=20), nullable=False),
        sa.Column("note", sa.String(length=500), nullable=False),
        sa.Column("order_id", sa.String(length=26), nullable=True),
        sa.Column("booked_on", sa.String(length=10), nullable=False),
        sa.Column("period", sa.String(length=7), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "item_id"],
            ["inventory_item.tenant_id", "inventory_item.id"],
            name=op.f("fk_inventory_move_tenant_id_item_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "location_id"],
            ["inventory_location.tenant_id", "inventory_location.id"],
            name=op.f("fk_inventory_move_tenant_id_location_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "order_id"],
            ["inventory_order.tenant_id", "inventory_order.id"],
            name=op.f("fk_inventory_move_tenant_id_order_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "to_location_id"],
            ["inventory_location.tenant_id", "inventory_location.id"],
            name=op.f("fk_inventory_move_tenant_id_to_location_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_inventory_move_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_inventory_move")),
        sa.UniqueConstraint("tenant_id", "number", name=op.f("uq_inventory_move_tenant_id_number")),
    )
    with op.batch_alter_table("inventory_move") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_inventory_move_tenant_id_created_at_id"),
            ["tenant_id", "created_at", "id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_inventory_move_tenant_id_item_id"),
            ["tenant_id", "item_id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_inventory_move_tenant_id_location_id"),
            ["tenant_id", "location_id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_inventory_move_tenant_id_period"), ["tenant_id", "period"], unique=False
        )

    op.create_table(
        "saved_view",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("page", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("query", sa.String(length=4000), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_saved_view_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_saved_view_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_saved_view")),
        sa.UniqueConstraint(
            "tenant_id",
            "user_id",
            "page",
            "name",
            name=op.f("uq_saved_view_tenant_id_user_id_page_name"),
        ),
    )
    with op.batch_alter_table("audit_entry") as batch_op:
        batch_op.drop_index(batch_op.f("ix_audit_entry_tenant_id_command_seq"))
        batch_op.drop_index(batch_op.f("ix_audit_entry_tenant_id_target_id_seq"))
        batch_op.drop_index(batch_op.f("ix_audit_entry_tenant_id_user_id_seq"))
        batch_op.create_index(
            "ix_audit_entry_by_agent",
            ["tenant_id", "at"],
            unique=False,
            sqlite_where=sa.text("agent_id IS NOT NULL"),
            postgresql_where=sa.text("agent_id IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_audit_entry_consented",
            ["tenant_id", "at"],
            unique=False,
            sqlite_where=sa.text("approved_by IS NOT NULL"),
            postgresql_where=sa.text("approved_by IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_audit_entry_irreversible",
            ["tenant_id", "at"],
            unique=False,
            sqlite_where=sa.text("reversible IS 0"),
            postgresql_where=sa.text("reversible IS false"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_agent_id_at"),
            ["tenant_id", "agent_id", "at"],
            unique=False,
            sqlite_where=sa.text("agent_id IS NOT NULL"),
            postgresql_where=sa.text("agent_id IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_agent_release_at"),
            ["tenant_id", "agent_release", "at"],
            unique=False,
            sqlite_where=sa.text("agent_release IS NOT NULL"),
            postgresql_where=sa.text("agent_release IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_approved_by_at"),
            ["tenant_id", "approved_by", "at"],
            unique=False,
            sqlite_where=sa.text("approved_by IS NOT NULL"),
            postgresql_where=sa.text("approved_by IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_channel_at"),
            ["tenant_id", "channel", "at"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_command_at"),
            ["tenant_id", "command", "at"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_conversation_id_at"),
            ["tenant_id", "conversation_id", "at"],
            unique=False,
            sqlite_where=sa.text("conversation_id IS NOT NULL"),
            postgresql_where=sa.text("conversation_id IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_model_at"),
            ["tenant_id", "model", "at"],
            unique=False,
            sqlite_where=sa.text("model IS NOT NULL"),
            postgresql_where=sa.text("model IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_model_version_at"),
            ["tenant_id", "model_version", "at"],
            unique=False,
            sqlite_where=sa.text("model_version IS NOT NULL"),
            postgresql_where=sa.text("model_version IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_outcome_at"),
            ["tenant_id", "outcome", "at"],
            unique=False,
            sqlite_where=sa.text("outcome <> 'done'"),
            postgresql_where=sa.text("outcome <> 'done'"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_prompt_ref_at"),
            ["tenant_id", "prompt_ref", "at"],
            unique=False,
            sqlite_where=sa.text("prompt_ref IS NOT NULL"),
            postgresql_where=sa.text("prompt_ref IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_reason_at"),
            ["tenant_id", "reason", "at"],
            unique=False,
            sqlite_where=sa.text("reason IS NOT NULL"),
            postgresql_where=sa.text("reason IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_risk_at"),
            ["tenant_id", "risk", "at"],
            unique=False,
            sqlite_where=sa.text("risk IS NOT NULL"),
            postgresql_where=sa.text("risk IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_run_id_at"),
            ["tenant_id", "run_id", "at"],
            unique=False,
            sqlite_where=sa.text("run_id IS NOT NULL"),
            postgresql_where=sa.text("run_id IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_stage_at"),
            ["tenant_id", "stage", "at"],
            unique=False,
            sqlite_where=sa.text("stage IS NOT NULL"),
            postgresql_where=sa.text("stage IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_target_id_at"),
            ["tenant_id", "target_id", "at"],
            unique=False,
            sqlite_where=sa.text("target_id IS NOT NULL"),
            postgresql_where=sa.text("target_id IS NOT NULL"),
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_user_id_at"),
            ["tenant_id", "user_id", "at"],
            unique=False,
        )


def downgrade() -> None:
    raise RuntimeError("governed records are not thrown away; restore a backup instead")
