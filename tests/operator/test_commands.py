"""`python -m app …`: the operator's commands, as processes of their own."""

import json
import re
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests import databases, processes
from tests.server import RunningServer, environment


def app(
    *arguments: str, data: Path, database: str, afresh: bool = False, **more: str
) -> "subprocess.CompletedProcess[str]":
    env = {
        **environment(),
        "ASSENT_DATA_DIR": str(data),
        "ASSENT_DATABASE_URL": database,
        **more,
    }
    return processes.run(*arguments, env=env, afresh=afresh)


def test_help_lists_every_command(tmp_path: Path) -> None:
    from app.__main__ import COMMANDS

    said = app("--help", data=tmp_path, database="", afresh=True).stdout

    assert COMMANDS
    assert [name for name in COMMANDS if f"  {name} " not in said] == []


@pytest.mark.parametrize("words", [["flarp"], ["migrate", "--flarp"], ["tenant"]])
def test_what_is_no_command_says_so_in_one_line(tmp_path: Path, words: list[str]) -> None:
    ended = app(*words, data=tmp_path, database="")

    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


@pytest.mark.requirement("KERNEL-3")
def test_an_unknown_setting_is_named_and_nothing_starts(tmp_path: Path) -> None:
    ended = app("migrate", data=tmp_path, database="", afresh=True, ASSENT_PROT="80")

    assert ended.returncode == 2
    assert "ASSENT_PROT" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_migrate_says_what_it_did(empty_database: str, tmp_path: Path) -> None:
    told = [
        app(*words, data=tmp_path, database=empty_database)
        for words in (["migrate", "--check"], ["migrate"], ["migrate"], ["migrate", "--check"])
    ]

    assert [each.returncode for each in told] == [1, 0, 0, 0]
    assert "was upgraded" in told[1].stdout
    assert "was current" in told[2].stdout


@pytest.mark.requirement("KERNEL-4")
def test_replicas_that_start_together_upgrade_once(empty_database: str, tmp_path: Path) -> None:
    env = {
        **environment(),
        "ASSENT_DATA_DIR": str(tmp_path),
        "ASSENT_DATABASE_URL": empty_database,
    }
    files = [tmp_path / f"{number}.out" for number in range(3)]
    started = [processes.start("migrate", env=env, output=file, errors=file) for file in files]

    statuses = [process.wait(60) for process in started]

    told = [file.read_text() for file in files]
    assert statuses == [0, 0, 0], told
    assert sum("was upgraded" in said for said in told) == 1
    assert sum("was current" in said for said in told) == 2


def test_a_database_of_a_newer_version_is_left_alone(database: str, tmp_path: Path) -> None:
    from sqlalchemy import text

    from app.kernel import db

    db.open(database)
    db.transact_now(
        lambda work: (
            work.connection.execute(
                text("UPDATE alembic_version SET version_num = 'from_the_future'")
            )
            and None
        )
    )
    db.close()

    ended = app("migrate", data=tmp_path, database=database)

    assert ended.returncode == 2
    assert "does not know" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_tenant_is_added_suspended_and_resumed(database: str, tmp_path: Path) -> None:
    def tenant(*words: str) -> "subprocess.CompletedProcess[str]":
        return app("tenant", *words, data=tmp_path, database=database)

    added = tenant("add", "acme", "--name", "Acme 贸易", "--owner", "Olga")
    again = tenant("add", "acme", "--name", "Acme", "--owner", "olga")
    tenant("suspend", "acme")
    suspended = tenant("list").stdout
    twice = tenant("suspend", "acme")
    tenant("resume", "acme")
    resumed = tenant("list").stdout

    assert re.search(r"^http://localhost:8000/invite/\w{26}\.\S{43}$", added.stdout.strip())
    assert (again.returncode, "taken" in again.stderr) == (2, True)
    assert "suspended" in suspended
    assert twice.returncode == 2
    assert "active" in resumed


def test_a_locked_out_owner_gets_a_link(database: str, tmp_path: Path) -> None:
    app(
        "tenant",
        "add",
        "acme",
        "--name",
        "Acme",
        "--owner",
        "olga",
        data=tmp_path,
        database=database,
    )

    links = [
        app("reset-link", name, data=tmp_path, database=database)
        for name in ("acme/olga", "OLGA", "acme/nobody", "globex/olga")
    ]

    assert [each.returncode for each in links] == [0, 0, 2, 2]
    assert "/invite/" in links[0].stdout, "she has no password yet"
    assert "nobody" in links[2].stderr


def test_backup_restore_and_doctor_tell_what_they_found(database: str, tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "it.tar.gz"
    app("tenant", "add", "acme", "--name", "Acme", "--owner", "olga", data=data, database=database)

    written = app("backup", str(file), data=data, database=database)
    with databases.empty("sqlite", data) as other:
        before = app("doctor", data=data, database=other)
        restored = app("restore", str(file), data=data, database=other)
        after = app("doctor", data=data, database=other)
        (data / "master.key").write_text("A" * 43 + "=")
        wrong_key = app("doctor", data=data, database=other)

    assert written.returncode == 0, written.stderr
    assert "master key is not in it" in written.stdout
    assert (before.returncode, "run migrate" in before.stdout) == (1, True)
    assert restored.returncode == 0, restored.stderr
    assert (after.returncode, "opens all" in after.stdout) == (0, True), after.stdout
    assert (wrong_key.returncode, "not the one" in wrong_key.stdout) == (1, True)


@pytest.mark.requirement("SEC-42", "SEC-43", "SEC-87")
def test_the_demo_writes_credentials_that_sign_in_once_and_stays_as_it_is(
    empty_database: str, tmp_path: Path
) -> None:
    file = tmp_path / "credentials.json"
    words = ("--demo", "--credentials", str(file))
    with RunningServer(tmp_path / "data", empty_database, arguments=words) as server:
        written = file.read_text()
        printed = server.log()
        token = server.command(
            "token", "--user", "acme/alice", "--agent", "expenses", "--audience", "api"
        )
        told = httpx2.get(
            f"{server.base_url}/v1/me", headers={"Authorization": f"Bearer {token.strip()}"}
        ).json()
    with RunningServer(tmp_path / "data", empty_database, arguments=words) as server:
        again = server.log().removeprefix(printed)

    assert (told["login"], told["agent"]["code"]) == ("alice", "expenses")
    made = json.loads(written)
    assert file.stat().st_mode & 0o777 == 0o600
    assert {"tenant", "username", "password", "roles", "org"} <= made["users"][0].keys()
    assert made["users"][0]["password"] in printed
    assert made["agents"]
    assert file.read_text() == written
    assert [one for one in made["users"] if one["password"] in again] == []


@pytest.mark.requirement("SEC-42")
def test_the_setup_link_is_printed_until_it_is_used_and_is_another_each_time(
    empty_database: str, tmp_path: Path
) -> None:
    found = []
    for _ in range(2):
        with RunningServer(tmp_path, empty_database) as server:
            found += re.findall(rf"{server.base_url}/setup/(\S+)", server.log())

    assert len(found) >= 2
    assert len(set(found)) == 2
