"""The trail and agent releases refuse to be changed, whoever asks (CMD-19)."""

from alembic import op

revision: str = "append_only"
down_revision: str | None = "foundation"
branch_labels: str | None = None
depends_on: str | None = None

TABLES = ("audit_entry", "agent_release")


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            """
            CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'rows of % are never changed', TG_TABLE_NAME; END $$
            """
        )
    for table in TABLES:
        _refuse("UPDATE", table)
        _refuse("DELETE", table)


def _refuse(action: str, table: str) -> None:
    name = f"{table}_no_{action.lower()}"
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {action} ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION refuse_change()"
        )
    else:
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {action} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are never changed'); END"
        )


def downgrade() -> None:
    raise RuntimeError("an append-only trail does not become a changeable one")
