"""Signed checkpoints: made when a chain grew, one line on the other, durable, and told."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlmodel import Session, col, select

from app.audit import checkpoints, listening
from app.audit.checkpoints import Checkpoint
from app.audit.trail import Appended
from app.identity import signing_keys
from app.identity.models import KeyUse
from app.kernel import db, event_log, events, settings
from app.kernel.models import LoggedEvent
from app.kernel.settings import Settings
from tests.audit import trails


@pytest.mark.requirement("SEC-76")
def test_a_checkpoint_is_signed_and_names_the_head(keys: str, folder: Path) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 3)

    assert checkpoints.make_all(folder) == 1

    (line,) = checkpoints.file_of(folder, tenant_id).read_text().splitlines()
    header, payload = signing_keys.verified(KeyUse.CHECKPOINT, line) or ({}, b"")
    assert header["typ"] == checkpoints.TYP
    found = Checkpoint.parse(payload)
    assert (found.tenant, found.seq, found.previous) == (tenant_id, 3, "0" * 64)
    assert checkpoints.newest(folder, tenant_id) == found


@pytest.mark.requirement("SEC-76")
def test_nothing_new_needs_no_checkpoint(keys: str, folder: Path) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 3)
    checkpoints.make_all(folder)

    assert checkpoints.make_all(folder) == 0
    trails.fill(tenant_id, 1)
    assert checkpoints.make_all(folder) == 1

    first, second = checkpoints.file_of(folder, tenant_id).read_bytes().splitlines()
    assert Checkpoint.parse(checkpoints.payload_of(second)).previous == checkpoints.digest(first)


@pytest.mark.requirement("SEC-76")
def test_a_half_written_line_is_written_over(keys: str, folder: Path) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 3)
    checkpoints.make_all(folder)
    with checkpoints.file_of(folder, tenant_id).open("ab") as file:
        file.write(b"eyJhbGciOi")

    trails.fill(tenant_id, 1)
    checkpoints.make_all(folder)

    assert trails.checked(keys, folder).problems == []
    assert trails.checked(keys, folder).checkpoints == 2


@pytest.mark.requirement("SEC-76", "SEC-81")
def test_checkpoints_of_a_replaced_key_stay_verifiable(keys: str, folder: Path) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 3)
    checkpoints.make_all(folder)

    db.transact_now(signing_keys.rotate, None, emergency=True)
    trails.fill(tenant_id, 3)
    checkpoints.make_all(folder)

    assert trails.checked(keys, folder).problems == []
    assert trails.checked(keys, folder).checkpoints == 2


@pytest.mark.requirement("SEC-76")
def test_a_checkpoint_is_an_event(keys: str, folder: Path) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 3)

    checkpoints.make_all(folder)

    (event,) = db.read_now(_events, tenant_id)
    assert (event.kind, event.subject, event.permission) == ("audit.checkpoint", "3", "audit.read")


@pytest.mark.requirement("SEC-76")
def test_the_keeper_makes_one_every_ten_thousand_entries_and_at_its_end(
    keys: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Settings(checkpoint_dir=folder)
    monkeypatch.setattr(settings, "current", lambda: given)
    made = threading.Event()
    tenant_id = trails.tenant()
    monkeypatch.setattr(checkpoints, "EVERY", 5)
    end = listening.listen()
    stop_hearing = _hear_checkpoints(made)
    keeper = checkpoints.Keeper()
    keeper.start()
    try:
        trails.fill(tenant_id, 4)
        assert checkpoints.newest(folder, tenant_id) is None
        trails.fill(tenant_id, 1)
        assert made.wait(20)
        trails.fill(tenant_id, 2)
    finally:
        keeper.stop()
        stop_hearing()
        end()

    newest = checkpoints.newest(folder, tenant_id)
    assert newest is not None
    assert newest.seq == 7
    lines = checkpoints.file_of(folder, tenant_id).read_bytes().splitlines()
    assert [Checkpoint.parse(checkpoints.payload_of(line)).seq for line in lines] == [5, 7]


@pytest.mark.requirement("SEC-76")
def test_a_keeper_that_is_told_to_end_in_the_midst_of_a_round_makes_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds: list[bool] = []
    busy, go_on = threading.Event(), threading.Event()
    keeper = checkpoints.Keeper()

    def make_all() -> None:
        rounds.append(keeper._ending.is_set())
        busy.set()
        assert go_on.wait(20)

    monkeypatch.setattr(checkpoints, "make_all", make_all)
    keeper.start()
    checkpoints._due.set()
    assert busy.wait(20)
    stopping = threading.Thread(target=keeper.stop)
    stopping.start()
    assert keeper._ending.wait(20)

    go_on.set()
    stopping.join(20)

    assert rounds == [False, True]


@pytest.mark.requirement("SEC-76")
def test_a_damaged_file_keeps_no_other_chain_from_its_checkpoint(keys: str, folder: Path) -> None:
    damaged, other = sorted(map(trails.tenant, ("acme", "globex")))
    for tenant_id in (damaged, other):
        trails.fill(tenant_id, 1)
    folder.mkdir(exist_ok=True)
    checkpoints.file_of(folder, damaged).write_text("not a checkpoint\n")

    assert checkpoints.make_all(folder) == 1

    assert checkpoints.newest(folder, other) is not None
    assert checkpoints.newest(folder, damaged) is None


@pytest.mark.requirement("SEC-76")
def test_a_line_that_is_being_written_is_not_the_newest_yet(keys: str, folder: Path) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 3)
    checkpoints.make_all(folder)
    whole = checkpoints.newest(folder, tenant_id)

    with checkpoints.file_of(folder, tenant_id).open("ab") as file:
        file.write(b"eyJhbGciOi")

    assert whole is not None
    assert checkpoints.newest(folder, tenant_id) == whole


@pytest.mark.requirement("SEC-76")
def test_a_chain_is_due_when_its_ten_thousandth_entry_stands() -> None:
    def appended(seq: int) -> Appended:
        return Appended(
            tenant_id="T", seq=seq, command="", outcome="", target_type=None, target_id=None
        )

    checkpoints.note(appended(9_999))
    assert not checkpoints._due.is_set()

    checkpoints.note(appended(10_000))
    assert checkpoints._due.is_set()
    checkpoints._due.clear()


def _hear_checkpoints(made: threading.Event) -> Callable[[], None]:
    def hear(logged: event_log.Logged) -> None:
        found = db.read_now(
            lambda session: session.get(LoggedEvent, (logged.tenant_id, logged.seq))
        )
        if found is not None and found.kind == checkpoints.KIND:
            made.set()

    return events.subscribe(event_log.Logged, hear)


def _events(session: Session, tenant_id: str) -> list[LoggedEvent]:
    query = select(LoggedEvent).where(LoggedEvent.tenant_id == tenant_id)
    return list(session.exec(query.order_by(col(LoggedEvent.seq))))
