"""A server that lies, hangs, floods or dies costs its call, and leaves nothing open behind it."""

import asyncio
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest

from app.outside import wire
from app.outside.connection import Connection
from app.outside.endpoint import Endpoint
from app.outside.results import Lost
from tests.outside.servers import Outsider, text, tool

Start = Callable[..., Outsider]


async def connected(server: Outsider, token: str = "") -> Connection:
    connection = Connection(Endpoint(server.url, token))
    await connection.ready()
    return connection


async def lost(server: Outsider) -> str:
    """Why a connection could not be opened."""
    with pytest.raises(Lost) as fault:
        await connected(server)
    await closed(server)
    return fault.value.rule


async def closed(*servers: Outsider) -> None:
    """Return when nothing is connected to these servers any more."""
    for server in servers:
        assert await server.is_left()
    mine = [task for task in asyncio.all_tasks() if "Connection" in repr(task.get_coro())]
    assert mine == []


def raw(status: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """An answer of any bytes."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return send


@pytest.mark.requirement("RUN-96")
async def test_a_tool_is_called_and_its_answer_is_data(outside: Start) -> None:
    server = outside()
    connection = await connected(server)

    answer = await connection.call("forecast", {"city": "Oslo"})

    assert (answer.outcome, answer.data) == ("done", {"text": "Sunny in Oslo."})
    await connection.close()
    await closed(server)
    assert "GET" not in server.methods, "no stream is opened that nobody asked for"


@pytest.mark.requirement("RUN-96")
async def test_what_is_no_text_is_named(outside: Start) -> None:
    blocks = [
        {"type": "text", "text": "Here\x1b[2J:"},
        {"type": "image", "data": "A" * 41_336, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///etc/passwd", "text": "root"}},
        {"type": "resource_link", "uri": "https://example.com/x", "name": "x"},
    ]
    server = outside(Outsider(answer=lambda _s, _p: {"content": blocks}))
    connection = await connected(server)

    answer = await connection.call("forecast", {})

    assert answer.data["text"].splitlines() == [
        "Here[U+001B][2J:",
        "[image, 31 kB]",
        "root",
        "[link to x: https://example.com/x]",
    ]
    server.answer = lambda _s, _p: text("{}", structuredContent={"degrees": 21})
    assert (await connection.call("forecast", {})).data == {"json": {"degrees": 21}}
    await connection.close()


@pytest.mark.requirement("RUN-96")
async def test_an_error_of_a_tool_is_a_refusal(outside: Start) -> None:
    server = outside(Outsider(answer=lambda _s, _p: text("No such city.", isError=True)))
    connection = await connected(server)

    answer = await connection.call("forecast", {"city": "X"})

    assert (answer.outcome, answer.reason) == ("refused", "tool_refused")
    assert answer.data == {"said": "No such city."}
    await connection.close()


@pytest.mark.requirement("SEC-68")
async def test_a_server_that_asks_us_gets_nothing(outside: Start) -> None:
    wanted = {
        "resultType": "input_required",
        "inputRequests": {
            "a": {
                "method": "elicitation/create",
                "params": {"mode": "url", "message": "?", "url": "https://evil.example/"},
            }
        },
    }
    server = outside(Outsider(answer=lambda _s, _p: wanted, is_modern=True))
    connection = await connected(server)
    answer = await connection.call("forecast", {"city": "X"})

    assert (answer.outcome, answer.reason) == ("refused", "input_not_supported")
    await connection.close()


@pytest.mark.requirement("SEC-68")
async def test_a_result_is_not_checked_with_a_pattern_that_freezes(outside: Start) -> None:
    promised = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}},
    }
    given = text("x", structuredContent={"a": "a" * 40 + "!"})
    server = outside(Outsider(tools=[tool(outputSchema=promised)], answer=lambda _s, _p: given))
    connection = await connected(server)
    output = connection.offers["forecast"].content["output"]

    async with asyncio.timeout(5):
        answer = await connection.call("forecast", {"city": "X"}, output)

    assert (answer.outcome, answer.reason) == ("done", "result_unfit")
    await connection.close()


@pytest.mark.requirement("SEC-68")
async def test_a_server_that_hangs_costs_half_a_minute(
    outside: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "CALL_S", 0.3)
    server = outside(Outsider(answer=lambda _s, _p: None))
    connection = await connected(server)

    with pytest.raises(Lost) as fault:
        await connection.call("forecast", {"city": "X"})

    assert (fault.value.rule, fault.value.was_sent) == ("timeout", True)
    server.over.set()
    await connection.close()
    await closed(server)


@pytest.mark.requirement("SEC-68", "F-85")
async def test_a_server_that_hangs_while_it_is_opened_is_let_go(
    outside: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "CONNECT_S", 0.3)
    server = outside()

    def hang(_handler: BaseHTTPRequestHandler) -> None:
        server.over.wait(10)

    server.raw["tools/list"] = hang

    with pytest.raises(Lost) as fault:
        await connected(server)

    assert fault.value.rule == "timeout"
    server.over.set()
    await closed(server)


@pytest.mark.requirement("SEC-68")
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_a_result_of_100_megabytes_is_cut_off(outside: Start, content_type: str) -> None:
    sent: list[int] = []

    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", content_type)
        handler.send_header("content-length", str(100 << 20))
        handler.end_headers()
        try:
            for _ in range(100):
                handler.wfile.write(b"data: " + b" " * ((1 << 20) - 6))
                sent.append(1)
        except OSError:
            handler.close_connection = True

    server = outside()
    server.raw["tools/call"] = flood
    connection = await connected(server)

    with pytest.raises(Lost) as fault:
        await connection.call("forecast", {"city": "X"})

    assert fault.value.was_sent
    await connection.close()
    await closed(server)
    assert len(sent) < 20, "the rest was not read"


@pytest.mark.requirement("SEC-68", "SEC-55")
async def test_a_redirect_leads_nowhere_else(outside: Start) -> None:
    inside = outside()
    server = outside()
    server.raw["tools/call"] = raw(307, location=inside.url)
    connection = await connected(server)

    answer = await connection.call("forecast", {"city": "X"})

    assert (answer.outcome, answer.reason) == ("refused", "server_refused")
    assert inside.methods == []
    await connection.close()


@pytest.mark.requirement("SEC-68", "SEC-55")
@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://127.0.0.1:1/mcp", "scheme"),
        ("https://127.0.0.1/mcp", "address"),
        ("https://localhost/mcp", "address"),
        ("https://[::ffff:127.0.0.1]/mcp", "address"),
        ("https://169.254.169.254/latest", "address"),
        ("https://example.com:8443/mcp", "port"),
        ("https://u:p@example.com/mcp", "credentials"),
    ],
)
async def test_the_guard_stands_in_front_of_every_server(url: str, rule: str) -> None:
    with pytest.raises(Lost) as fault:
        await Connection(Endpoint(url)).ready()

    assert fault.value.rule == rule


@pytest.mark.requirement("SEC-68")
async def test_a_list_that_is_too_long_or_never_ends_is_refused(outside: Start) -> None:
    many = [tool(f"t{number}") for number in range(201)]
    assert await lost(outside(Outsider(tools=many))) == "too_many_tools"

    endless = outside(Outsider(tools=[], cursor="again"))
    assert await lost(endless) == "too_many_tools"


@pytest.mark.requirement("SEC-68")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 2, "result": 5}',
        b'{"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": 5}]}}',
    ],
)
async def test_nonsense_is_no_server(
    outside: Start, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "CONNECT_S", 1.0)
    server = outside()
    server.raw["tools/list"] = raw(200, body, content_type="application/json")

    assert await lost(server) in {"protocol", "connection", "timeout"}


@pytest.mark.requirement("SEC-68")
async def test_an_encoded_answer_is_refused(outside: Start) -> None:
    server = outside()
    server.raw["tools/list"] = raw(200, b"xx", content_encoding="gzip", content_type="text/plain")

    assert await lost(server) == "encoding"


@pytest.mark.requirement("RUN-96")
async def test_a_call_carries_the_callers_own_token_and_a_wrong_one_asks_for_a_link(
    outside: Start,
) -> None:
    server = outside(Outsider(token="right"))
    connection = await connected(server, "right")
    assert (await connection.call("forecast", {"city": "X"})).outcome == "done"
    assert set(server.tokens) == {"Bearer right"}

    server.token = "other now"
    answer = await connection.call("forecast", {"city": "X"})

    assert (answer.outcome, answer.reason) == ("refused", "unauthorized")
    await connection.close()


@pytest.mark.requirement("F-85", "RUN-50")
async def test_of_three_servers_of_which_the_second_fails_nothing_is_left(outside: Start) -> None:
    first, second, third = outside(), outside(), outside()
    second.raw["initialize"] = raw(500)
    opened = [Connection(Endpoint(server.url)) for server in (first, second, third)]

    outcomes = await asyncio.gather(*(each.ready() for each in opened), return_exceptions=True)

    assert [type(each) for each in outcomes] == [type(None), Lost, type(None)]
    assert (await opened[0].call("forecast", {"city": "A"})).outcome == "done"
    assert (await opened[2].call("forecast", {"city": "B"})).outcome == "done"
    await asyncio.gather(*(each.close() for each in opened))
    await closed(first, second, third)


@pytest.mark.requirement("F-85")
async def test_opening_that_is_cancelled_leaves_nothing(outside: Start) -> None:
    server = outside()
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang(_handler: BaseHTTPRequestHandler) -> None:
        loop.call_soon_threadsafe(reached.set)
        server.over.wait(10)

    server.raw["tools/list"] = hang
    task = asyncio.create_task(Connection(Endpoint(server.url)).ready())
    await asyncio.wait_for(reached.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    server.over.set()
    await closed(server)


@pytest.mark.requirement("RUN-96", "RUN-50")
async def test_a_call_in_hand_is_cut_off_when_its_run_is_stopped(outside: Start) -> None:
    server = outside(Outsider(answer=lambda _s, _p: None))
    connection = await connected(server)
    call = asyncio.create_task(connection.call("forecast", {"city": "X"}))
    assert await server.is_called()

    await connection.close()

    with pytest.raises(Lost):
        await call
    server.over.set()
    await closed(server)


@pytest.mark.requirement("SEC-68", "CMD-27")
@pytest.mark.parametrize("status", [303, 408, 499, 500, 502])
async def test_a_status_that_may_come_after_the_deed_is_no_refusal(
    outside: Start, status: int
) -> None:
    server = outside()
    server.raw["tools/call"] = raw(status)
    connection = await connected(server)

    with pytest.raises(Lost) as fault:
        await connection.call("forecast", {"city": "X"})

    assert (fault.value.rule, fault.value.was_sent) == ("no_answer", True)
    await connection.close()


@pytest.mark.requirement("SEC-68", "CMD-27")
@pytest.mark.parametrize(
    ("code", "is_clear"),
    [(-32601, True), (-32602, True), (-32603, False), (-32000, False), (-32600, False)],
)
async def test_only_an_error_that_says_so_is_a_refusal(
    outside: Start, code: int, is_clear: bool
) -> None:
    def fail(handler: BaseHTTPRequestHandler) -> None:
        error = {"code": code, "message": "timeout at the bank"}
        body = {"jsonrpc": "2.0", "id": server.ids[-1], "error": error}
        raw(200, json.dumps(body).encode(), content_type="application/json")(handler)

    server = outside()
    server.raw["tools/call"] = fail
    connection = await connected(server)

    call = connection.call("forecast", {"city": "X"})
    if is_clear:
        assert (await call).reason == "server_refused"
    else:
        with pytest.raises(Lost) as fault:
            await call
        assert fault.value.was_sent
    await connection.close()


@pytest.mark.requirement("SEC-68")
async def test_nothing_hides_in_an_answer(outside: Start) -> None:
    given = text("x", structuredContent={"a\u202e": ["b\x1b[31m", {"c": "d\U000e0041"}], "n": 1})
    server = outside(Outsider(answer=lambda _s, _p: given))
    connection = await connected(server)

    answer = await connection.call("forecast", {"city": "X"})

    shown = {"a[U+202E]": ["b[U+001B][31m", {"c": "d[U+E0041]"}], "n": 1}
    assert answer.data == {"json": shown}
    await connection.close()
