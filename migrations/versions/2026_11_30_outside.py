"""Outside servers, their tools, and people's access to them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "outside"
down_revision: str | None = "model_profiles"
branch_labels: str | None = None
depends_on: str | None = None

JSON = sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _servers()
    _tools()
    _links()
    _link_requests()
    op.add_column("run", sa.Column("outside_pins", JSON, nullable=True))


def downgrade() -> None:
    raise RuntimeError("people's access is not thrown away; restore a backup instead")


def _servers() -> None:
    op.create_table(
        "mcp_server",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("name", sa.String(length=24), nullable=False),
        sa.Column("transport", sa.String(length=5), nullable=False),
        sa.Column("url", sa.String(length=500), nullable=False),
        sa.Column("access", sa.String(length=5), nullable=False),
        sa.Column("client_id", sa.String(length=500), nullable=False),
        sa.Column("client_secret_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("client_issuer", sa.String(length=1000), nullable=False),
        sa.Column("is_registered", sa.Boolean(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), nullable=False),
        sa.Column("fault", sa.String(length=64), nullable=False),
        sa.Column("looked_at", MOMENT, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.CheckConstraint("transport IN ('http', 'stdio')", name=op.f("ck_mcp_server_transport")),
        sa.CheckConstraint(
            "access IN ('open', 'token', 'oauth')", name=op.f("ck_mcp_server_access")
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_mcp_server_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_mcp_server")),
        sa.UniqueConstraint("tenant_id", "name", name=op.f("uq_mcp_server_tenant_id_name")),
    )


def _tools() -> None:
    op.create_table(
        "mcp_tool",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("server_id", sa.String(length=26), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("local", sa.String(length=128), nullable=False),
        sa.Column("state", sa.String(length=7), nullable=False),
        sa.Column("risk", sa.String(length=2), nullable=False),
        sa.Column("pin", sa.String(length=64), nullable=True),
        sa.Column("pinned", JSON, nullable=True),
        sa.Column("offered_pin", sa.String(length=64), nullable=False),
        sa.Column("offered", JSON, nullable=False),
        sa.Column("unfit", sa.String(length=64), nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.Column("enabled_at", MOMENT, nullable=True),
        sa.Column("enabled_by", sa.String(length=26), nullable=True),
        sa.CheckConstraint(
            "state IN ('off', 'enabled', 'changed', 'gone')", name=op.f("ck_mcp_tool_state")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "server_id"],
            ["mcp_server.tenant_id", "mcp_server.id"],
            name=op.f("fk_mcp_tool_tenant_id_server_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_mcp_tool_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_mcp_tool")),
        sa.UniqueConstraint(
            "tenant_id", "server_id", "name", name=op.f("uq_mcp_tool_tenant_id_server_id_name")
        ),
    )


def _links() -> None:
    op.create_table(
        "mcp_link",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("server_id", sa.String(length=26), nullable=False),
        sa.Column("token_sealed", sa.LargeBinary(), nullable=False),
        sa.Column("refresh_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("oauth", JSON, nullable=True),
        sa.Column("client_id", sa.String(length=500), nullable=False),
        sa.Column("client_secret_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("scope", sa.String(length=1000), nullable=False),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("is_broken", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "server_id"],
            ["mcp_server.tenant_id", "mcp_server.id"],
            name=op.f("fk_mcp_link_tenant_id_server_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_mcp_link_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_mcp_link_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "server_id", name=op.f("pk_mcp_link")),
    )


def _link_requests() -> None:
    op.create_table(
        "mcp_link_request",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("state_sha256", sa.String(length=64), nullable=False),
        sa.Column("server_id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("session_id", sa.String(length=26), nullable=False),
        sa.Column("verifier_sealed", sa.LargeBinary(), nullable=False),
        sa.Column("oauth", JSON, nullable=False),
        sa.Column("client_id", sa.String(length=500), nullable=False),
        sa.Column("client_secret_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "server_id"],
            ["mcp_server.tenant_id", "mcp_server.id"],
            name=op.f("fk_mcp_link_request_tenant_id_server_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_mcp_link_request_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "state_sha256", name=op.f("pk_mcp_link_request")),
    )
    op.create_index(
        op.f("ix_mcp_link_request_expires_at"), "mcp_link_request", ["expires_at"], unique=False
    )
