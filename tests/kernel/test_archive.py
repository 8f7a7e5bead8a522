"""Backup and restore, from each kind of database into each."""

import os
from pathlib import Path

import pytest
from sqlmodel import Session, col, select

from app.identity import agents, orgs, setup, tenants, users
from app.identity.models import Org, Tenant, User, UserStatus
from app.identity.principal import Channel, Principal
from app.kernel import archive, db, migrations
from app.kernel.db import Work
from app.kernel.models import EventHead
from tests import databases
from tests.databases import Kind

pytestmark = pytest.mark.requirement("KERNEL-2")


@pytest.fixture(params=databases.KINDS)
def other_kind(request: pytest.FixtureRequest) -> Kind:
    kind: Kind = request.param
    return kind


@pytest.fixture
def filled(database: str) -> str:
    """A database with a tree whose parents are younger than their children, and JSON in it."""
    db.open(database)
    try:
        db.transact_now(setup.declare)
        db.transact_now(_fill)
    finally:
        db.close()
    return database


def _fill(work: Work) -> None:
    tenant, root = tenants.create(work, slug="acme", name="Acme 贸易", locale="zh-CN")
    child = orgs.create(work, None, root, "Finance")
    parent = orgs.create(work, None, root, "Head office")
    alice = users.create(
        work, None, child, login="alice", display_name="Alice", status=UserStatus.ACTIVE
    )
    me = Principal(
        tenant.id, alice.id, None, None, "s", Channel.CONSOLE, (), frozenset(), alice.authz_epoch
    )
    orgs.move(work, me, child, parent)
    agent = agents.create(work, None, alice, code="stock", name="Stock", content={"a": [1, "二"]})
    agents.publish(work, None, agent)
    work.session.add(EventHead(tenant_id=tenant.id, epoch="0" * 26, seq=7))


def everything(session: Session) -> list[object]:
    return [
        [row.model_dump() for row in session.exec(select(table).order_by(col(table.id))).all()]
        for table in (Tenant, Org, User)
    ]


def test_what_was_backed_up_is_restored_into_either_kind(
    filled: str, other_kind: Kind, tmp_path: Path
) -> None:
    db.open(filled)
    before = db.read_now(everything)
    db.close()
    file = tmp_path / "it.tar.gz"
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "t.jsonl").write_text("line\n")

    written = archive.write(filled, file, tmp_path / "checkpoints")
    (tmp_path / "new").mkdir()
    with databases.empty(other_kind, tmp_path / "new") as url:
        restored = archive.read(url, file, tmp_path / "new" / "checkpoints")

        db.open(url)
        after = db.read_now(everything)
        epoch = db.read_now(lambda session: session.exec(select(EventHead.epoch)).one())
        db.close()
        assert migrations.is_current(url)

    assert after == before
    assert restored == written
    assert written["org"] == 3
    assert epoch != "0" * 26, "whoever follows the log has to start over"
    assert (tmp_path / "new" / "checkpoints" / "t.jsonl").read_text() == "line\n"
    assert file.stat().st_mode & 0o077 == 0


def test_nothing_is_restored_over_what_is_there(filled: str, tmp_path: Path) -> None:
    file = tmp_path / "it.tar.gz"
    archive.write(filled, file, tmp_path)

    with pytest.raises(archive.ArchiveProblem, match="not empty"):
        archive.read(filled, file, tmp_path / "checkpoints")
    with pytest.raises(archive.ArchiveProblem, match="exists"):
        archive.write(filled, file, tmp_path)


def test_a_damaged_archive_restores_nothing(filled: str, kind: Kind, tmp_path: Path) -> None:
    file = tmp_path / "it.tar.gz"
    archive.write(filled, file, tmp_path)
    whole = file.read_bytes()
    (tmp_path / "new").mkdir()

    with databases.empty(kind, tmp_path / "new") as url:
        for size in (0, 100, len(whole) // 2, len(whole) * 3 // 4):
            file.write_bytes(whole[:size])
            with pytest.raises(archive.ArchiveProblem):
                archive.read(url, file, tmp_path / "new")

        file.write_bytes(whole)
        assert archive.read(url, file, tmp_path / "new")["user"] == 1


def test_a_backup_holds_no_writer_up(
    filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row written while the archive is made is neither refused nor half in it."""
    db.open(filled)
    real = archive._tables

    def while_others_write(connection: object, folder: Path) -> object:
        made = real(connection, folder)  # type: ignore[arg-type]
        db.transact_now(
            lambda work: orgs.create(work, None, orgs.root(work.session, _tenant(work)), "New")
        )
        return made

    monkeypatch.setattr(archive, "_tables", while_others_write)
    written = archive.write(filled, tmp_path / "it.tar.gz", tmp_path)
    there = db.read_now(lambda session: len(session.exec(select(Org)).all()))
    db.close()

    assert (written["org"], there) == (3, 4)


def _tenant(work: Work) -> str:
    return work.session.exec(select(Tenant.id)).one()


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_its_owner_reads_a_backup(filled: str, tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        archive.write(filled, tmp_path / "it.tar.gz", tmp_path)
    finally:
        os.umask(before)

    assert (tmp_path / "it.tar.gz").stat().st_mode & 0o777 == 0o600
