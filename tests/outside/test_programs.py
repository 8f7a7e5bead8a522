"""A server that is a program: named by the operator alone, and dead with all its children."""

import asyncio
import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.kernel import db, settings
from app.kernel.errors import Invalid
from app.outside import opening, servers
from app.outside.connection import Connection
from app.outside.endpoint import Endpoint, Program
from app.outside.models import McpServer, Transport
from app.outside.results import Lost
from tests.outside.lobby import Lobby
from tests.people import World

PROGRAM = Path(__file__).with_name("program.py")


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    return tmp_path / "pids"


@pytest.fixture
def lobby(
    world: World, tmp_path: Path, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lobby]:
    file = tmp_path / "programs.json"
    command = [sys.executable, str(PROGRAM), str(pids)]
    slug = world.acme.tenant.slug
    file.write_text(json.dumps({slug: {"files": {"command": command, "env": {"GREETING": "hi"}}}}))
    monkeypatch.setenv("ASSENT_MCP_PROGRAMS", str(file))
    monkeypatch.setenv("ASSENT_MASTER_KEY", "secret")
    settings.current.cache_clear()
    yield Lobby(world)
    monkeypatch.undo()
    settings.current.cache_clear()


def processes(pids: Path) -> list[int]:
    """Every process that the program ever was, and its children."""
    return [int(each) for each in pids.read_text().split()]


def ends(pid: int, within_s: float) -> bool:
    """Whether a process ends, or has ended, within some seconds."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], within_s)[0])
    finally:
        os.close(handle)


def is_over(pids: Path, within_s: float = 5.0) -> bool:
    """Whether nothing of the program is left; what was killed needs a moment to be gone."""
    return all(ends(pid, within_s) for pid in processes(pids))


def add(lobby: Lobby, name: str = "files") -> McpServer:
    return db.transact_now(lambda work: servers.add_program(work, lobby.ada, name))


@pytest.mark.requirement("SEC-68", "RUN-96")
async def test_a_program_is_started_for_a_connection_and_dies_with_its_children(
    lobby: Lobby, pids: Path
) -> None:
    server = add(lobby)
    assert server.transport == Transport.STDIO
    assert await lobby.look(server) == ""
    assert [each.name for each in lobby.tools(server)] == ["look"]
    assert is_over(pids)

    connection = await opening.opened(server.tenant_id, server.id, lobby.ada.user_id)
    answer = await connection.call("look", {"city": "X"})
    assert answer.data == {"text": "hi False"}, "its own environment, and nothing of ours"
    assert not is_over(pids, 0.0)
    await connection.close()

    assert len(processes(pids)) == 4
    assert is_over(pids)


@pytest.mark.requirement("SEC-68")
async def test_no_page_and_no_other_tenant_names_a_program(lobby: Lobby) -> None:
    with pytest.raises(Invalid):
        add(lobby, "rm")
    gina = lobby.world.person(lobby.world.globex["gina"])
    with pytest.raises(Invalid):
        db.transact_now(lambda work: servers.add_program(work, gina, "files"))

    server = add(lobby)
    settings.current().mcp_programs.write_text("{}")  # type: ignore[union-attr]
    os.utime(settings.current().mcp_programs, (1, 1))  # type: ignore[arg-type]
    assert await lobby.look(server) == "not_in_file"
    settings.current().mcp_programs.write_text("no json")  # type: ignore[union-attr]
    os.utime(settings.current().mcp_programs, (2, 2))  # type: ignore[arg-type]
    assert await lobby.look(server) == "file_unreadable"


@pytest.mark.requirement("F-85", "RUN-50")
async def test_a_program_that_is_none_costs_its_connection(tmp_path: Path) -> None:
    missing = Connection(Endpoint(program=Program((str(tmp_path / "none"),))))
    with pytest.raises(Lost):
        await missing.ready()

    silent = Connection(Endpoint(program=Program((sys.executable, "-c", "pass"))))
    with pytest.raises(Lost):
        await silent.ready()


@pytest.mark.requirement("K-3", "F-85")
def test_a_program_dies_with_a_server_that_is_killed(pids: Path) -> None:
    child = os.fork()
    if not child:
        try:
            asyncio.run(_open_and_die(Program((sys.executable, str(PROGRAM), str(pids)))))
        finally:
            os._exit(1)

    _, status = os.waitpid(child, 0)

    assert os.WTERMSIG(status) == signal.SIGKILL
    assert len(processes(pids)) == 2
    assert is_over(pids)


async def _open_and_die(program: Program) -> None:
    await Connection(Endpoint(program=program)).ready()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.requirement("F-85", "RUN-50", "K-3")
async def test_what_is_opened_and_then_cancelled_leaves_no_process(
    tmp_path: Path, pids: Path
) -> None:
    program = Program((sys.executable, str(PROGRAM), str(pids)))
    stuck = Program((sys.executable, "-c", "import sys; sys.stdin.read()"))
    first = Connection(Endpoint(program=program))
    await first.ready()
    second = asyncio.create_task(Connection(Endpoint(program=stuck)).ready())
    await asyncio.wait({second}, timeout=0.5)

    second.cancel()
    await asyncio.wait({second})
    await first.close()

    assert is_over(pids)
    assert not [task for task in asyncio.all_tasks() if "_own" in repr(task.get_coro())]
