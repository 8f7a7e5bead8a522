"""The durable event log: nothing is missing, nothing is told before it is true."""

import threading
from typing import Any

import pytest
from sqlmodel import Session

from app.identity.models import Tenant
from app.kernel import clock as kernel_clock
from app.kernel import db, event_log, events, ids
from app.kernel.db import Work
from app.kernel.event_log import Gap, Logged, Position
from app.kernel.models import LoggedEvent
from tests.clock import Clock


def test_events_are_numbered_and_read_again_from_any_place(opened: str) -> None:
    tenant_id = _tenant()
    for number in range(5):
        assert _append(tenant_id, f"e{number}") == number + 1
    epoch = db.read_now(event_log.newest, tenant_id).epoch

    assert [event.subject for event in _since(tenant_id, epoch, 2)] == ["e2", "e3", "e4"]
    assert [event.subject for event in _since(tenant_id, epoch, 0, 2)] == ["e0", "e1"]
    assert _since(tenant_id, epoch, 5) == []


def test_an_event_keeps_what_it_was_given(opened: str) -> None:
    tenant_id = _tenant()
    db.transact_now(
        event_log.append, tenant_id, "user.updated", "U1", {"a": ["ä", 1]}, "U1", "audit.read"
    )

    (event,) = _since(tenant_id, "", 0)

    assert (event.kind, event.subject, event.data) == ("user.updated", "U1", {"a": ["ä", 1]})
    assert (event.user_id, event.permission) == ("U1", "audit.read")


def test_who_knows_of_nothing_yet_misses_nothing(opened: str) -> None:
    tenant_id = _tenant()
    position = db.read_now(event_log.newest, tenant_id)
    assert position == Position("", 0)
    assert _since(tenant_id, position.epoch, position.seq) == []

    _append(tenant_id, "first")

    assert [event.subject for event in _since(tenant_id, "", 0)] == ["first"]


def test_a_unit_that_fails_leaves_no_gap(opened: str) -> None:
    tenant_id = _tenant()
    _append(tenant_id, "one")

    def fail(work: Work) -> None:
        event_log.append(work, tenant_id, "test", "lost", {})
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        db.transact_now(fail)

    assert _append(tenant_id, "two") == 2


@pytest.mark.parametrize(
    ("epoch", "seq"), [("other", 1), ("", 1), ("same", 4), ("same", 99)], ids=str
)
def test_an_unknown_position_is_a_gap(opened: str, epoch: str, seq: int) -> None:
    tenant_id = _tenant()
    for _ in range(3):
        _append(tenant_id)
    now = db.read_now(event_log.newest, tenant_id)
    asked = {"other": ids.ulid(), "same": now.epoch}.get(epoch, epoch)

    assert db.read_now(event_log.since, tenant_id, asked, seq) == Gap(now)


def test_what_is_older_than_the_retention_is_a_gap(opened: str, clock: Clock) -> None:
    tenant_id = _tenant()
    for _ in range(3):
        _append(tenant_id)
    limit = clock.move(days=8)
    _append(tenant_id, "young")
    epoch = db.read_now(event_log.newest, tenant_id).epoch

    assert event_log.trim(limit) == 3

    assert isinstance(db.read_now(event_log.since, tenant_id, epoch, 2), Gap)
    assert isinstance(db.read_now(event_log.since, tenant_id, "", 0), Gap)
    assert [event.subject for event in _since(tenant_id, epoch, 3)] == ["young"]
    assert event_log.trim(limit) == 0


def test_trimming_everything_keeps_the_numbers_going(opened: str, clock: Clock) -> None:
    tenant_id = _tenant()
    _append(tenant_id)
    _append(tenant_id)

    assert event_log.trim(clock.move(days=8)) == 2

    position = db.read_now(event_log.newest, tenant_id)
    assert position.seq == 2
    assert _append(tenant_id, "next") == 3
    assert [event.subject for event in _since(tenant_id, position.epoch, 2)] == ["next"]


def test_a_clock_set_back_loses_nothing_that_is_young(opened: str, clock: Clock) -> None:
    tenant_id = _tenant()
    _append(tenant_id, "young")
    limit = kernel_clock.now()
    clock.move(hours=-1)
    _append(tenant_id, "looks old")

    assert event_log.trim(limit) == 0


def test_a_new_epoch_makes_every_old_position_unknown(opened: str) -> None:
    tenant_id = _tenant()
    _append(tenant_id)
    old = db.read_now(event_log.newest, tenant_id)

    db.transact_now(event_log.new_epoch, tenant_id)

    now = db.read_now(event_log.newest, tenant_id)
    assert now.epoch != old.epoch
    assert db.read_now(event_log.since, tenant_id, old.epoch, old.seq) == Gap(now)


def test_nobody_sees_a_number_before_all_below_it(opened: str) -> None:
    tenant_id = _tenant()
    writers, each = 5, 30
    together = threading.Barrier(writers + 1)
    done = threading.Event()
    torn: list[list[int]] = []

    def write() -> None:
        together.wait()
        for _ in range(each):
            _append(tenant_id)

    def look() -> None:
        together.wait()
        while not done.is_set():
            seen = db.read_now(_numbers, tenant_id)
            if seen != list(range(1, len(seen) + 1)):
                torn.append(seen)

    reader = threading.Thread(target=look)
    threads = [threading.Thread(target=write) for _ in range(writers)]
    for thread in (*threads, reader):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()

    assert torn == []
    assert db.read_now(_numbers, tenant_id) == list(range(1, writers * each + 1))


def test_tenants_are_numbered_apart(opened: str) -> None:
    first, second = _tenant(), _tenant()
    _append(first)

    assert _append(second, "own") == 1
    epoch = db.read_now(event_log.newest, second).epoch
    assert isinstance(db.read_now(event_log.since, first, epoch, 0), Gap)


def test_news_of_an_event_comes_after_its_commit(opened: str) -> None:
    tenant_id = _tenant()
    heard: list[tuple[Logged, int]] = []
    end = events.subscribe(
        Logged, lambda logged: heard.append((logged, len(db.read_now(_numbers, tenant_id))))
    )
    try:
        _append(tenant_id)
    finally:
        end()

    assert heard == [(Logged(tenant_id=tenant_id, seq=1), 1)]


@pytest.mark.parametrize(
    "text",
    ["", ".", "x.1", "01JZZZZZZZZZZZZZZZZZZZZZZZ", "01JZZZZZZZZZZZZZZZZZZZZZZZ.",
     "01JZZZZZZZZZZZZZZZZZZZZZZZ.-1", "01JZZZZZZZZZZZZZZZZZZZZZZZ.1.2",
     "01JZZZZZZZZZZZZZZZZZZZZZZZ.٣", "01JZZZZZZZZZZZZZZZZZZZZZZZ." + "9" * 40],
)  # fmt: skip
def test_what_is_no_position_is_none(text: str) -> None:
    assert Position.parse(text) is None


def test_a_position_reads_back() -> None:
    position = Position(ids.ulid(), 42)
    assert Position.parse(str(position)) == position


def _tenant() -> str:
    def make(work: Work) -> str:
        id_ = ids.ulid()
        work.session.add(
            Tenant(id=id_, slug=id_.lower(), name="Acme", created_at=kernel_clock.now())
        )
        return id_

    return db.transact_now(make)


def _append(tenant_id: str, subject: str = "x") -> int:
    data: dict[str, Any] = {}
    return db.transact_now(event_log.append, tenant_id, "test", subject, data)


def _since(tenant_id: str, epoch: str, seq: int, limit: int = 256) -> list[LoggedEvent]:
    found = db.read_now(event_log.since, tenant_id, epoch, seq, limit)
    assert isinstance(found, list), found
    return found


def _numbers(session: Session, tenant_id: str) -> list[int]:
    now = event_log.newest(session, tenant_id)
    found = event_log.since(session, tenant_id, now.epoch, 0, 10_000)
    return [event.seq for event in found] if isinstance(found, list) else []
