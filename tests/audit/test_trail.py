"""Entries are chained, numbered without a gap, and stand in the commit of what they tell."""

import itertools
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from sqlmodel import Session, col, select

from app.audit import chain, trail
from app.audit.models import AuditEntry, AuditHead
from app.kernel import clock, db, json
from app.kernel.db import Work
from tests.audit import trails

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(max_codepoint=127), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.requirement("SEC-75")
@given(st.dictionaries(st.sampled_from(chain.HASHED), VALUES))
def test_the_fast_form_of_an_entry_is_the_canonical_one(entry: dict[str, Any]) -> None:
    entry = chain.plain(entry)
    assert json.dumps_sorted(entry) == json.canonical(entry)


@pytest.mark.requirement("SEC-75")
def test_the_hash_is_the_one_of_the_specification() -> None:
    entry = {"tenant_id": "T1", "seq": 1, "at": "2026-03-02T09:30:00.000000Z", "user_id": None}

    assert chain.link(chain.GENESIS, entry) == (
        "bd818bd991fa835bfc860f6e7514f9f8fe7ea8494287a0dc6f76d8b58939c32c"
    )


@pytest.mark.requirement("SEC-75", "CMD-17")
def test_each_entry_hangs_on_the_one_before(opened: str) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 3)

    entries = db.read_now(_entries, tenant_id)

    assert [entry.seq for entry in entries] == [1, 2, 3]
    assert [entry.prev_hash for entry in entries] == [
        chain.GENESIS,
        entries[0].hash,
        entries[1].hash,
    ]
    assert db.read_now(_head, tenant_id) == (3, entries[2].hash)
    assert entries[0].input_redacted == {
        "amount_minor": 1200,
        "note": "Zürich 出差",
        "nested": [1, None, True],
    }


@pytest.mark.requirement("SEC-75")
def test_a_unit_that_fails_leaves_no_entry_and_no_gap(opened: str) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 1)

    def fail(work: Work) -> None:
        trail.append(work, trails.entry(tenant_id))
        raise RuntimeError("after the entry")

    with pytest.raises(RuntimeError):
        db.transact_now(fail)
    trails.fill(tenant_id, 1)

    assert [entry.seq for entry in db.read_now(_entries, tenant_id)] == [1, 2]


@pytest.mark.requirement("SEC-75")
def test_writers_at_the_same_time_make_one_chain(opened: str) -> None:
    tenant_id = trails.tenant()
    together = threading.Barrier(6)

    def write() -> None:
        together.wait()
        for _ in range(20):
            db.transact_now(trail.append, trails.entry(tenant_id))

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    entries = db.read_now(_entries, tenant_id)
    assert [entry.seq for entry in entries] == list(range(1, 121))
    for before, after in itertools.pairwise(entries):
        assert after.prev_hash == before.hash


def test_what_no_database_takes_is_made_visible(opened: str) -> None:
    tenant_id = trails.tenant()
    odd = {"nul": "a\x00b", "half": "\ud800", "float": 1.5, "big": 2**60, "at": clock.now()}

    db.transact_now(trail.append, trails.entry(tenant_id, input_redacted=odd, reason="x\x00"))

    (entry,) = db.read_now(_entries, tenant_id)
    assert entry.input_redacted is not None
    assert entry.input_redacted["nul"] == "a\ufffdb"
    assert entry.input_redacted["float"] == "1.5"
    assert entry.input_redacted["big"] == str(2**60)
    assert entry.reason == "x\ufffd"


@pytest.mark.requirement("CMD-19", "SEC-T31")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entry SET outcome = 'refused'",
        "DELETE FROM audit_entry",
    ],
)
def test_the_database_refuses_to_change_an_entry(opened: str, statement: str) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 2)

    def change(work: Work) -> None:
        work.connection.execute(text(statement))

    trails.refuses(lambda: db.transact_now(change))

    assert [entry.outcome for entry in db.read_now(_entries, tenant_id)] == ["done", "done"]


@pytest.mark.requirement("CMD-18")
@pytest.mark.parametrize("outcome", ["done", "dispatched"])
def test_an_l4_without_an_approver_cannot_be_written(opened: str, outcome: str) -> None:
    tenant_id = trails.tenant()
    call = trails.entry(tenant_id, risk="L4", outcome=outcome)

    with pytest.raises(Exception, match="l4_has_an_approver"):
        db.transact_now(trail.append, call)

    assert db.read_now(_entries, tenant_id) == []
    db.transact_now(
        trail.append, trails.entry(tenant_id, risk="L4", outcome=outcome, approved_by="U2")
    )


def _entries(session: Session, tenant_id: str) -> list[AuditEntry]:
    query = select(AuditEntry).where(AuditEntry.tenant_id == tenant_id)
    return list(session.exec(query.order_by(col(AuditEntry.seq))))


def _head(session: Session, tenant_id: str) -> tuple[int, str]:
    head = session.get(AuditHead, tenant_id)
    assert head is not None
    return head.seq, head.hash
