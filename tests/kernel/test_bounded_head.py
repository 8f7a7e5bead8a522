"""Request heads have a deadline and a size, over real sockets."""

import threading

import pytest

from app.kernel.bounded_head import BoundedHead
from tests.edge_server import ask, echo, get, peer, rest_of, serving, status_of

GET = b"GET / HTTP/1.1\r\nhost: x\r\n"


class Quick(BoundedHead):
    """Gives up soon enough for a test."""

    HEAD_S = 0.2


class Patient(BoundedHead):
    """Gives up later than any test: what closes a connection is not the clock."""

    HEAD_S = 3600.0


@pytest.mark.requirement("SEC-49", "SEC-T30")
def test_a_silent_connection_is_closed() -> None:
    with serving(echo, Quick) as port, peer(port) as connection:
        assert rest_of(connection) == b""


@pytest.mark.requirement("SEC-49", "SEC-T30")
def test_a_head_that_drips_is_closed_however_often_a_byte_arrives() -> None:
    with serving(echo, Quick, timeout_keep_alive=3600) as port, peer(port) as connection:
        connection.sendall(GET)
        ended = threading.Event()

        def drip() -> None:
            while not ended.wait(Quick.HEAD_S / 8):
                try:
                    connection.sendall(b"a: 1\r\n")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert rest_of(connection) == b""
        finally:
            ended.set()
            dripping.join()


@pytest.mark.requirement("SEC-49")
def test_the_next_head_on_a_kept_connection_has_a_deadline_too() -> None:
    with serving(echo, Quick, timeout_keep_alive=3600) as port, peer(port) as connection:
        connection.sendall(GET + b"\r\n")
        first = connection.recv(65_536)
        connection.sendall(b"GET / HT")

        assert status_of(first) == 200
        assert rest_of(connection) in (b"", b"0")


@pytest.mark.requirement("SEC-49")
@pytest.mark.parametrize("size", [300_000, 2_000_000])
def test_a_huge_head_is_refused(size: int) -> None:
    with serving(echo, Patient) as port:
        answer = ask(port, GET + b"a: " + b"x" * size + b"\r\n\r\n")

    assert status_of(answer) in (0, 431), "0: reset while we still sent"


@pytest.mark.requirement("SEC-49")
def test_a_huge_head_in_small_pieces_is_told_why() -> None:
    with serving(echo, Patient) as port, peer(port) as connection:
        connection.sendall(GET)
        connection.sendall(b"a: " + b"x" * (Patient.HEAD_BYTES + 1))

        assert status_of(rest_of(connection)) in (0, 431)


@pytest.mark.requirement("SEC-49")
def test_endless_trailers_are_closed() -> None:
    chunked = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"

    with serving(echo, Patient) as port:
        answer = ask(port, chunked, *[b"t: " + b"x" * 1000 + b"\r\n"] * 200)

    assert status_of(answer) == 0


def test_a_slow_body_is_not_the_heads_business() -> None:
    clocks: list[object] = []

    class Watched(Quick):
        def on_body(self, body: bytes) -> None:
            clocks.append(self._timer)
            super().on_body(body)

    post = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 3\r\n\r\n"
    with serving(echo, Watched) as port:
        assert ask(port, post, b"a", b"bc").endswith(b"3")

    assert clocks
    assert set(clocks) == {None}, "the clock of the head runs on"


def test_a_body_in_tiny_chunks_passes() -> None:
    head = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = b"1\r\nx\r\n" * 40_000 + b"0\r\n\r\n"

    with serving(echo, Patient) as port:
        assert ask(port, head + chunks).endswith(b"40000")


def test_ordinary_requests_share_a_connection() -> None:
    post = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n" + b"x" * 200_000
    last = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"

    with serving(echo, Patient) as port:
        answers = ask(port, (GET + b"\r\n") * 20, post, post, last)

    assert answers.count(b"HTTP/1.1 200 OK") == 23
    assert answers.count(b"200000") == 2


@pytest.mark.requirement("SEC-T30")
def test_others_are_answered_while_hundreds_of_heads_hang() -> None:
    with serving(echo, Patient) as port:
        idle = [peer(port) for _ in range(400)]
        try:
            for connection in idle:
                connection.__enter__().sendall(b"GET / HTTP/1.1\r\nx: ")
            assert status_of(get(port)) == 200
        finally:
            for connection in idle:
                connection.__exit__(None, None, None)
