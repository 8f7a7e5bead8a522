"""What every test may ask for: a database of each kind, a clock, and nothing skipped silently.

A plugin that the conftest.py of `tests/` and of `e2e/` both join, so that either runs alone.
"""

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog

from app.kernel import db
from tests import clock as clocks
from tests import databases, included, people, session

hypothesis.settings.register_profile("house", deadline=None)  # nothing asserts a time
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "house")

COLLECT = (20_000, 20, 100)  # garbage is looked for after so many new objects, not after 700
FIRST = ("tests/aun/test_kills.py", "tests/aun/test_command_line.py", "e2e/test_hostile.py")

_run = ExitStack()


def join(config: pytest.Config) -> None:
    """Make the house rules and fixtures known, once."""
    if not config.pluginmanager.has_plugin("house"):
        config.pluginmanager.register(sys.modules[__name__], "house")


def pytest_configure() -> None:
    _keep_compiled()
    databases.share_compiled()
    # a traceback with the locals of each frame takes seconds to draw
    structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback
    _run.enter_context(session.run())
    included.share()
    _run.callback(databases.finish)


def _keep_compiled() -> None:
    # else each worker, and each process it forks from, compiles the product again
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes begins first: at the end, one worker would have it and the rest nothing.

    The server of PostgreSQL takes the longest, and shares what its clients leave.
    """
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> tuple[int, bool]:
    file = item.nodeid.partition("::")[0]
    place = FIRST.index(file) if file in FIRST else len(FIRST)
    return place, place == 0 and "[postgresql" not in item.nodeid


def pytest_collection_finish() -> None:
    """Let the collector leave alone what is loaded: it would walk all of it, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)


def pytest_unconfigure() -> None:
    _run.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Any:
    """A skip tells a user why, or it is a failure."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        said = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else "")
        reason = said.removeprefix("Skipped").strip(": ")
        if reason in {"", "unconditional skip", "<Skipped>"} or "empty parameter set" in reason:
            report.outcome = "failed"
            report.longrepr = f"{report.nodeid} was skipped without a reason"
    return report


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=databases.KINDS)
def kind(request: pytest.FixtureRequest) -> databases.Kind:
    """Which database: the test runs once on each."""
    chosen: databases.Kind = request.param
    return chosen


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for databases: in memory where there is room, and gone after the test."""
    with tempfile.TemporaryDirectory(dir=session.folder()) as folder:
        yield Path(folder)


@pytest.fixture
def database(request: pytest.FixtureRequest, kind: databases.Kind, scratch: Path) -> Iterator[str]:
    """The URL of a fresh migrated database, of each kind in turn."""
    if "world" not in request.fixturenames:
        makes = databases.migrated(kind, scratch)
    elif "spenders" not in request.fixturenames:
        makes = people.peopled(kind, scratch)
    else:
        from tests.packs.expenses import desk  # late: not all tests are about commands

        makes = people.peopled(kind, scratch, desk.JOINING)
    with makes as url:
        yield url


@pytest.fixture
def spenders() -> None:
    """The people of `Desk` are in the database from the start, which costs a test much less."""


@pytest.fixture
def empty_database(kind: databases.Kind, scratch: Path) -> Iterator[str]:
    """The URL of a database without tables, of each kind in turn."""
    with databases.empty(kind, scratch) as url:
        yield url


@pytest.fixture
def opened(database: str) -> Iterator[str]:
    """This process is connected to a fresh migrated database, of each kind in turn; its URL."""
    db.open(database)
    try:
        yield database
    finally:
        db.close()


@pytest.fixture
def world(opened: str) -> Iterator[people.World]:
    """Two tenants with people, and the real application, on a database of each kind in turn."""
    with people.world(url=opened) as made:
        yield made


@pytest.fixture
def clock() -> Iterator[clocks.Clock]:
    """The clock stands still; `clock.move(minutes=5)`."""
    with clocks.frozen() as frozen:
        yield frozen
