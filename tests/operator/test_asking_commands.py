"""`check-commands --ask`: what the model of agents goes for, with nothing carried out."""

import json
from pathlib import Path

import pytest
from sqlmodel import Session, SQLModel, func, select

from app.kernel import db, settings
from app.operator import asking_commands
from app.operator.asking_commands import lines_of_sentence
from app.operator.refusing import Refused
from app.runs.models.scripted import Call, Step
from tests.operator.test_commands import app
from tests.runs.conftest import desks, scripted
from tests.runs.playing import DISCARD, about, playing
from tests.runs.sessions import Desks

__all__ = ["desks", "scripted"]


def _rows(session: Session) -> dict[str, int]:
    tables = SQLModel.metadata.sorted_tables
    counted = {
        each.name: session.connection().scalar(select(func.count()).select_from(each))
        for each in tables
    }
    return {name: count or 0 for name, count in counted.items()}


@pytest.mark.requirement("CMD-2")
def test_every_command_is_asked_for_in_both_languages_and_no_wrong_one_is_run(
    tmp_path: Path,
) -> None:
    database = f"sqlite:///{tmp_path / 'assent.db'}"

    told = app("check-commands", "--ask", data=tmp_path / "data", database=database)
    report = app("check-commands", "--ask", "--json", data=tmp_path / "data", database=database)

    assert told.returncode == 0, told.stdout + told.stderr
    assert "requests put to offline planner" in told.stdout
    assert "0 mistaken" in told.stdout
    said = json.loads(report.stdout)["requests"]
    submit = [each for each in said if each["cmdCode"] == "expense.report.submit"]
    assert [(each["language"], each["verdict"]) for each in submit] == [
        ("en", "found"),
        ("zh-CN", "found"),
    ]
    assert submit[0]["request"].startswith("Submit expense report")
    assert sum(each["verdict"] in {"found", "offered"} for each in said) > 0.9 * len(said)


@pytest.mark.anyio
@pytest.mark.requirement("CMD-2")
async def test_a_sentence_of_a_user_is_rehearsed_as_their_agent(desks: Desks) -> None:
    desks.enable()
    report = await desks.desk.draft("alice", 8_600)
    number = (await desks.desk.report(report, "alice"))["number"]
    before = db.read_now(_rows)

    made = await asking_commands.of_sentence(f"submit {number}", "acme/alice", "", "en")
    unknown = await asking_commands.of_sentence("白日依山尽", "acme/alice", "expenses", "zh-CN")

    assert made.fits[0][0].code == "expense.report.submit"
    assert made.wanted.code == "expense.report.submit"
    assert number in " ".join(made.wanted.said)  # it tells before it changes something
    assert made.model.startswith("offline planner")
    assert made.wanted.input is not None
    assert made.wanted.input["targetRecordId"] == report
    assert made.preview is not None
    assert made.preview.changes[0].fields["state"] == ("draft", "submitted")
    assert unknown.wanted.code is None
    assert db.read_now(_rows) == before


@pytest.mark.anyio
@pytest.mark.requirement("CMD-2")
async def test_the_model_that_is_set_is_asked_and_its_mistake_is_shown(
    scripted: None, desks: Desks
) -> None:
    desks.enable()
    report = await desks.desk.draft("alice")
    playing(
        Step(calls=[Call("read_record", {"type": "expense.report"})]),
        Step(calls=[Call(DISCARD, about(report, operationType="DELETE"))]),
    )
    before = db.read_now(_rows)

    made = await asking_commands.of_sentence("Submit it", "acme/alice", "expenses", "en")

    lines = "\n".join(lines_of_sentence(made, "en"))
    assert made.wanted.code == "expense.report.discard"
    assert made.preview is not None
    assert "It would delete expense.report" in lines
    assert db.read_now(_rows) == before
    assert settings.current().model == "scripted:loop"


@pytest.mark.anyio
async def test_whoever_lets_no_agent_act_is_told_so(desks: Desks, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no agent"):
        await asking_commands.of_sentence("Hello", "acme/bob", "nobody", "en")
    ended = app("check-commands", "--ask", "Hello", data=tmp_path, database="")

    assert ended.returncode == 2
    assert "--user" in ended.stderr
