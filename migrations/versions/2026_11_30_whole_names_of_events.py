"""The log of events holds the name of an event whole: as long as the code of a command may be."""

import sqlalchemy as sa
from alembic import op

revision: str = "whole_names_of_events"
down_revision: str | None = "commands"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    with op.batch_alter_table("event") as batch_op:
        batch_op.alter_column(
            "kind",
            existing_type=sa.String(length=100),
            type_=sa.String(length=128),
            existing_nullable=False,
        )


def downgrade() -> None:
    raise RuntimeError("names of events would be cut; restore a backup instead")
