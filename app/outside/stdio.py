"""A server that is a program: its pipes as a transport, and its whole process group's end.

The SDK's own lets a program's children live where the program itself ends politely, and reads lines
of any length. Here a line has an end, and nothing of the group outlives the connection (F-85).
"""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from app.outside.endpoint import Program
from app.outside.results import Lost

LONGEST = 2 << 20  # bytes of a line: a result, and what is around it
KEEPER = Path(__file__).with_name("keeper.py")
INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER")
POLITE_S, LEAVES_S = 1.0, 2.0  # to end by itself, and after it was told to
GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)

Messages = MemoryObjectSendStream[SessionMessage | Exception]


@asynccontextmanager
async def opened(program: Program) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a program that runs as long as the block does.

    Raises:
        OSError: nothing can be started.
    """
    watched, held = os.pipe()  # what the keeper waits on; whoever kills us lets go of it
    try:
        process = await anyio.open_process(
            [sys.executable, "-I", str(KEEPER), str(watched), *program.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**_inherited(), **program.env},
            cwd=program.cwd or None,
            start_new_session=True,
            pass_fds=(watched,),
        )
    except BaseException:
        os.close(held)
        raise
    finally:
        os.close(watched)
    # no await until the block that ends it is entered, or a cancel in between would let it live
    into, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, out = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with into, read, write, out, anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, into)
            tasks.start_soon(_write, process, out)
            yield read, write
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
        os.close(held)


async def _read(process: anyio.abc.Process, into: Messages) -> None:
    rest = b""
    async with into:
        with suppress(anyio.EndOfStream, *GONE):
            while True:
                *lines, rest = (rest + await _stdout(process).receive()).split(b"\n")
                if len(rest) > LONGEST:
                    raise Lost("size", was_sent=True)
                for line in lines:
                    await into.send(_message(line))


async def _write(
    process: anyio.abc.Process, out: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    stdin = process.stdin
    if stdin is None:
        return
    with suppress(*GONE):
        async for message in out:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stdin.send(f"{text}\n".encode())


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as fault:
        return fault


async def _end(process: anyio.abc.Process) -> None:
    """Let it end, tell it to, kill it: and in any case everything it started."""
    with suppress(*GONE):
        if process.stdin is not None:
            await process.stdin.aclose()
    with anyio.move_on_after(POLITE_S):
        await process.wait()
    _signal(process.pid, signal.SIGTERM)
    with anyio.move_on_after(LEAVES_S):
        await process.wait()
    _signal(process.pid, signal.SIGKILL)  # of the group: its number is not given anew before that
    with anyio.move_on_after(LEAVES_S):
        await process.aclose()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _stdout(process: anyio.abc.Process) -> anyio.abc.ByteReceiveStream:
    if process.stdout is None:
        raise anyio.EndOfStream
    return process.stdout


def _inherited() -> dict[str, str]:
    """What a program gets of our environment: nothing that is a setting, or a secret."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}
