"""`read_record`: business records as the principal may see them, by id and by words."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import Field

from app.commands.definition import SECRET, Input
from app.kernel import db
from app.packs.expenses.models import Report
from app.runs import record_search
from app.runs.outcome import Done, Refused
from app.runs.session import RunSession
from tests.commands.declaring import installed, writing
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio

TYPE = "expense.report"


async def found(desks: Desks, run: RunSession, query: str, **more: Any) -> list[dict[str, Any]]:
    """The records that fit some words."""
    done = await desks.call(run, "read_record", type=TYPE, query=query, **more)
    assert isinstance(done, Done), done
    records: list[dict[str, Any]] = done.result["records"]
    return records


async def at_work(desks: Desks, who: str = "alice") -> RunSession:
    """An agent at work for somebody who enabled it."""
    desks.enable(who)
    return await desks.at_work(who=who)


@pytest.mark.requirement("RUN-94")
async def test_a_record_comes_with_its_fields_and_what_can_begin_where_it_stands(
    desks: Desks,
) -> None:
    run = await at_work(desks)
    report = await desks.desk.draft("alice", 5_000)

    done = await desks.call(run, "read_record", type=TYPE, id=report)
    await desks.desk.run("alice", "expense.report.submit", report)
    later = await desks.call(run, "read_record", type=TYPE, id=report)

    assert isinstance(done, Done)
    assert isinstance(later, Done)
    (draft,), (submitted,) = done.result["records"], later.result["records"]
    assert (draft["id"], draft["type"], draft["state"]) == (report, TYPE, "draft")
    assert draft["label"] == draft["number"]
    assert draft["number"].startswith("EXP-")
    assert draft["fields"]["title"] == "Trip"
    assert draft["fields"]["total_minor"] == 5_000
    assert "tenant_id" not in draft["fields"]
    assert "expense.report.submit" in draft["may"]
    assert "expense.report.recall" not in draft["may"]
    assert submitted["version"] > draft["version"]
    assert "expense.report.recall" in submitted["may"]
    assert "expense.report.approve" not in submitted["may"]  # alice may not


@pytest.mark.requirement("RUN-94")
async def test_what_is_out_of_reach_looks_like_what_does_not_exist(desks: Desks) -> None:
    run = await at_work(desks)
    bobs = await desks.desk.draft("bob", 7_000)
    asked: list[dict[str, Any]] = [
        {"type": TYPE, "id": bobs},
        {"type": TYPE, "id": "01JDXP5Y8GZ0000000000000AB"},
        {"type": "inventory.item", "id": bobs},
        {"type": "no.such", "id": bobs},
        {"type": "no.such", "query": "trip"},
    ]

    for given in asked:
        refused = await desks.call(run, "read_record", **given)
        assert isinstance(refused, Refused), given
        assert (refused.reason, refused.advice) == ("not_found", "do_not_retry")
    assert await found(desks, run, "Trip") == []
    mia = await at_work(desks, "mia")
    assert [each["id"] for each in await found(desks, mia, "Trip")] == [bobs]


@pytest.mark.requirement("RUN-94")
async def test_own_records_come_first_then_the_newest(desks: Desks) -> None:
    first = await desks.desk.draft("bob", 100)
    own = await desks.desk.draft("alice", 200)
    last = await desks.desk.draft("bob", 300)
    desks.world.give(desks.world.acme["alice"], "finance")
    run = await at_work(desks)

    done = await desks.call(run, "read_record", type=TYPE, query="", limit=2)
    assert isinstance(done, Done)

    assert [each["id"] for each in done.result["records"]] == [own, last]
    assert done.result["more"] is True
    assert [each["id"] for each in await found(desks, run, "")] == [own, last, first]


@pytest.mark.requirement("RUN-94")
@pytest.mark.parametrize(
    "query",
    [
        "October",
        "my October report",
        "十月的报销单",
        "我的10月份报销单",
        "2026-10",
        "2026年10月",
        "oct 2026",
        "Shanghai",
        "the trip to shanghai",
        "draft",
        "草稿",
        "EXP-",
    ],
)
async def test_words_months_and_states_find_a_record_in_both_languages(
    desks: Desks, query: str
) -> None:
    run = await at_work(desks)
    wanted = await desks.desk.run(
        "alice", "expense.report.create", title="Shanghai trip to customers", period="2026-10"
    )
    other = await desks.desk.run(
        "alice", "expense.report.create", title="Beijing", period="2026-09"
    )
    await desks.desk.add("alice", str(other.result["reportId"]), 900)
    shown = await found(desks, run, query)

    assert wanted.record is not None
    assert wanted.record["id"] in {each["id"] for each in shown}
    if query not in {"draft", "草稿", "EXP-"}:
        assert len(shown) == 1


@pytest.mark.requirement("RUN-94")
async def test_a_query_that_fits_nothing_finds_nothing(desks: Desks) -> None:
    run = await at_work(desks)
    await desks.desk.draft("alice", 5_000)

    for query in ("2019-10", "Paris", "submitted", "%", "_"):
        assert await found(desks, run, query) == [], query


async def test_either_an_id_or_words_and_not_both_and_neither_is_the_newest(desks: Desks) -> None:
    run = await at_work(desks)
    report = await desks.desk.draft("alice", 5_000)

    newest = await desks.call(run, "read_record", type=TYPE)
    both = await desks.call(run, "read_record", type=TYPE, id=report, query="trip")

    assert isinstance(newest, Done)
    assert [each["id"] for each in newest.result["records"]] == [report]
    assert isinstance(both, Refused)
    assert both.advice == "fix_arguments"


class Card(Input):
    """What a command takes that nobody is to read again."""

    payee_account: str = Field(
        json_schema_extra=dict(SECRET), max_length=42, description="Where to pay to."
    )


@pytest.mark.requirement("CMD-20", "RUN-94")
async def test_a_column_that_a_secret_field_fills_is_never_shown(
    desks: Desks, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await at_work(desks)
    report = await desks.desk.draft("alice", 5_000)
    before = await desks.call(run, "read_record", type=TYPE, id=report)
    assert isinstance(before, Done)
    assert "payee_account" in before.result["records"][0]["fields"]

    secret = frozenset({"payee_account"})
    with monkeypatch.context() as patched:
        patched.setattr(record_search, "_secret_columns", lambda *_given: secret)
        after = await desks.call(run, "read_record", type=TYPE, id=report)
    assert isinstance(after, Done)
    assert "payee_account" not in after.result["records"][0]["fields"]
    assert "6222" not in after.for_model()
    keeps = writing("desk.card.keep", input=Card, example={"payeeAccount": "6222"})
    with installed(keeps, only=desks.world.globex.id):
        assert db.read_now(record_search._secret_columns, desks.world.globex.id) == secret
        assert db.read_now(record_search._secret_columns, desks.tenant_id) == frozenset()


@pytest.mark.requirement("RUN-94")
async def test_a_type_without_a_read_command_is_known_by_label_and_state_alone(
    desks: Desks,
) -> None:
    run = await at_work(desks)
    assert run.principal is not None
    report = await desks.desk.draft("alice", 5_000)
    run.principal = replace(run.principal)
    sight = db.read_now(_sight_of_writers, run)

    told = db.read_now(lambda session: record_search._told(sight, _report(session, report)))

    assert told["fields"] == {}
    assert told["label"].startswith("EXP-")


def _sight_of_writers(session: Any, run: RunSession) -> Any:
    from app.commands import catalogue
    from app.commands.catalogue import Catalogue
    from app.commands.definition import Operation

    assert run.principal is not None
    all_of_it = catalogue.of(session, run.principal)
    entries = tuple(
        each for each in all_of_it.entries if each.definition.operation is not Operation.READ
    )
    found = Catalogue(all_of_it.tenant_id, entries)
    return record_search._sight(session, run.principal, found, TYPE)


def _report(session: Any, report_id: str) -> Report:
    from sqlmodel import select

    row: Report = session.exec(select(Report).where(Report.id == report_id)).one()
    return row
