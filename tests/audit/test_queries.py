"""Every filter finds what it says, in time, in pages, within what somebody may see."""

import re
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import Session, col

from app.audit import queries, trail
from app.audit.models import SELDOM, AuditEntry
from app.audit.queries import BACK, COUNTED, ON, Filters, Place, Sight
from app.identity import paging
from app.kernel import db, keyring
from app.kernel.db import Work
from tests import databases
from tests.audit import trails

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
AGENT = {"agent_id": "A1", "agent_release": "R1", "model": "m", "model_version": "7"}
MADE: list[dict[str, Any]] = [
    {"user_id": "U1", "command": "expense.report.submit", "risk": "L2"},
    {"user_id": "U1", "command": "expense.report.list", "risk": "L0", **AGENT},
    {"user_id": "U2", "command": "expense_x.report.list", "risk": "L0", "outcome": "replayed"},
    {
        "user_id": "U2",
        "command": "expense.payment.send",
        "risk": "L4",
        "reversible": False,
        "approval_id": "X1",
        "approved_by": "U1",
        "approved_at": NOON,
        "run_id": "N1",
        "conversation_id": "C1",
        "prompt_ref": "P1",
        "channel": "run",
        **AGENT,
    },
    {"user_id": "U1", "outcome": "refused", "stage": "sod_check", "reason": "sod_conflict"},
    {"user_id": "U1", "risk": "L3", "approved_by": "U1", "target_id": "D1", "channel": "http"},
    {"user_id": "U1", "command": "expense.report.list", "risk": "L0", **AGENT, "agent_id": "A2"},
]
# What is asked, and the numbers of the entries that answer.
ASKED: list[tuple[Filters, list[int]]] = [
    (Filters(), [7, 6, 5, 4, 3, 2, 1]),
    (Filters(user_id="U2"), [4, 3]),
    (Filters(agent_id="A1"), [4, 2]),
    (Filters(agent_release="R1", model="m", model_version="7"), [7, 4, 2]),
    (Filters(model_version="8"), []),
    (Filters(command="expense.report.list"), [7, 2]),
    (Filters(command="expense"), [7, 6, 5, 4, 2, 1]),
    (Filters(command="expense.payment."), [4]),
    (Filters(command="expense.rep"), []),
    (Filters(commands=("expense.payment.send", "expense.report.list")), [7, 4, 2]),
    (Filters(commands=()), []),
    (Filters(commands=("expense.payment.send",), command="expense.report"), []),
    (Filters(risks=("L3", "L4")), [6, 4]),
    (Filters(risks=("L0",), user_id="U1"), [7, 2]),
    (Filters(irreversible=True), [4]),
    (Filters(outcomes=("refused", "replayed")), [5, 3]),
    (Filters(outcomes=("done", "replayed"), user_id="U2"), [4, 3]),
    (Filters(stage="sod_check"), [5]),
    (Filters(reason="sod_conflict"), [5]),
    (Filters(approved_by="U1"), [6, 4]),
    (Filters(target_id="D1"), [6]),
    (Filters(conversation_id="C1"), [4]),
    (Filters(prompt_ref="P1"), [4]),
    (Filters(run_id="N1"), [4]),
    (Filters(channel="http"), [6]),
    (Filters(by="agent"), [7, 4, 2]),
    (Filters(by="person", user_id="U2"), [3]),
    (Filters(consent="other"), [4]),
    (Filters(consent="own"), [6]),
    (Filters(consent="none", by="agent", user_id="U1", outcomes=("done",)), [7, 2]),
    (Filters(since=NOON + timedelta(hours=5)), [7, 6]),
    (Filters(since=NOON + timedelta(hours=2), until=NOON + timedelta(hours=4)), [4, 3]),
    (Filters(until=NOON + timedelta(hours=2), user_id="U1"), [2, 1]),
]


@pytest.fixture
def tenant_id(keys: str) -> str:
    """A trail of what `MADE` says, an entry each hour from noon on; another tenant has one too."""
    keyring.prepare(paging.PURPOSE)
    made, other = trails.tenant(), trails.tenant("other")
    db.transact_now(_fill, other)
    db.transact_now(_fill, made)
    return made


@pytest.mark.requirement("CMD-21", "UI-20")
def test_every_filter_finds_what_it_says(tenant_id: str) -> None:
    found = [(filters, seqs(tenant_id, filters)) for filters, _ in ASKED]

    assert found == ASKED


@pytest.mark.requirement("CMD-21")
def test_what_one_filter_finds_is_counted_by_day_and_outcome(tenant_id: str) -> None:
    everything = db.read_now(queries.count, tenant_id, Filters())
    mine = db.read_now(queries.count, tenant_id, Filters(), Sight(own="U2"))
    stages = db.read_now(queries.count, tenant_id, Filters(outcomes=("refused",)), by="stage")

    assert (everything.total, everything.is_more) == (7, False)
    assert sorted(everything.parts)[:2] == [
        (int(NOON.timestamp()), "done", 1),
        (int(NOON.timestamp()) + 3_600, "done", 1),
    ]
    assert (mine.total, [kind for _, kind, _ in stages.parts]) == (2, ["sod_check"])
    for filters, answer in ASKED:
        assert db.read_now(queries.count, tenant_id, filters).total == len(answer)


def test_more_than_ten_thousand_hits_are_not_counted_further(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "COUNTED", 3)

    counted = db.read_now(queries.count, tenant_id, Filters(risks=("L0", "L2", "L3", "L4")))

    assert COUNTED == 10_000
    assert (counted.total, counted.is_more) == (3, True)
    assert min(at for at, _, _ in counted.parts) > NOON.timestamp(), "the newest are counted"


@pytest.mark.requirement("CMD-21")
def test_pages_lead_there_and_back_without_losing_an_entry(tenant_id: str) -> None:
    for filters in (Filters(), Filters(risks=("L0", "L2", "L3", "L4")), Filters(user_id="U1")):
        every = seqs(tenant_id, filters)
        there, cursors = [], []
        page = db.read_now(queries.page, tenant_id, filters, size=2)
        there += [entry.seq for entry in page.rows]
        while page.next:
            page = db.read_now(queries.page, tenant_id, filters, size=2, cursor=page.next)
            there += [entry.seq for entry in page.rows]
            cursors.append(page.previous)
        back = [entry.seq for entry in page.rows]
        while page.previous:
            page = db.read_now(queries.page, tenant_id, filters, size=2, cursor=page.previous)
            back = [entry.seq for entry in page.rows] + back

        assert there == back == every
        assert all(cursors)


def test_a_place_that_we_did_not_sign_is_the_first_page(tenant_id: str) -> None:
    page = db.read_now(queries.page, tenant_id, Filters(), size=2)
    assert page.next is not None
    forged = (
        "n3." + page.next.partition(".")[2],
        page.next[:-1],
        "n3",
        "x",
        "n\u00e9.x",
        ".",
        "nx.y",
    )

    for cursor in forged:
        again = db.read_now(queries.page, tenant_id, Filters(), size=2, cursor=cursor)
        assert [entry.seq for entry in again.rows] == [7, 6]


def test_entries_stand_in_time_even_where_a_clock_was_set_back(tenant_id: str) -> None:
    late = trails.entry(tenant_id, user_id="U1", at=NOON + timedelta(minutes=30))
    db.transact_now(trail.append, late)

    assert seqs(tenant_id, Filters(user_id="U1")) == [7, 6, 5, 2, 8, 1]
    assert seqs(tenant_id, Filters(until=NOON + timedelta(hours=1))) == [8, 1]
    entry = db.read_now(queries.one, tenant_id, 8)
    assert entry is not None
    assert db.read_now(queries.neighbours, entry) == (1, 2)


@pytest.mark.requirement("CMD-21")
def test_nothing_is_found_beyond_what_somebody_sees(tenant_id: str) -> None:
    own, odd = Sight(own="U2"), Sight(where=col(AuditEntry.seq) % 2 == 1)
    fourth = db.read_now(queries.one, tenant_id, 4)
    assert fourth is not None

    assert seqs(tenant_id, Filters(), sight=own) == [4, 3]
    assert seqs(tenant_id, Filters(user_id="U1"), sight=own) == []
    assert seqs(tenant_id, Filters(risks=("L0", "L4")), sight=own) == [4, 3]
    assert seqs(tenant_id, Filters(), sight=odd) == [7, 5, 3, 1]
    assert db.read_now(queries.one, tenant_id, 1, own) is None
    assert db.read_now(queries.of_call, tenant_id, fourth.call_id, Sight(own="U1")) == []
    assert db.read_now(queries.neighbours, fourth, own) == (3, None)
    assert db.read_now(queries.values, tenant_id, "command", own) == [
        "expense.payment.send",
        "expense_x.report.list",
    ]


def test_what_a_filter_offers_is_what_occurs(tenant_id: str) -> None:
    assert db.read_now(queries.values, tenant_id, "agent_id") == ["A1", "A2"]
    assert db.read_now(queries.values, tenant_id, "stage") == ["sod_check"]
    assert db.read_now(queries.values, tenant_id, "command") == [
        "expense.payment.send",
        "expense.report.list",
        "expense.report.submit",
        "expense_x.report.list",
    ]
    assert db.read_now(queries.values, tenant_id, "command", limit=2) == [
        "expense.payment.send",
        "expense.report.list",
    ]
    assert db.read_now(queries.values, trails.tenant("empty"), "command") == []


def seqs(tenant_id: str, filters: Filters, **more: Any) -> list[int]:
    """The numbers of what is found, in its order."""
    return [entry.seq for entry in db.read_now(queries.page, tenant_id, filters, **more).rows]


def _fill(work: Work, tenant_id: str) -> None:
    for number, given in enumerate(MADE):
        at = NOON + timedelta(hours=number)
        trail.append(work, trails.entry(tenant_id, **{"at": at, **given}))


LED = {  # filter → the index through which its entries are read
    Filters(): "tenant_id_at",
    Filters(since=NOON, until=NOON): "tenant_id_at",
    Filters(user_id="U1"): "tenant_id_user_id_at",
    Filters(agent_id="A1"): "tenant_id_agent_id_at",
    Filters(agent_release="R1", agent_id="A1"): "tenant_id_agent_release_at",
    Filters(model="m"): "tenant_id_model_at",
    Filters(model_version="7", model="m"): "tenant_id_model_version_at",
    Filters(commands=("a",)): "tenant_id_command_at",
    Filters(risks=("L4",), user_id="U1"): "tenant_id_risk_at",
    Filters(irreversible=True): "irreversible",
    Filters(outcomes=("refused",)): "tenant_id_outcome_at",
    Filters(outcomes=("done",)): "tenant_id_at",
    Filters(stage="x", outcomes=("refused",)): "tenant_id_stage_at",
    Filters(reason="x", channel="http"): "tenant_id_reason_at",
    Filters(approved_by="U1", risks=("L4",)): "tenant_id_approved_by_at",
    Filters(target_id="D1", user_id="U1"): "tenant_id_target_id_at",
    Filters(conversation_id="C1", by="agent"): "tenant_id_conversation_id_at",
    Filters(prompt_ref="P1"): "tenant_id_prompt_ref_at",
    Filters(run_id="N1", agent_id="A1"): "tenant_id_run_id_at",
    Filters(channel="http"): "tenant_id_channel_at",
    Filters(by="agent"): "by_agent",
    Filters(consent="other"): "consented",
    Filters(consent="none", user_id="U1"): "tenant_id_user_id_at",
}


def test_each_filter_reads_its_index_in_the_order_of_the_list(tmp_path: Path) -> None:
    with databases.migrated("sqlite", tmp_path) as url:
        db.open(url)
        try:
            plans = {filters: db.read_now(_plan, filters) for filters in LED}
        finally:
            db.close()

    assert plans == LED


LOOKED_UP = {"tenant_id_call_id", "tenant_id_approval_id"}  # by id, whatever is on the list


def test_every_index_of_the_trail_serves_a_filter_or_a_look_up(tmp_path: Path) -> None:
    """Each costs every commit a write, so none is kept that nothing reads."""
    with databases.migrated("sqlite", tmp_path) as url:
        db.open(url)
        try:
            made = db.read_now(_indexes)
        finally:
            db.close()

    assert set(made) == {*LED.values(), *LOOKED_UP}
    for name in ("approval_id", *SELDOM):
        (written,) = [sql for sql in made.values() if re.search(rf"\(tenant_id, {name}\b", sql)]
        assert written.endswith(f"WHERE {name} IS NOT NULL"), "who has none pays nothing"


def _indexes(session: Session) -> dict[str, str]:
    rows = session.execute(
        text("SELECT name, sql FROM sqlite_master WHERE tbl_name = 'audit_entry' AND sql <> ''")
    )
    return {
        str(name).removeprefix("ix_audit_entry_"): str(sql)
        for name, sql in rows
        if str(name).startswith("ix_")
    }


PLACES = [Place(ON, NOON, 7), Place(BACK, NOON, 7), None]


def _plan(session: Session, filters: Filters) -> str:
    """The index SQLite takes, by the end of its name; it sorts no more than equal times.

    So it is on the first page, on the next, on the one before, and in an export.
    """
    taken = set()
    for place, up_to in product(PLACES, (None, 9)):
        query = queries._hits(session, "T", filters, Sight(), place, 51, up_to=up_to)
        engine = session.connection().engine
        compiled = query.compile(engine, compile_kwargs={"literal_binds": True})
        steps = [row[3] for row in session.execute(text(f"EXPLAIN QUERY PLAN {compiled}"))]
        assert "USE TEMP B-TREE FOR ORDER BY" not in steps, steps
        taken.add(str(steps[0]).partition("ix_audit_entry_")[2].partition(" ")[0])
    assert len(taken) == 1, taken
    return taken.pop()
