"""Governed rows: written by the pipeline alone, by version, and compared field by field."""

import ast
from collections.abc import Callable

import pytest
from sqlmodel import Session

from app.commands.errors import Rejected
from app.commands.governed import UngovernedWrite
from app.commands.records import Records
from app.kernel import clock, db
from app.kernel.db import Work
from app.packs.expenses.models import Report
from tests.people import World
from tests.sources import APP, parsed

WRITERS = {"commands/rows.py", "commands/records.py"}  # where governed rows are written


@pytest.mark.requirement("CMD-6")
def test_no_session_writes_a_governed_row(
    samples: World, report: Callable[..., str], database: str
) -> None:
    target = report(samples.acme["alice"])
    engine = db.engine_for(database)
    with Session(engine) as session:
        row = session.get_one(Report, (samples.acme.id, target))
        row.title = "behind the back"

        with pytest.raises(UngovernedWrite):
            session.commit()
    engine.dispose()

    stored = db.read_now(lambda session: session.get_one(Report, (samples.acme.id, target)))
    assert stored.title == "October, Shanghai"


@pytest.mark.requirement("CMD-6")
def test_stages_are_run_by_the_pipeline_alone_and_rows_written_by_records_alone() -> None:
    runs, writes = set(), set()
    for path, tree in parsed(APP):
        name = path.relative_to(APP).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "app.commands.stages":
                runs.add(name)
            if isinstance(node, ast.ImportFrom) and node.module == "app.commands.rows":
                writes.add(name)

    assert runs == {"commands/pipeline.py", "commands/dispatcher.py"}
    reading = {  # columns of a row, by name
        "commands/approval_replacement.py",
        "commands/approval_staleness.py",
        "commands/expressions.py",
    }
    assert writes - reading - WRITERS == set()


@pytest.mark.requirement("CMD-3", "CMD-F4")
def test_a_row_keeps_its_own_unique_value_and_takes_nobody_elses(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    one, other = report(alice), report(alice)
    person = samples.person(alice)

    def renumber(work: Work, of: str) -> str:
        records = Records(work, person, clock.now())
        row, same = records.get(Report, one), records.get(Report, of)
        assert row is not None
        assert same is not None
        row.number, row.title = same.number, "renumbered"
        records.flush()
        return row.title

    assert db.transact_now(renumber, one) == "renumbered"
    with pytest.raises(Rejected) as rejected:
        db.transact_now(renumber, other)
    assert rejected.value.reason == "duplicate_value"


@pytest.mark.requirement("CMD-3")
def test_of_two_writers_at_one_version_the_second_is_told(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    target, person = report(alice), samples.person(alice)

    def twice(work: Work) -> None:
        first, second = (Records(work, person, clock.now()) for _ in range(2))
        rows = [each.get(Report, target) for each in (first, second)]
        for row, title in zip(rows, ("first", "second"), strict=True):
            assert row is not None
            row.title = title
        first.flush()
        second.flush()

    with pytest.raises(Rejected) as rejected:
        db.transact_now(twice)
    assert rejected.value.reason == "version_conflict"


@pytest.mark.requirement("CMD-4")
def test_changes_are_told_from_the_beginning_and_from_any_moment(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    target, person = report(alice), samples.person(alice)

    def change(work: Work) -> None:
        records = Records(work, person, clock.now())
        row = records.get(Report, target)
        assert row
        row.title = "one"
        middle = records.snapshot()
        row.title, row.note = "two", "x"
        records.flush()

        (whole,), (later,) = records.changes(), records.changes(middle)
        assert whole.fields == {"title": ("October, Shanghai", "two"), "note": ("", "x")}
        assert later.fields == {"title": ("one", "two"), "note": ("", "x")}
        assert (whole.version, row.version) == (2, 2), "one call is one version"

    db.transact_now(change)
