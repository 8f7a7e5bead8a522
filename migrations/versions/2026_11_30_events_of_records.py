"""An event may tell of a record, and then says whose: who may hear of it is decided by that."""

import sqlalchemy as sa
from alembic import op

revision: str = "events_of_records"
down_revision: str | None = "append_only"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.add_column("event", sa.Column("org_id", sa.String(length=26), nullable=True))
    op.add_column("event", sa.Column("owner_id", sa.String(length=26), nullable=True))


def downgrade() -> None:
    raise RuntimeError("events of records would be told to everybody; restore a backup instead")
