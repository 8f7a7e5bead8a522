"""A provider of models on loopback that forgives nothing, in both wire formats (RUN-110).

It answers 400 unless each tool call is answered by exactly one result right after it, ids are
unique, roles legal, one system message stands first and no field is unknown. What it says, and how
it breaks off, is scripted answer by answer; every body is kept.

    with strict_provider.serving() as provider:
        provider.will(Say(text=["Hel", "lo"]), Fail("rate_limited", retry_after=7))
"""

import itertools
import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

from tests import strict_checks

KEY = "sk-of-the-tests"
LEAK = "host db-7.internal password hunter2"  # stands in every error; nobody may ever read it
WAIT_S = 20.0
EVENTS = "text/event-stream; charset=utf-8"


@dataclass(frozen=True)
class Calls:
    """A call the model makes; `id` None: none is sent (`openai`), or a new one."""

    name: str
    arguments: str = "{}"
    id: str | None = ""


@dataclass(frozen=True)
class Counted:
    """Tokens; the input includes cached and written ones."""

    input: int = 20
    output: int = 5
    cached: int = 0
    written: int = 0
    reasoning: int = 0


@dataclass(frozen=True, kw_only=True)
class Say:
    """An answer.

    Attributes:
        finish: in OpenAI's words; empty: as the calls say; None: none is sent.
        end: `whole`; `early`: cleanly, without what ends an answer; `drop`: the connection breaks;
            `error`: an error stands in the stream. All but `whole` come with half of the last
            call's arguments.
        error: the kind of that error.
        split: bytes of a piece on the wire; 0: an event each.
        gate: where the answer waits, before its `head`, its `start` or its `middle`.
    """

    thoughts: Sequence[str] = ()
    text: Sequence[str] = ()
    calls: Sequence[Calls] = ()
    finish: str | None = ""
    usage: Counted | None = Counted()
    repeat_usage: bool = False
    end: Literal["whole", "early", "drop", "error"] = "whole"
    error: str = "server"
    split: int = 0
    gate: str | None = None
    at: Literal["head", "start", "middle"] = "middle"
    model: str = "strict-1"

    @property
    def ended_by(self) -> str | None:
        """The finish reason, in OpenAI's words."""
        if self.end != "whole":
            return None
        return ("tool_calls" if self.calls else "stop") if self.finish == "" else self.finish


@dataclass(frozen=True)
class Fail:
    """An answer with an error status."""

    kind: str
    retry_after: float | None = None
    status: int | None = None
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Raw:
    """An answer of exactly these bytes, whatever a client makes of them.

    Attributes:
        pieces: the body, each piece in a chunk of its own.
        is_endless: the last piece comes again and again until the asker leaves.
    """

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": EVENTS})
    is_endless: bool = False

    @classmethod
    def of(cls, wire: str, events: Sequence[dict[str, Any] | str]) -> Self:
        """One of these events, as that wire sends them."""
        return cls(pieces=[_framed(wire, event) for event in events])


Answer = Say | Fail | Raw


@dataclass
class Gate:
    """Where an answer waits; `gone` is set if its asker left meanwhile."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Asked:
    """One request."""

    wire: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        """Its JSON."""
        found: dict[str, Any] = json.loads(self.raw)
        return found


class StrictProvider:
    """What it was asked, what it complained about, and what it will say.

    Attributes:
        answer: gives the answer where none is scripted.
        knows_continuous_usage: takes `stream_options.continuous_usage_stats`.
        knows_max_tokens_only: refuses `max_completion_tokens`.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.complaints: list[str] = []
        self.answer: Callable[[Asked], Answer] = lambda asked: Say(text=["OK."])
        self.knows_continuous_usage = False
        self.knows_max_tokens_only = False
        self._scripted: deque[Answer] = deque()
        self._gates: dict[str, Gate] = {}
        self._lock = threading.Lock()
        self.port = 0

    @property
    def openai(self) -> str:
        """Its base URL for the one wire."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def anthropic(self) -> str:
        """And for the other."""
        return f"http://127.0.0.1:{self.port}"

    def url(self, wire: str) -> str:
        """Its base URL for `wire`."""
        return self.openai if wire == "openai" else self.anthropic

    def will(self, *answers: Answer) -> None:
        """Script the next answers."""
        self._scripted.extend(answers)

    def gate(self, name: str) -> Gate:
        """The gate of that name."""
        with self._lock:
            return self._gates.setdefault(name, Gate())

    def next_answer(self, asked: Asked) -> Answer:
        """What it answers; a request that breaks a rule costs no scripted answer."""
        with self._lock:
            self.asked.append(asked)
            complaints = self._complaints(asked)
            self.complaints += complaints
            if complaints:
                return Fail("rejected", message="; ".join(complaints))
            if _key(asked) != KEY:
                return Fail("authentication")
            return self._scripted.popleft() if self._scripted else self.answer(asked)

    def _complaints(self, asked: Asked) -> list[str]:
        if asked.wire == "openai":
            return strict_checks.openai(
                asked.body,
                knows_continuous_usage=self.knows_continuous_usage,
                knows_max_tokens_only=self.knows_max_tokens_only,
            )
        return strict_checks.anthropic(asked.body, asked.headers)


@contextmanager
def serving() -> Iterator[StrictProvider]:
    """A strict provider that answers on a free port of loopback."""
    provider = StrictProvider()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(provider))
    server.daemon_threads = True
    provider.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        for gate in provider._gates.values():
            gate.opened.set()
        server.shutdown()
        server.server_close()
        thread.join(WAIT_S)


def _key(asked: Asked) -> str:
    bearer = asked.headers.get("authorization", "").removeprefix("Bearer ")
    return bearer or (asked.headers.get("x-api-key", "") if asked.wire == "anthropic" else "")


def _handler(provider: StrictProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            path = self.path.partition("?")[0]
            wire = {"/v1/chat/completions": "openai", "/v1/messages": "anthropic"}.get(path)
            if wire is None:
                self.send_error(404)
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = provider.next_answer(Asked(wire, self.path, headers, raw))
            self.close_connection = True
            try:
                match answer:
                    case Fail():
                        _refuse(self, wire, answer)
                    case Raw():
                        _write(self, answer)
                    case Say():
                        _say(self, provider, wire, answer)
            except (BrokenPipeError, ConnectionResetError):
                if isinstance(answer, Say) and answer.gate:
                    provider.gate(answer.gate).gone.set()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _refuse(handler: BaseHTTPRequestHandler, wire: str, fail: Fail) -> None:
    status, body = _error(wire, fail.kind, fail.message)
    raw = json.dumps(body).encode()
    handler.send_response(fail.status or status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(raw)))
    handler.send_header("connection", "close")
    if fail.retry_after is not None:
        handler.send_header("retry-after", str(fail.retry_after))
    handler.end_headers()
    handler.wfile.write(raw)


def _write(handler: BaseHTTPRequestHandler, raw: Raw) -> None:
    handler.send_response(raw.status)
    for name, value in raw.headers.items():
        handler.send_header(name, value)
    handler.send_header("connection", "close")
    has_body = raw.status != HTTPStatus.NO_CONTENT
    if has_body:
        handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    again = itertools.repeat(raw.pieces[-1]) if raw.is_endless else ()
    for piece in itertools.chain(raw.pieces, again) if has_body else ():
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
    if has_body:
        handler.wfile.write(b"0\r\n\r\n")


def _say(handler: BaseHTTPRequestHandler, provider: StrictProvider, wire: str, say: Say) -> None:
    events = [_framed(wire, event) for event in events_of(wire, say)]
    if say.split:
        whole = b"".join(events)
        events = [whole[at : at + say.split] for at in range(0, len(whole), say.split)]
    _wait(handler, provider, say, "head")
    handler.send_response(200)
    handler.send_header("content-type", EVENTS)
    handler.send_header("transfer-encoding", "chunked")
    handler.send_header("connection", "close")
    handler.end_headers()
    _wait(handler, provider, say, "start")
    for number, event in enumerate(events):
        if number == (len(events) + 1) // 2:
            _wait(handler, provider, say, "middle")
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        handler.wfile.flush()
    if say.end == "drop":  # a reset, not an end
        linger = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        return
    handler.wfile.write(b"0\r\n\r\n")


def _wait(handler: BaseHTTPRequestHandler, provider: StrictProvider, say: Say, place: str) -> None:
    if say.gate is None or say.at != place:
        return
    gate = provider.gate(say.gate)
    gate.reached.set()
    handler.connection.settimeout(0.02)
    while not gate.opened.is_set():
        try:
            if handler.connection.recv(1) == b"":
                raise BrokenPipeError
        except TimeoutError:
            continue
    handler.connection.settimeout(WAIT_S)


def _framed(wire: str, event: dict[str, Any] | str) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['type']}\n" if wire == "anthropic" else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode(errors="surrogatepass")


def events_of(wire: str, say: Say) -> list[dict[str, Any] | str]:
    """What an answer consists of, event by event."""
    return _openai_events(say) if wire == "openai" else _anthropic_events(say)


def _openai_events(say: Say) -> list[dict[str, Any] | str]:
    counted = _openai_usage(say.usage)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        made: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_777_000_000,
            "model": say.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        return made | ({"usage": counted} if say.repeat_usage else {})

    events: list[dict[str, Any] | str] = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"reasoning_content": thought}) for thought in say.thoughts]
    events += [chunk({"content": piece}) for piece in say.text]
    for index, call in enumerate(say.calls):
        events += [chunk({"tool_calls": [part]}) for part in _openai_call(index, call, say)]
    if say.end == "error":
        return [*events, {"error": _error("openai", say.error)[1]["error"]}]
    if say.end == "drop":
        return events
    if say.ended_by is not None:
        events.append(chunk({}, say.ended_by))
    if counted and not say.repeat_usage and say.end == "whole":
        events.append({**chunk({}), "choices": [], "usage": counted})
    return [*events, "[DONE]"]


def _openai_call(index: int, call: Calls, say: Say) -> list[dict[str, Any]]:
    head: dict[str, Any] = {"index": index, "type": "function"}
    if call.id is not None:
        head["id"] = call.id or f"call_{index}"
    head["function"] = {"name": call.name, "arguments": ""}
    return [
        head,
        *({"index": index, "function": {"arguments": each}} for each in _halves(call, say, index)),
    ]


def _halves(call: Calls, say: Say, index: int) -> list[str]:
    middle = len(call.arguments) // 2
    is_cut = say.end != "whole" and index == len(say.calls) - 1
    return [call.arguments[:middle], *([] if is_cut else [call.arguments[middle:]])]


def _openai_usage(counted: Counted | None) -> dict[str, Any] | None:
    if counted is None:
        return None
    return {
        "prompt_tokens": counted.input,
        "completion_tokens": counted.output,
        "total_tokens": counted.input + counted.output,
        "prompt_tokens_details": {"cached_tokens": counted.cached},
        "completion_tokens_details": {"reasoning_tokens": counted.reasoning},
    }


STOPS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


def _anthropic_events(say: Say) -> list[dict[str, Any] | str]:
    counted = say.usage or Counted(0, 0)
    start: dict[str, Any] = {
        "input_tokens": counted.input - counted.cached - counted.written,
        "cache_read_input_tokens": counted.cached,
        "cache_creation_input_tokens": counted.written,
        "output_tokens": min(1, counted.output),
    }
    events: list[dict[str, Any] | str] = [
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "content": [],
                "model": say.model,
                "stop_reason": None,
                "stop_sequence": None,
                "usage": start,
            },
        },
        {"type": "ping"},
    ]
    for index, (block, deltas, is_cut) in enumerate(_blocks(say)):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        if not is_cut:
            events.append({"type": "content_block_stop", "index": index})
    if say.end == "error":
        return [*events, {"type": "error", "error": _error("anthropic", say.error)[1]["error"]}]
    if say.ended_by is None:
        return events
    end = {**start, "output_tokens": counted.output}
    told = {"stop_reason": STOPS[say.ended_by], "stop_sequence": None}
    for _ in range(3 if say.repeat_usage else 1):
        events.append({"type": "message_delta", "delta": told, "usage": end})
    return [*events, {"type": "message_stop"}]


def _blocks(say: Say) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], bool]]:
    if say.thoughts:
        deltas = [{"type": "thinking_delta", "thinking": thought} for thought in say.thoughts]
        deltas.append({"type": "signature_delta", "signature": "signed-by-strict"})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas, False
    if say.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in say.text]
        yield {"type": "text", "text": ""}, deltas, False
    for index, call in enumerate(say.calls):
        pieces = _halves(call, say, index)
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        block = {"type": "tool_use", "id": call.id or f"toolu_{index}", "name": call.name}
        is_cut = say.end != "whole" and index == len(say.calls) - 1
        yield {**block, "input": {}}, deltas, is_cut


_OPENAI_ERRORS: dict[str, tuple[int, str, str | None]] = {
    "rate_limited": (429, "rate_limit_error", "rate_limit_exceeded"),
    "overloaded": (503, "service_unavailable_error", "server_is_overloaded"),
    "server": (500, "server_error", "server_error"),
    "overflow": (400, "invalid_request_error", "context_length_exceeded"),
    "authentication": (401, "invalid_request_error", "invalid_api_key"),
    "not_found": (404, "invalid_request_error", "model_not_found"),
    "quota": (429, "insufficient_quota", "insufficient_quota"),
    "filter": (400, "invalid_request_error", "content_filter"),
    "rejected": (400, "invalid_request_error", None),
    "timeout": (408, "request_timeout", None),
}
_ANTHROPIC_ERRORS: dict[str, tuple[int, str, str]] = {
    "rate_limited": (429, "rate_limit_error", "slow down"),
    "overloaded": (529, "overloaded_error", "overloaded"),
    "server": (500, "api_error", "internal"),
    "overflow": (400, "invalid_request_error", "prompt is too long: 200001 tokens"),
    "authentication": (401, "authentication_error", "invalid x-api-key"),
    "not_found": (404, "not_found_error", "model: strict"),
    "quota": (400, "invalid_request_error", "Your credit balance is too low"),
    "rejected": (400, "invalid_request_error", "no"),
    "timeout": (408, "timeout_error", "timeout"),
}


def _error(wire: str, kind: str, message: str = "") -> tuple[int, dict[str, Any]]:
    if wire == "openai":
        status, type_, code = _OPENAI_ERRORS[kind]
        text = f"{message or kind}: {LEAK}"
        return status, {"error": {"message": text, "type": type_, "code": code, "param": None}}
    status, type_, said = _ANTHROPIC_ERRORS[kind]
    text = f"{message or said}: {LEAK}"
    return status, {"type": "error", "error": {"type": type_, "message": text}}
