"""`python -m app diagnose-call`: the one place where the cause of a call's fault can be read."""

from pathlib import Path

import pytest
from sqlmodel import Session, SQLModel

from app.kernel import db, ids
from app.runs import speaking
from app.runs.models.scripted import Step
from app.runs.run_models import ToolCallDiagnostic
from tests.operator.test_commands import app
from tests.runs.conftest import scripted, stage
from tests.runs.playing import TOLD, Stage, playing

__all__ = ["scripted", "stage"]

CAUSE = "postgres://admin:hunter2@10.0.0.8/acme"


def _tables_with(session: Session, words: str) -> list[str]:
    """The tables that hold these words anywhere."""
    return [
        table.name
        for table in SQLModel.metadata.sorted_tables
        if any(words in str(tuple(row)) for row in session.connection().execute(table.select()))
    ]


@pytest.mark.anyio
@pytest.mark.requirement("RUN-41", "F-86")
async def test_the_cause_of_a_fault_is_told_to_the_operator_on_standard_error_alone(
    stage: Stage, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_given: object) -> object:
        raise RuntimeError(CAUSE)

    playing(Step(calls=[TOLD]), Step())
    with monkeypatch.context() as broken:
        broken.setattr(speaking, "say", fail)
        await stage.tell()
    (call,) = stage.calls()
    told = app("diagnose-call", call.id, data=tmp_path, database=database)
    as_command = app("diagnose-call", f"{call.id}.1", data=tmp_path, database=database)

    assert (call.state, call.reason) == ("failed", "internal")
    assert (told.returncode, told.stdout) == (0, "")
    assert CAUSE in told.stderr
    assert call.run_id in told.stderr
    assert as_command.stderr == told.stderr
    assert db.read_now(_tables_with, "hunter2") == [ToolCallDiagnostic.__tablename__]


@pytest.mark.anyio
@pytest.mark.requirement("RUN-41")
async def test_of_a_call_that_did_not_fall_over_nothing_is_kept(
    stage: Stage, database: str, tmp_path: Path
) -> None:
    playing(Step(calls=[TOLD]), Step())
    await stage.tell()
    (call,) = stage.calls()

    told = app("diagnose-call", call.id, data=tmp_path, database=database)
    unknown = app("diagnose-call", ids.ulid(), data=tmp_path, database=database)

    assert (told.returncode, told.stdout) == (1, "")
    assert "did not fall over" in told.stderr
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "There is no call" in unknown.stderr
    assert "Traceback" not in told.stderr + unknown.stderr
