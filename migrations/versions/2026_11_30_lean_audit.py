"""The trail is indexed by an entry's approval only where it has one: no other entry pays for it."""

import sqlalchemy as sa
from alembic import op

revision: str = "lean_audit"
down_revision: str | None = "messaging"
branch_labels: str | None = None
depends_on: str | None = None

NAME = "ix_audit_entry_tenant_id_approval_id"
ONLY = "approval_id IS NOT NULL"


def upgrade() -> None:
    op.drop_index(NAME, table_name="audit_entry")
    op.create_index(
        NAME,
        "audit_entry",
        ["tenant_id", "approval_id"],
        sqlite_where=sa.text(ONLY),
        postgresql_where=sa.text(ONLY),
    )


def downgrade() -> None:
    raise RuntimeError("the trail is indexed as the application asks; restore a backup instead")
