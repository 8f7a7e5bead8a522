"""Frames that are made once and written at once, on real sockets."""

from typing import Any

import pytest
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from app.kernel.abortable_socket import AbortableSocket, framed, write_of
from app.kernel.asgi.wire import Receive, Scope, Send
from tests.edge_server import PATIENCE_S, serving

LENGTHS = (0, 1, 125, 126, 65_535, 65_536, 200_000)  # heads get longer at 126 and 65,536


class Teller:
    """Tells a socket texts of all lengths at once, ends it, and tells it once more."""

    def __init__(self) -> None:
        self.early: bool | None = None
        self.wrote: list[bool] = []
        self.late: bool | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        write_now = write_of(scope)
        await receive()
        self.early = write_now(framed(b"early"))
        await send({"type": "websocket.accept"})
        for length in LENGTHS:
            self.wrote.append(write_now(framed(b"x" * length)))
            await receive()  # what was told arrived, or was not told
        await send({"type": "websocket.send", "text": "the end"})
        await send({"type": "websocket.close", "code": 1000})
        self.late = write_now(framed(b"late"))


@pytest.mark.parametrize("length", LENGTHS)
def test_a_frame_is_the_one_of_the_library(length: int) -> None:
    text = b"x" * length
    assert framed(text) == Frame(Opcode.TEXT, text).serialize(mask=False)


def test_a_client_reads_what_is_written_at_once() -> None:
    teller = Teller()
    with _served(teller) as port, _client(port, compression=None) as client:
        for length in LENGTHS:
            assert client.recv(PATIENCE_S) == "x" * length
            client.send("got it")
        assert client.recv(PATIENCE_S) == "the end"
    assert teller.wrote == [True] * len(LENGTHS)


def test_nothing_is_written_before_a_socket_is_open_or_after_its_end() -> None:
    teller = Teller()
    with _served(teller) as port, _client(port, compression=None) as client:
        for _ in LENGTHS:
            client.recv(PATIENCE_S)
            client.send("got it")
        assert client.recv(PATIENCE_S) == "the end"
    assert (teller.early, teller.late) == (False, False)


def test_nothing_is_written_where_frames_are_compressed() -> None:
    teller = Teller()
    with _served(teller, ws_per_message_deflate=True) as port, _client(port) as client:
        for _ in LENGTHS:
            client.send("next")
        assert client.recv(PATIENCE_S) == "the end"
    assert teller.wrote == [False] * len(LENGTHS)


def _served(teller: Teller, **config: Any) -> Any:
    return serving(teller, ws=AbortableSocket, **config)


def _client(port: int, **how: Any) -> Any:
    return connect(f"ws://127.0.0.1:{port}/", **how)
