"""The ground: events, keys, identity, OAuth and the audit trail."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "foundation"
down_revision: str | None = None
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.create_table(
        "authorization_code",
        sa.Column("code_sha256", sa.String(length=64), nullable=False),
        sa.Column("client_id", sa.String(length=500), nullable=False),
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("session_id", sa.String(length=26), nullable=True),
        sa.Column("delegation_id", sa.String(length=26), nullable=False),
        sa.Column("redirect_uri", sa.String(length=2000), nullable=False),
        sa.Column("scope", sa.String(length=500), nullable=False),
        sa.Column("resource", sa.String(length=500), nullable=False),
        sa.Column("code_challenge", sa.String(length=128), nullable=False),
        sa.Column("auth_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "amr",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("family_id", sa.String(length=26), nullable=True),
        sa.PrimaryKeyConstraint("code_sha256", name=op.f("pk_authorization_code")),
    )
    op.create_table(
        "device_code",
        sa.Column("device_sha256", sa.String(length=64), nullable=False),
        sa.Column("user_code_sha256", sa.String(length=64), nullable=False),
        sa.Column("client_id", sa.String(length=500), nullable=False),
        sa.Column("scope", sa.String(length=500), nullable=False),
        sa.Column("resource", sa.String(length=500), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("tenant_id", sa.String(length=26), nullable=True),
        sa.Column("user_id", sa.String(length=26), nullable=True),
        sa.Column("session_id", sa.String(length=26), nullable=True),
        sa.Column("delegation_id", sa.String(length=26), nullable=True),
        sa.Column("family_id", sa.String(length=26), nullable=True),
        sa.Column("auth_time", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "amr",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("interval_s", sa.Integer(), nullable=False),
        sa.Column("polled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "state IN ('open', 'approved', 'denied', 'used')", name=op.f("ck_device_code_state")
        ),
        sa.PrimaryKeyConstraint("device_sha256", name=op.f("pk_device_code")),
        sa.UniqueConstraint("user_code_sha256", name=op.f("uq_device_code_user_code_sha256")),
    )
    op.create_table(
        "feature",
        sa.Column("code", sa.String(length=127), nullable=False),
        sa.Column("pack", sa.String(length=63), nullable=False),
        sa.Column(
            "title",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("code", name=op.f("pk_feature")),
    )
    op.create_table(
        "oauth_client",
        sa.Column("id", sa.String(length=500), nullable=False),
        sa.Column("source", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("metadata_sha256", sa.String(length=64), nullable=True),
        sa.Column(
            "redirect_uris",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "grant_types",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("auth_method", sa.String(length=30), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=True),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("owner_tenant_id", sa.String(length=26), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("fetched_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fresh_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "auth_method IN ('none', 'client_secret_basic')",
            name=op.f("ck_oauth_client_auth_method"),
        ),
        sa.CheckConstraint(
            "source IN ('registered', 'cimd', 'dcr', 'hosted')", name=op.f("ck_oauth_client_source")
        ),
        sa.CheckConstraint("status IN ('active', 'blocked')", name=op.f("ck_oauth_client_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oauth_client")),
    )
    op.create_table(
        "oauth_request",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("session_id", sa.String(length=26), nullable=True),
        sa.Column(
            "parameters",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_oauth_request")),
    )
    op.create_table(
        "oidc_state",
        sa.Column("state_sha256", sa.String(length=64), nullable=False),
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("provider", sa.String(length=63), nullable=False),
        sa.Column("nonce", sa.String(length=100), nullable=False),
        sa.Column("verifier", sa.LargeBinary(), nullable=False),
        sa.Column("browser_sha256", sa.String(length=64), nullable=False),
        sa.Column("purpose", sa.String(length=10), nullable=False),
        sa.Column("session_id", sa.String(length=26), nullable=True),
        sa.Column("return_path", sa.String(length=500), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("state_sha256", name=op.f("pk_oidc_state")),
    )
    op.create_table(
        "passkey_challenge",
        sa.Column("challenge_sha256", sa.String(length=64), nullable=False),
        sa.Column("purpose", sa.String(length=20), nullable=False),
        sa.Column("bound_to", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("challenge_sha256", name=op.f("pk_passkey_challenge")),
    )
    op.create_table(
        "permission",
        sa.Column("code", sa.String(length=127), nullable=False),
        sa.Column("pack", sa.String(length=63), nullable=False),
        sa.Column(
            "title",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("code", name=op.f("pk_permission")),
    )
    op.create_table(
        "sealed_key",
        sa.Column("purpose", sa.String(length=100), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("purpose", "number", name=op.f("pk_sealed_key")),
    )
    op.create_table(
        "setup_link",
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("secret_sha256", name=op.f("pk_setup_link")),
    )
    op.create_table(
        "sign_in_failure",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("account_sha256", sa.String(length=64), nullable=False),
        sa.Column("ip_prefix", sa.String(length=50), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("last_failed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("blocked_until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant_id", "account_sha256", "ip_prefix", name=op.f("pk_sign_in_failure")
        ),
    )
    op.create_table(
        "signing_key",
        sa.Column("kid", sa.String(length=64), nullable=False),
        sa.Column("use", sa.String(length=20), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column(
            "public_jwk",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("private", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("activated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('next', 'active', 'retiring', 'retired')", name=op.f("ck_signing_key_state")
        ),
        sa.CheckConstraint(
            "use IN ('access_token', 'id_jag', 'checkpoint')", name=op.f("ck_signing_key_use")
        ),
        sa.PrimaryKeyConstraint("kid", name=op.f("pk_signing_key")),
    )
    op.create_table(
        "tenant",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("slug", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("locale", sa.String(length=10), nullable=False),
        sa.Column(
            "settings",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "status IN ('active', 'suspended', 'closed')", name=op.f("ck_tenant_status")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tenant")),
        sa.UniqueConstraint("slug", name=op.f("uq_tenant_slug")),
    )
    op.create_table(
        "used_assertion",
        sa.Column("issuer", sa.String(length=500), nullable=False),
        sa.Column("jti", sa.String(length=255), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("issuer", "jti", name=op.f("pk_used_assertion")),
    )
    op.create_table(
        "audit_entry",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("prev_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("call_id", sa.String(length=64), nullable=False),
        sa.Column("parent_call_id", sa.String(length=64), nullable=True),
        sa.Column("command", sa.String(length=128), nullable=False),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("risk", sa.String(length=2), nullable=True),
        sa.Column("idempotent", sa.Boolean(), nullable=True),
        sa.Column("reversible", sa.Boolean(), nullable=True),
        sa.Column("outcome", sa.String(length=12), nullable=False),
        sa.Column("stage", sa.String(length=40), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("user_id", sa.String(length=26), nullable=True),
        sa.Column("org_id", sa.String(length=26), nullable=True),
        sa.Column("agent_id", sa.String(length=26), nullable=True),
        sa.Column("agent_release", sa.String(length=26), nullable=True),
        sa.Column("model", sa.String(length=200), nullable=True),
        sa.Column("model_version", sa.String(length=200), nullable=True),
        sa.Column("channel", sa.String(length=10), nullable=False),
        sa.Column("session_id", sa.String(length=64), nullable=True),
        sa.Column("conversation_id", sa.String(length=64), nullable=True),
        sa.Column("run_id", sa.String(length=26), nullable=True),
        sa.Column("turn", sa.Integer(), nullable=True),
        sa.Column("prompt_digest", sa.String(length=64), nullable=True),
        sa.Column("prompt_ref", sa.String(length=200), nullable=True),
        sa.Column("approval_id", sa.String(length=26), nullable=True),
        sa.Column("approved_by", sa.String(length=26), nullable=True),
        sa.Column("approved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("brief", sa.String(length=64), nullable=True),
        sa.Column("idempotency_key_digest", sa.String(length=64), nullable=True),
        sa.Column("input_digest", sa.String(length=64), nullable=True),
        sa.Column(
            "input_redacted",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=True,
        ),
        sa.Column("target_type", sa.String(length=64), nullable=True),
        sa.Column("target_id", sa.String(length=500), nullable=True),
        sa.Column(
            "changes",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=True,
        ),
        sa.Column(
            "timings",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=True,
        ),
        sa.Column("trace_id", sa.String(length=32), nullable=True),
        sa.CheckConstraint(
            "NOT (risk = 'L4' AND outcome IN ('done', 'dispatched') AND approved_by IS NULL)",
            name=op.f("ck_audit_entry_l4_has_an_approver"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_audit_entry_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "seq", name=op.f("pk_audit_entry")),
    )
    with op.batch_alter_table("audit_entry") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_approval_id"),
            ["tenant_id", "approval_id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_at"), ["tenant_id", "at"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_call_id"), ["tenant_id", "call_id"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_command_seq"),
            ["tenant_id", "command", "seq"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_target_id_seq"),
            ["tenant_id", "target_id", "seq"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_audit_entry_tenant_id_user_id_seq"),
            ["tenant_id", "user_id", "seq"],
            unique=False,
        )

    op.create_table(
        "audit_head",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_audit_head_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_audit_head")),
    )
    op.create_table(
        "audit_repeat",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("key_sha256", sa.String(length=64), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen", sa.Integer(), nullable=False),
        sa.Column(
            "entry",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_audit_repeat_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "key_sha256", name=op.f("pk_audit_repeat")),
    )
    with op.batch_alter_table("audit_repeat") as batch_op:
        batch_op.create_index(batch_op.f("ix_audit_repeat_began_at"), ["began_at"], unique=False)

    op.create_table(
        "entitlement",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("feature", sa.String(length=127), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("starts_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("source", sa.String(length=200), nullable=False),
        sa.CheckConstraint(
            "status IN ('trial', 'active', 'grace', 'expired')", name=op.f("ck_entitlement_status")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_entitlement_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "feature", name=op.f("pk_entitlement")),
    )
    op.create_table(
        "event",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=100), nullable=False),
        sa.Column("subject", sa.String(length=100), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=True),
        sa.Column("permission", sa.String(length=100), nullable=True),
        sa.Column(
            "data",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_event_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "seq", name=op.f("pk_event")),
    )
    with op.batch_alter_table("event") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_event_tenant_id_at"), ["tenant_id", "at"], unique=False
        )

    op.create_table(
        "event_head",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("epoch", sa.String(length=26), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("oldest_seq", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_event_head_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_event_head")),
    )
    op.create_table(
        "org",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("parent_id", sa.String(length=26), nullable=True),
        sa.Column("path", sa.String(length=1000), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.CheckConstraint("status IN ('active', 'closed')", name=op.f("ck_org_status")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "parent_id"],
            ["org.tenant_id", "org.id"],
            name=op.f("fk_org_tenant_id_parent_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_org_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_org")),
        sa.UniqueConstraint("tenant_id", "path", name=op.f("uq_org_tenant_id_path")),
    )
    op.create_table(
        "role",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("code", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("builtin", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_role_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_role")),
        sa.UniqueConstraint("tenant_id", "code", name=op.f("uq_role_tenant_id_code")),
    )
    op.create_table(
        "grant",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("role_id", sa.String(length=26), nullable=False),
        sa.Column("permission", sa.String(length=127), nullable=False),
        sa.Column("data_scope", sa.String(length=20), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "role_id"],
            ["role.tenant_id", "role.id"],
            name=op.f("fk_grant_tenant_id_role_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_grant_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "role_id", "permission", name=op.f("pk_grant")),
    )
    with op.batch_alter_table("grant") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_grant_tenant_id_permission"), ["tenant_id", "permission"], unique=False
        )

    op.create_table(
        "user",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("login", sa.String(length=100), nullable=False),
        sa.Column("display_name", sa.String(length=200), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=True),
        sa.Column("email_verified", sa.Boolean(), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("locale", sa.String(length=10), nullable=True),
        sa.Column("time_zone", sa.String(length=64), nullable=True),
        sa.Column("theme", sa.String(length=10), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=True),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("authz_epoch", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("disabled_by", sa.String(length=26), nullable=True),
        sa.Column("search", sa.String(), nullable=False),
        sa.CheckConstraint(
            "status IN ('invited', 'active', 'disabled')", name=op.f("ck_user_status")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "org_id"],
            ["org.tenant_id", "org.id"],
            name=op.f("fk_user_tenant_id_org_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_user_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_user")),
        sa.UniqueConstraint("tenant_id", "aid", name=op.f("uq_user_tenant_id_aid")),
        sa.UniqueConstraint("tenant_id", "login", name=op.f("uq_user_tenant_id_login")),
    )
    with op.batch_alter_table("user") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_user_tenant_id_org_id"), ["tenant_id", "org_id"], unique=False
        )

    op.create_table(
        "agent",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("code", sa.String(length=63), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.String(length=1000), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=True),
        sa.Column("client_id", sa.String(length=500), nullable=True),
        sa.Column("admin_user_id", sa.String(length=26), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column(
            "draft",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("search", sa.String(), nullable=False),
        sa.CheckConstraint("kind IN ('hosted', 'external')", name=op.f("ck_agent_kind")),
        sa.CheckConstraint(
            "status IN ('draft', 'published', 'disabled')", name=op.f("ck_agent_status")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "admin_user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_agent_tenant_id_admin_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_agent_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_agent")),
        sa.UniqueConstraint("tenant_id", "aid", name=op.f("uq_agent_tenant_id_aid")),
        sa.UniqueConstraint("tenant_id", "client_id", name=op.f("uq_agent_tenant_id_client_id")),
        sa.UniqueConstraint("tenant_id", "code", name=op.f("uq_agent_tenant_id_code")),
    )
    op.create_table(
        "credential",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("argon2id", sa.String(length=200), nullable=True),
        sa.Column("passkey_id", sa.String(length=1400), nullable=True),
        sa.Column("public_key", sa.LargeBinary(), nullable=True),
        sa.Column("sign_count", sa.Integer(), nullable=False),
        sa.Column("backup_eligible", sa.Boolean(), nullable=False),
        sa.Column("backed_up", sa.Boolean(), nullable=False),
        sa.Column(
            "transports",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("label", sa.String(length=100), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('password', 'passkey')", name=op.f("ck_credential_kind")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_credential_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_credential_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_credential")),
        sa.UniqueConstraint(
            "tenant_id", "passkey_id", name=op.f("uq_credential_tenant_id_passkey_id")
        ),
    )
    with op.batch_alter_table("credential") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_credential_tenant_id_user_id"), ["tenant_id", "user_id"], unique=False
        )

    op.create_table(
        "external_login",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("provider", sa.String(length=63), nullable=False),
        sa.Column("issuer", sa.String(length=500), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("linked_by_session", sa.String(length=26), nullable=True),
        sa.Column("linked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_external_login_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_external_login_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_external_login")),
        sa.UniqueConstraint(
            "tenant_id",
            "issuer",
            "subject",
            name=op.f("uq_external_login_tenant_id_issuer_subject"),
        ),
    )
    with op.batch_alter_table("external_login") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_external_login_tenant_id_user_id"),
            ["tenant_id", "user_id"],
            unique=False,
        )

    op.create_table(
        "one_time_link",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("purpose", sa.String(length=10), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("created_by_session", sa.String(length=26), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("purpose IN ('invite', 'reset')", name=op.f("ck_one_time_link_purpose")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_one_time_link_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_one_time_link_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_one_time_link")),
        sa.UniqueConstraint(
            "tenant_id", "secret_sha256", name=op.f("uq_one_time_link_tenant_id_secret_sha256")
        ),
    )
    op.create_table(
        "peer_link",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("linked_by_session", sa.String(length=26), nullable=True),
        sa.Column("linked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_peer_link_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_peer_link_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "aid", name=op.f("pk_peer_link")),
    )
    op.create_table(
        "role_assignment",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("role_id", sa.String(length=26), nullable=False),
        sa.Column("org_id", sa.String(length=26), nullable=False),
        sa.Column("assigned_by_session", sa.String(length=26), nullable=True),
        sa.Column("assigned_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "org_id"],
            ["org.tenant_id", "org.id"],
            name=op.f("fk_role_assignment_tenant_id_org_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "role_id"],
            ["role.tenant_id", "role.id"],
            name=op.f("fk_role_assignment_tenant_id_role_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_role_assignment_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_role_assignment_tenant_id")
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "user_id", "role_id", "org_id", name=op.f("pk_role_assignment")
        ),
    )
    with op.batch_alter_table("role_assignment") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_role_assignment_tenant_id_role_id"),
            ["tenant_id", "role_id"],
            unique=False,
        )

    op.create_table(
        "session",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("previous_sha256", sa.String(length=64), nullable=True),
        sa.Column("previous_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("auth_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "amr",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("authz_epoch", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("idle_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ip_prefix", sa.String(length=50), nullable=False),
        sa.Column("user_agent_sha256", sa.String(length=64), nullable=False),
        sa.Column("device", sa.String(length=100), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_why", sa.String(length=40), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_session_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_session_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_session")),
        sa.UniqueConstraint(
            "tenant_id", "secret_sha256", name=op.f("uq_session_tenant_id_secret_sha256")
        ),
    )
    with op.batch_alter_table("session") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_session_tenant_id_previous_sha256"),
            ["tenant_id", "previous_sha256"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_session_tenant_id_user_id"), ["tenant_id", "user_id"], unique=False
        )

    op.create_table(
        "agent_release",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column(
            "content",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("content_sha256", sa.String(length=64), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_by_session", sa.String(length=26), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agent.tenant_id", "agent.id"],
            name=op.f("fk_agent_release_tenant_id_agent_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_agent_release_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_agent_release")),
        sa.UniqueConstraint(
            "tenant_id",
            "agent_id",
            "number",
            name=op.f("uq_agent_release_tenant_id_agent_id_number"),
        ),
    )
    op.create_table(
        "delegation",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=False),
        sa.Column(
            "scopes",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("created_by_session", sa.String(length=26), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_why", sa.String(length=100), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_by", sa.String(length=26), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agent.tenant_id", "agent.id"],
            name=op.f("fk_delegation_tenant_id_agent_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_delegation_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_delegation_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_delegation")),
    )
    with op.batch_alter_table("delegation") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_delegation_tenant_id_agent_id"), ["tenant_id", "agent_id"], unique=False
        )
        batch_op.create_index(
            "uq_delegation_live",
            ["tenant_id", "user_id", "agent_id"],
            unique=True,
            sqlite_where=sa.text("revoked_at IS NULL"),
            postgresql_where=sa.text("revoked_at IS NULL"),
        )

    op.create_table(
        "token_family",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("agent_id", sa.String(length=26), nullable=False),
        sa.Column("delegation_id", sa.String(length=26), nullable=False),
        sa.Column("client_id", sa.String(length=500), nullable=False),
        sa.Column("session_id", sa.String(length=26), nullable=True),
        sa.Column("scope", sa.String(length=500), nullable=False),
        sa.Column("resource", sa.String(length=500), nullable=False),
        sa.Column("auth_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column(
            "amr",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_why", sa.String(length=40), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agent.tenant_id", "agent.id"],
            name=op.f("fk_token_family_tenant_id_agent_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "delegation_id"],
            ["delegation.tenant_id", "delegation.id"],
            name=op.f("fk_token_family_tenant_id_delegation_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_token_family_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_token_family_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_token_family")),
    )
    with op.batch_alter_table("token_family") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_token_family_tenant_id_delegation_id"),
            ["tenant_id", "delegation_id"],
            unique=False,
        )
        batch_op.create_index(
            batch_op.f("ix_token_family_tenant_id_user_id"), ["tenant_id", "user_id"], unique=False
        )

    op.create_table(
        "refresh_token",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("family_id", sa.String(length=26), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("issued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "family_id"],
            ["token_family.tenant_id", "token_family.id"],
            name=op.f("fk_refresh_token_tenant_id_family_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_refresh_token_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "family_id", "number", name=op.f("pk_refresh_token")),
        sa.UniqueConstraint(
            "tenant_id", "secret_sha256", name=op.f("uq_refresh_token_tenant_id_secret_sha256")
        ),
    )


def downgrade() -> None:
    raise RuntimeError("the first schema has nothing before it; restore a backup instead")
