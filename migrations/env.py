"""Runs migrations on the connection the application hands over, or on a scratch database."""

import importlib
from pathlib import Path

from alembic import context
from sqlalchemy import Connection
from sqlmodel import SQLModel

from app.kernel.db import engine_for
from app.kernel.settings import current

ROOT = Path(__file__).parent.parent
for path in sorted((ROOT / "app").glob("**/*models.py")):
    importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def run(connection: Connection) -> None:
    """Run what was asked for, in the transaction of `connection`."""
    context.configure(
        connection=connection,
        target_metadata=SQLModel.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
        transactional_ddl=True,  # ours is, on SQLite too: we say BEGIN ourselves
    )
    with context.begin_transaction():
        context.run_migrations()


handed_over = context.config.attributes.get("connection")
if handed_over is not None:
    run(handed_over)
else:
    engine = engine_for(current().database)
    with engine.begin() as connection:
        run(connection)
    engine.dispose()
