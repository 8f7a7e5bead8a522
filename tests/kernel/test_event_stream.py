"""An open stream: what it holds on to, how its request is counted, and what ends it."""

import contextlib
import io
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from app.kernel import clock, metrics, streams, tracing
from app.kernel.asgi import event_stream
from app.kernel.asgi.wire import Receive, Scope, Send
from tests import edge_server
from tests.commands.agents import program
from tests.edge_server import serving
from tests.kernel.test_context import Recorder, lines_of, log, recorder
from tests.people import World

__all__ = ["log", "recorder"]
ROUTE = "/v1/events"
PATIENCE_S = 10.0


def in_flight() -> float:
    """Requests and streams that are open."""
    return metrics.registry.get_sample_value("assent_http_requests_in_flight") or 0


@contextlib.contextmanager
def opened(world: World, port: int) -> Iterator[socket.socket]:
    """A stream of an agent of alice's, which has begun."""
    token = program(world, world.acme, world.acme["alice"]).headers["Authorization"]
    head = f"GET {ROUTE} HTTP/1.1\r\nHost: localhost:8000\r\nAuthorization: {token}\r\n\r\n"
    with edge_server.peer(port) as connection:
        connection.sendall(head.encode())
        got = b""
        while b"event: ready" not in got:
            piece = connection.recv(65_536)
            assert piece, got
            got += piece
        yield connection


def until_over(log: io.StringIO) -> dict[str, Any]:
    """The line of the request; a client learns of the end before it is written."""
    until_s = clock.monotonic_s() + PATIENCE_S
    while not (lines := [each for each in lines_of(log, "request") if each["route"] == ROUTE]):
        assert clock.monotonic_s() < until_s
    [line] = lines
    return line


class Watched:
    """Passes requests on, and keeps what the server handed over."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.scope: Scope = {}
        self.headers: list[Any] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == ROUTE:
            self.scope, self.headers = scope, scope["headers"]
            assert self.headers
        await self._app(scope, receive, send)


def test_an_open_stream_holds_nothing_of_what_was_asked(world: World) -> None:
    watched = Watched(world.app)
    with serving(watched) as port, opened(world, port):
        assert watched.scope.keys() <= {*event_stream.KEPT}
        assert watched.scope["path"] == ROUTE
        assert watched.headers == []


def test_a_stream_is_one_request_until_it_is_over(world: World, log: io.StringIO) -> None:
    with serving(world.app) as port:
        with opened(world, port):
            assert in_flight() == 1
            assert [each["route"] for each in lines_of(log, "request")] == []
            assert streams.of_process().count() == 1
        line = until_over(log)

    assert (line["method"], line["status"]) == ("GET", 200)
    assert line["request_id"]
    assert in_flight() == 0
    assert streams.of_process().count() == 0


def test_the_span_of_a_stream_covers_all_of_it(
    world: World, log: io.StringIO, recorder: Recorder
) -> None:
    with serving(world.app) as port:
        with opened(world, port):
            assert in_flight() == 1
        until_over(log)

    [span] = [each for each in recorder.spans if each.name == f"GET {ROUTE}"]
    assert (span.attributes["http.route"], span.attributes["http.response.status_code"]) == (
        ROUTE,
        200,
    )


def test_a_layer_that_breaks_on_the_way_back_leaves_no_stream_open(
    world: World, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(event_stream, "left_of", broken)
    with serving(world.app) as port:
        token = program(world, world.acme, world.acme["alice"]).headers["Authorization"]
        answer = edge_server.get(port, ROUTE, host="localhost:8000", authorization=token)

    assert b"event: ready" not in answer
    assert streams.of_process().count() == 0
    assert in_flight() == 0
    assert tracing.request_id() is None
