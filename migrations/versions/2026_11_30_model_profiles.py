"""Model profiles that administrators add."""

import sqlalchemy as sa
from alembic import op

revision: str = "model_profiles"
down_revision: str | None = "runs"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.create_table(
        "model_profile",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("base_url", sa.String(length=500), nullable=False),
        sa.Column("key_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("context_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("requires_finish", sa.Boolean(), nullable=False),
        sa.Column("usage", sa.String(length=4), nullable=False),
        sa.Column("call_ids", sa.String(length=8), nullable=False),
        sa.Column("max_tokens_field", sa.String(length=3), nullable=False),
        sa.Column("thinking", sa.String(length=6), nullable=False),
        sa.Column("price_input", sa.Float(), nullable=True),
        sa.Column("price_output", sa.Float(), nullable=True),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('openai', 'anthropic')", name=op.f("ck_model_profile_kind")),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_model_profile_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "name", name=op.f("pk_model_profile")),
    )


def downgrade() -> None:
    raise RuntimeError("profiles are not thrown away; restore a backup instead")
