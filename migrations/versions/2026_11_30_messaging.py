"""Messaging: identities, certificates, conversations, messages, inboxes, groups, thoughts."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "messaging"
down_revision: str | None = "whole_names_of_events"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.create_table(
        "aun_root",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("certificate", sa.LargeBinary(), nullable=False),
        sa.Column("key_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_aun_root")),
    )
    op.create_table(
        "aun_connection",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("device_id", sa.String(length=128), nullable=False),
        sa.Column("slot_key", sa.String(length=128), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("delivery_mode", sa.String(length=10), nullable=False),
        sa.Column("replica", sa.String(length=26), nullable=False),
        sa.Column("connected_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_connection_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_aun_connection")),
    )
    with op.batch_alter_table("aun_connection") as batch_op:
        batch_op.create_index(batch_op.f("ix_aun_connection_replica"), ["replica"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_aun_connection_tenant_id_aid"), ["tenant_id", "aid"], unique=False
        )

    op.create_table(
        "aun_cursor",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("device_id", sa.String(length=128), nullable=False),
        sa.Column("slot_key", sa.String(length=128), nullable=False),
        sa.Column("scope", sa.String(length=15), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("ack_seq", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "scope IN ('peer', 'group', 'group_event', 'global')", name=op.f("ck_aun_cursor_scope")
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_aun_cursor_tenant_id")),
        sa.PrimaryKeyConstraint(
            "tenant_id",
            "aid",
            "device_id",
            "slot_key",
            "scope",
            "subject",
            name=op.f("pk_aun_cursor"),
        ),
    )
    op.create_table(
        "aun_device_key",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("device_id", sa.String(length=128), nullable=False),
        sa.Column("group_id", sa.String(length=200), nullable=False),
        sa.Column("key_source", sa.String(length=40), nullable=False),
        sa.Column("spk_id", sa.String(length=80), nullable=False),
        sa.Column("spk_pk", sa.Text(), nullable=False),
        sa.Column("spk_signature", sa.Text(), nullable=False),
        sa.Column("spk_timestamp", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_device_key_tenant_id")
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "aid", "device_id", "group_id", name=op.f("pk_aun_device_key")
        ),
    )
    op.create_table(
        "aun_group",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.String(length=2000), nullable=False),
        sa.Column("owner_aid", sa.String(length=200), nullable=False),
        sa.Column("creator_aid", sa.String(length=200), nullable=False),
        sa.Column("create_request_id", sa.String(length=128), nullable=True),
        sa.Column("is_named", sa.Boolean(), nullable=False),
        sa.Column("visibility", sa.String(length=10), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("join_mode", sa.String(length=15), nullable=False),
        sa.Column("mention_mode", sa.String(length=15), nullable=False),
        sa.Column(
            "settings",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "details",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column(
            "shut_out",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("message_seq", sa.BigInteger(), nullable=False),
        sa.Column("event_seq", sa.BigInteger(), nullable=False),
        sa.Column("member_count", sa.Integer(), nullable=False),
        sa.Column("transfer_to", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "join_mode IN ('open', 'approval', 'invite_only', 'closed')",
            name=op.f("ck_aun_group_join_mode"),
        ),
        sa.CheckConstraint(
            "mention_mode IN ('disabled', 'mention-only')", name=op.f("ck_aun_group_mention_mode")
        ),
        sa.CheckConstraint(
            "status IN ('active', 'suspended', 'dissolved')", name=op.f("ck_aun_group_status")
        ),
        sa.CheckConstraint(
            "visibility IN ('public', 'private')", name=op.f("ck_aun_group_visibility")
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_aun_group_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_aun_group")),
    )
    with op.batch_alter_table("aun_group") as batch_op:
        batch_op.create_index(
            "ix_aun_group_request", ["tenant_id", "creator_aid", "create_request_id"], unique=False
        )

    op.create_table(
        "aun_identity",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("owner_id", sa.String(length=200), nullable=True),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("key_sealed", sa.LargeBinary(), nullable=True),
        sa.Column("tokens_from", sa.DateTime(timezone=True), nullable=True),
        sa.Column("card", sa.Text(), nullable=True),
        sa.Column("card_etag", sa.String(length=64), nullable=True),
        sa.Column("card_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('user', 'agent', 'group', 'system', 'outside')",
            name=op.f("ck_aun_identity_kind"),
        ),
        sa.CheckConstraint(
            "status IN ('active', 'inactive', 'blocked')", name=op.f("ck_aun_identity_status")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_identity_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "aid", name=op.f("pk_aun_identity")),
    )
    with op.batch_alter_table("aun_identity") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_aun_identity_tenant_id_owner_id"),
            ["tenant_id", "owner_id"],
            unique=False,
        )

    op.create_table(
        "aun_issuer",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("domain", sa.String(length=200), nullable=False),
        sa.Column("root_id", sa.String(length=26), nullable=False),
        sa.Column("certificate", sa.LargeBinary(), nullable=False),
        sa.Column("key_sealed", sa.LargeBinary(), nullable=False),
        sa.Column("auth_certificate", sa.LargeBinary(), nullable=False),
        sa.Column("auth_key_sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["root_id"], ["aun_root.id"], name=op.f("fk_aun_issuer_root_id")),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_aun_issuer_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_aun_issuer")),
        sa.UniqueConstraint("domain", name=op.f("uq_aun_issuer_domain")),
    )
    op.create_table(
        "aun_refresh_token",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("chain_id", sa.String(length=26), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("chain_started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_refresh_token_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "digest", name=op.f("pk_aun_refresh_token")),
    )
    with op.batch_alter_table("aun_refresh_token") as batch_op:
        batch_op.create_index("ix_aun_refresh_token_chain", ["tenant_id", "chain_id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_aun_refresh_token_tenant_id_aid"), ["tenant_id", "aid"], unique=False
        )

    op.create_table(
        "aun_login_challenge",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("serial", sa.String(length=40), nullable=False),
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_login_challenge_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_aun_login_challenge")),
    )
    with op.batch_alter_table("aun_login_challenge") as batch_op:
        batch_op.create_index("ix_aun_login_challenge_expires", ["expires_at"], unique=False)

    op.create_table(
        "aun_reservation",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("created_by", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_reservation_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_aun_reservation")),
    )
    with op.batch_alter_table("aun_reservation") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_aun_reservation_tenant_id_name"), ["tenant_id", "name"], unique=False
        )

    op.create_table(
        "aun_token_key",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("kid", sa.String(length=26), nullable=False),
        sa.Column("key_sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_token_key_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "kid", name=op.f("pk_aun_token_key")),
    )
    op.create_table(
        "conversation",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("first_aid", sa.String(length=200), nullable=True),
        sa.Column("second_aid", sa.String(length=200), nullable=True),
        sa.Column("group_id", sa.String(length=200), nullable=True),
        sa.Column("started_by", sa.String(length=200), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_message_id", sa.String(length=26), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('direct', 'group')", name=op.f("ck_conversation_kind")),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_conversation_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_conversation")),
        sa.UniqueConstraint(
            "tenant_id",
            "first_aid",
            "second_aid",
            name=op.f("uq_conversation_tenant_id_first_aid_second_aid"),
        ),
        sa.UniqueConstraint(
            "tenant_id", "group_id", name=op.f("uq_conversation_tenant_id_group_id")
        ),
    )
    op.create_table(
        "inbox_counter",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_inbox_counter_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "aid", name=op.f("pk_inbox_counter")),
    )
    op.create_table(
        "inbox_entry",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("message", sa.String(length=26), nullable=False),
        sa.Column("sender_aid", sa.String(length=200), nullable=False),
        sa.Column("prev_peer_seq", sa.BigInteger(), nullable=False),
        sa.Column("direction", sa.String(length=15), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_inbox_entry_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "aid", "seq", name=op.f("pk_inbox_entry")),
    )
    with op.batch_alter_table("inbox_entry") as batch_op:
        batch_op.create_index("ix_inbox_entry_message", ["tenant_id", "message"], unique=False)
        batch_op.create_index(
            "ix_inbox_entry_peer", ["tenant_id", "aid", "sender_aid", "seq"], unique=False
        )

    op.create_table(
        "inbox_peer",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("sender_aid", sa.String(length=200), nullable=False),
        sa.Column("head_seq", sa.BigInteger(), nullable=False),
        sa.Column("prev_seq", sa.BigInteger(), nullable=False),
        sa.Column("floor_seq", sa.BigInteger(), nullable=False),
        sa.Column("delivered_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_inbox_peer_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "aid", "sender_aid", name=op.f("pk_inbox_peer")),
    )
    op.create_table(
        "read_position",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("scope", sa.String(length=200), nullable=False),
        sa.Column("topic", sa.String(length=128), nullable=False),
        sa.Column("message_id", sa.String(length=128), nullable=False),
        sa.Column("order", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_read_position_tenant_id")
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "aid", "scope", "topic", name=op.f("pk_read_position")
        ),
    )
    op.create_table(
        "thought_head",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("sender_aid", sa.String(length=200), nullable=False),
        sa.Column("peer", sa.String(length=200), nullable=False),
        sa.Column("context_type", sa.String(length=128), nullable=False),
        sa.Column("context_id", sa.String(length=128), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_thought_head_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_thought_head")),
        sa.UniqueConstraint(
            "tenant_id",
            "sender_aid",
            "peer",
            "context_type",
            "context_id",
            name=op.f("uq_thought_head_tenant_id_sender_aid_peer_context_type_context_id"),
        ),
    )
    with op.batch_alter_table("thought_head") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_thought_head_tenant_id_sender_aid_peer_updated_at"),
            ["tenant_id", "sender_aid", "peer", "updated_at"],
            unique=False,
        )

    op.create_table(
        "aun_certificate",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("serial", sa.String(length=40), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("der", sa.LargeBinary(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("key_fingerprint", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("not_after", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('active', 'retired', 'revoked')", name=op.f("ck_aun_certificate_state")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "aid"],
            ["aun_identity.tenant_id", "aun_identity.aid"],
            name=op.f("fk_aun_certificate_tenant_id_aid"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_certificate_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "serial", name=op.f("pk_aun_certificate")),
        sa.UniqueConstraint(
            "tenant_id", "fingerprint", name=op.f("uq_aun_certificate_tenant_id_fingerprint")
        ),
    )
    with op.batch_alter_table("aun_certificate") as batch_op:
        batch_op.create_index(
            "ix_aun_certificate_key", ["tenant_id", "aid", "key_fingerprint"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_aun_certificate_tenant_id_aid_state"),
            ["tenant_id", "aid", "state"],
            unique=False,
        )

    op.create_table(
        "aun_group_event",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("group_id", sa.String(length=200), nullable=False),
        sa.Column("event_seq", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("actor_aid", sa.String(length=200), nullable=False),
        sa.Column(
            "data",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "group_id"],
            ["aun_group.tenant_id", "aun_group.id"],
            name=op.f("fk_aun_group_event_tenant_id_group_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_group_event_tenant_id")
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "group_id", "event_seq", name=op.f("pk_aun_group_event")
        ),
    )
    op.create_table(
        "aun_group_invite",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("group_id", sa.String(length=200), nullable=False),
        sa.Column("invitee_aid", sa.String(length=200), nullable=False),
        sa.Column(
            "inviter_aids",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('pending', 'accepted', 'rejected', 'revoked', 'expired')",
            name=op.f("ck_aun_group_invite_status"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "group_id"],
            ["aun_group.tenant_id", "aun_group.id"],
            name=op.f("fk_aun_group_invite_tenant_id_group_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_group_invite_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_aun_group_invite")),
    )
    with op.batch_alter_table("aun_group_invite") as batch_op:
        batch_op.create_index(
            "ix_aun_group_invite_group", ["tenant_id", "group_id", "invitee_aid"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_aun_group_invite_tenant_id_invitee_aid_status"),
            ["tenant_id", "invitee_aid", "status"],
            unique=False,
        )

    op.create_table(
        "aun_group_member",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("group_id", sa.String(length=200), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=10), nullable=False),
        sa.Column("member_type", sa.String(length=20), nullable=False),
        sa.Column("joined_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("join_seq", sa.BigInteger(), nullable=False),
        sa.Column("join_event_seq", sa.BigInteger(), nullable=False),
        sa.Column("banned_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ban_reason", sa.String(length=500), nullable=False),
        sa.Column("blocked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "said",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "role IN ('owner', 'admin', 'member')", name=op.f("ck_aun_group_member_role")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "group_id"],
            ["aun_group.tenant_id", "aun_group.id"],
            name=op.f("fk_aun_group_member_tenant_id_group_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_group_member_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "group_id", "aid", name=op.f("pk_aun_group_member")),
    )
    with op.batch_alter_table("aun_group_member") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_aun_group_member_tenant_id_aid"), ["tenant_id", "aid"], unique=False
        )

    op.create_table(
        "aun_group_state",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("group_id", sa.String(length=200), nullable=False),
        sa.Column("state_version", sa.BigInteger(), nullable=False),
        sa.Column("proposal_id", sa.String(length=26), nullable=False),
        sa.Column("snapshot", sa.Text(), nullable=False),
        sa.Column("state_hash", sa.String(length=128), nullable=False),
        sa.Column("prev_state_hash", sa.String(length=128), nullable=False),
        sa.Column("state_chain", sa.String(length=128), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("actor_aid", sa.String(length=200), nullable=False),
        sa.Column(
            "details",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "group_id"],
            ["aun_group.tenant_id", "aun_group.id"],
            name=op.f("fk_aun_group_state_tenant_id_group_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_group_state_tenant_id")
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "group_id", "state_version", name=op.f("pk_aun_group_state")
        ),
    )
    op.create_table(
        "aun_invite_code",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("code_sealed", sa.Text(), nullable=False),
        sa.Column("group_id", sa.String(length=200), nullable=False),
        sa.Column("max_uses", sa.Integer(), nullable=False),
        sa.Column("used_count", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "group_id"],
            ["aun_group.tenant_id", "aun_group.id"],
            name=op.f("fk_aun_invite_code_tenant_id_group_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_invite_code_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "digest", name=op.f("pk_aun_invite_code")),
    )
    with op.batch_alter_table("aun_invite_code") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_aun_invite_code_tenant_id_group_id"),
            ["tenant_id", "group_id"],
            unique=False,
        )

    op.create_table(
        "aun_join_request",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("group_id", sa.String(length=200), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("message", sa.String(length=2000), nullable=False),
        sa.Column("answer", sa.String(length=2000), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("reviewed_by", sa.String(length=200), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'approved', 'rejected', 'expired')",
            name=op.f("ck_aun_join_request_status"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "group_id"],
            ["aun_group.tenant_id", "aun_group.id"],
            name=op.f("fk_aun_join_request_tenant_id_group_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_join_request_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "group_id", "aid", name=op.f("pk_aun_join_request")),
    )
    with op.batch_alter_table("aun_join_request") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_aun_join_request_tenant_id_group_id_status"),
            ["tenant_id", "group_id", "status"],
            unique=False,
        )

    op.create_table(
        "conversation_participant",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("conversation_id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("from_seq", sa.BigInteger(), nullable=False),
        sa.Column("read_seq", sa.BigInteger(), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=True),
        sa.Column("pinned_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("left_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "conversation_id"],
            ["conversation.tenant_id", "conversation.id"],
            name=op.f("fk_conversation_participant_tenant_id_conversation_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_conversation_participant_tenant_id")
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "conversation_id", "aid", name=op.f("pk_conversation_participant")
        ),
    )
    with op.batch_alter_table("conversation_participant") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_conversation_participant_tenant_id_aid"),
            ["tenant_id", "aid"],
            unique=False,
        )

    op.create_table(
        "message",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("conversation_id", sa.String(length=26), nullable=False),
        sa.Column("sender_aid", sa.String(length=200), nullable=False),
        sa.Column("sender_device", sa.String(length=128), nullable=False),
        sa.Column("message_id", sa.String(length=128), nullable=False),
        sa.Column("receiver_aid", sa.String(length=200), nullable=True),
        sa.Column("group_id", sa.String(length=200), nullable=True),
        sa.Column("seq", sa.BigInteger(), nullable=True),
        sa.Column("log_seq", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(length=128), nullable=False),
        sa.Column(
            "payload",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=True,
        ),
        sa.Column("envelope", sa.Text(), nullable=True),
        sa.Column("unreadable", sa.String(length=40), nullable=True),
        sa.Column("html", sa.Text(), nullable=True),
        sa.Column("need_render", sa.Boolean(), nullable=False),
        sa.Column("mention_mode", sa.String(length=20), nullable=True),
        sa.Column("in_reply_to", sa.String(length=128), nullable=True),
        sa.Column("thread_id", sa.String(length=128), nullable=True),
        sa.Column("to_device", sa.String(length=128), nullable=True),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("recalled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "conversation_id"],
            ["conversation.tenant_id", "conversation.id"],
            name=op.f("fk_message_tenant_id_conversation_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_message_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_message")),
        sa.UniqueConstraint(
            "tenant_id", "group_id", "seq", name=op.f("uq_message_tenant_id_group_id_seq")
        ),
        sa.UniqueConstraint(
            "tenant_id",
            "sender_aid",
            "message_id",
            name=op.f("uq_message_tenant_id_sender_aid_message_id"),
        ),
    )
    with op.batch_alter_table("message") as batch_op:
        batch_op.create_index("ix_message_expires", ["expires_at"], unique=False)
        batch_op.create_index(
            "ix_message_reply", ["tenant_id", "conversation_id", "in_reply_to"], unique=False
        )
        batch_op.create_index(
            batch_op.f("ix_message_tenant_id_conversation_id_log_seq"),
            ["tenant_id", "conversation_id", "log_seq"],
            unique=False,
        )

    op.create_table(
        "thought",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("head_id", sa.String(length=26), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("thought_id", sa.String(length=128), nullable=False),
        sa.Column(
            "payload",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.Column("is_encrypted", sa.Boolean(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "head_id"],
            ["thought_head.tenant_id", "thought_head.id"],
            name=op.f("fk_thought_tenant_id_head_id"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name=op.f("fk_thought_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id", "head_id", "number", name=op.f("pk_thought")),
    )
    op.create_table(
        "aun_link_code",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=26), nullable=False),
        sa.Column("session_id", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("proved_aid", sa.String(length=200), nullable=True),
        sa.Column("proved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["user.tenant_id", "user.id"],
            name=op.f("fk_aun_link_code_tenant_id_user_id"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenant.id"], name=op.f("fk_aun_link_code_tenant_id")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "digest", name=op.f("pk_aun_link_code")),
    )
    with op.batch_alter_table("aun_link_code") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_aun_link_code_tenant_id_session_id"),
            ["tenant_id", "session_id"],
            unique=False,
        )

    not_logged: dict[str, Any] = (
        {"prefixes": ["UNLOGGED"]} if op.get_bind().dialect.name == "postgresql" else {}
    )
    op.create_table(
        "aun_volatile_head",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("aid", sa.String(length=200), nullable=False),
        sa.Column("epoch", sa.String(length=26), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "aid", name=op.f("pk_aun_volatile_head")),
        **not_logged,
    )
    op.create_table(
        "aun_volatile",
        sa.Column("tenant_id", sa.String(length=26), nullable=False),
        sa.Column("receiver_aid", sa.String(length=200), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.String(length=26), nullable=False),
        sa.Column("sender_aid", sa.String(length=200), nullable=False),
        sa.Column("sender_device", sa.String(length=128), nullable=False),
        sa.Column("message_id", sa.String(length=128), nullable=False),
        sa.Column("type", sa.String(length=128), nullable=False),
        sa.Column(
            "payload",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=True,
        ),
        sa.Column("envelope", sa.Text(), nullable=True),
        sa.Column("need_render", sa.Boolean(), nullable=False),
        sa.Column("to_device", sa.String(length=128), nullable=True),
        sa.Column("sent_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column(
            "has",
            sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "receiver_aid", "number", name=op.f("pk_aun_volatile")
        ),
        sa.UniqueConstraint(
            "tenant_id",
            "sender_aid",
            "message_id",
            name=op.f("uq_aun_volatile_tenant_id_sender_aid_message_id"),
        ),
        **not_logged,
    )
    with op.batch_alter_table("aun_volatile") as batch_op:
        batch_op.create_index("ix_aun_volatile_expires", ["expires_ms"], unique=False)

    with op.batch_alter_table("event") as batch_op:
        batch_op.add_column(sa.Column("topic", sa.String(length=26), nullable=True))


def downgrade() -> None:
    raise RuntimeError("messages are not thrown away; restore a backup instead")
