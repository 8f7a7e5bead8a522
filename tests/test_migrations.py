"""The migrations lead to the tables that the models describe, on both databases."""

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlmodel import SQLModel

from app.kernel import db, migrations
from tests.sources import import_models


def test_no_migration_is_missing(database: str) -> None:
    import_models()
    engine = db.engine_for(database)
    try:
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            differences = compare_metadata(context, SQLModel.metadata)
    finally:
        engine.dispose()

    assert SQLModel.metadata.tables, "else this proves nothing"
    assert differences == []


def test_migrating_again_changes_nothing(empty_database: str) -> None:
    assert migrations.upgrade(empty_database)

    assert not migrations.upgrade(empty_database)
    assert migrations.is_current(empty_database)
