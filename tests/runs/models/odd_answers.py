"""Answers of a model server that no description of its wire allows, by what is odd about them."""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.strict_provider import EVENTS, Calls, Raw, Say, events_of

Event = dict[str, Any] | str
HUGE = 10**30
DEEP = "[" * 50_000
NUMBERS: Mapping[str, Any] = {
    "huge": HUGE,
    "beyond a column": 2**31,
    "negative": -5,
    "a fraction": 1.5,
    "1e400": float("inf"),
    "not a number": float("nan"),
    "a word": "many",
    "digits": "12",
    "a list": [7],
    "an object": {"n": 7},
    "true": True,
    "null": None,
}
WORDS: Mapping[str, Any] = {
    "null": None,
    "a number": 7,
    "a list": ["a"],
    "an object": {"a": 1},
    "false": False,
    "a NUL": "a\x00b",
    "half a character": "a\ud800b",
    "control characters": "\x1b[2J\r\n\x07",
    "empty": "",
    "very long": "x" * 200_000,
}


def of(wire: str, about: str) -> dict[str, Raw]:
    """Every odd answer about its bytes, its numbers, its words or its shape, by its name."""
    made = {"bytes": _bytes, "counted": _counted, "worded": _worded, "shaped": _shaped}
    return made[about](wire)


def _shaped(wire: str) -> dict[str, Raw]:
    return _openai() if wire == "openai" else _anthropic()


def _said(wire: str, say: Say | None = None) -> list[Event]:
    return events_of(wire, say or Say(text=["OK."]))


def _changed(wire: str, say: Say, change: Callable[[dict[str, Any]], None]) -> Raw:
    events = json.loads(json.dumps(_said(wire, say)))
    for event in events:
        if isinstance(event, dict):
            change(event)
    return Raw.of(wire, events)


def _holder(event: Any, path: Sequence[str | int]) -> dict[str, Any] | None:
    """The object in which the last step of a path stands; None: not in this event."""
    found = event
    for step in path[:-1]:
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            return None
    return found if isinstance(found, dict) and path[-1] in found else None


def _set(wire: str, say: Say, *path: str | int, value: Any) -> Raw:
    """The answer with one field, wherever it stands, set to a value."""

    def change(event: dict[str, Any]) -> None:
        *before, last = path
        if isinstance(last, int):
            if (found := _holder(event, before)) and found[str(before[-1])]:
                found[str(before[-1])][last] = value
        elif (found := _holder(event, path)) is not None:
            found[last] = value

    return _changed(wire, say, change)


def _without(wire: str, say: Say, *path: str | int) -> Raw:
    """The answer without a field."""

    def change(event: dict[str, Any]) -> None:
        if (found := _holder(event, path)) is not None:
            del found[str(path[-1])]

    return _changed(wire, say, change)


def _bytes(wire: str) -> dict[str, Raw]:
    """What is odd before anybody looks into an event."""
    first, *rest = Raw.of(wire, _said(wire)).pieces
    html = b"<!doctype html><title>Sign in</title><h1>Captive portal</h1>"
    plain = {"content-type": "text/plain"}
    packed = gzip.compress(b"data: " + b"0" * 50_000_000)
    events = {"content-type": EVENTS}
    line = b"data: " + b" " * 1_000_000
    return {
        "no events": Raw(),
        "204": Raw(status=204),
        "205": Raw(status=205),
        "299": Raw(pieces=[first, *rest], status=299),
        "300": Raw(status=300),
        "304": Raw(status=304),
        "600": Raw(pieces=[html], status=600),
        "html": Raw(pieces=[html], headers={"content-type": "text/html"}),
        "html as events": Raw(pieces=[html]),
        "json that is no stream": Raw(
            pieces=[b'{"choices":[]}'], headers={"content-type": "application/json"}
        ),
        "plain text": Raw(pieces=[b"OK."], headers=plain),
        "no content type": Raw(pieces=[first, *rest], headers={}),
        "a redirect to the inside": Raw(
            status=307, headers={"location": "http://127.0.0.1:22/latest/meta-data"}
        ),
        "a redirect to itself": Raw(status=301, headers={"location": "/v1/chat/completions"}),
        "gzip": Raw(pieces=[packed], headers=events | {"content-encoding": "gzip"}),
        "an unknown encoding": Raw(pieces=[first], headers=events | {"content-encoding": "x, y"}),
        "gzip that is not said": Raw(pieces=[packed]),
        "an odd charset": Raw(
            pieces=[first, *rest], headers={"content-type": "text/event-stream; charset=zip"}
        ),
        "odd headers": Raw(
            pieces=[first, *rest],
            headers=events | {"retry-after": "soon\t", "x-request-id": "\xe9" * 9, "date": "x"},
        ),
        "a wait without end": Raw(status=429, headers={"retry-after": "1e999"}),
        "a negative wait": Raw(status=429, headers={"retry-after": "-7"}),
        "a wait that is no number": Raw(status=503, headers={"retry-after": "nan"}),
        "an error of html": Raw(pieces=[html], status=502, headers={"content-type": "text/html"}),
        "an error that is odd": Raw(
            pieces=[b'{"error":[{"message":{"a":1},"type":7,"code":[]}]}'],
            status=400,
            headers={"content-type": "application/json"},
        ),
        "an error with halves": Raw(
            pieces=[b'{"error":{"message":"a\\ud800\\u0000","type":"\\ud800","code":"\\ud800"}}'],
            status=400,
            headers={"content-type": "application/json"},
        ),
        "an error without end": Raw(
            pieces=[b"x" * 1_000_000], status=500, headers=plain, is_endless=True
        ),
        "broken utf-8": Raw(pieces=[first, b"data: \xff\xfe\xc3\x28\n\n", *rest]),
        "broken utf-8 in json": Raw(
            pieces=[first, b'data: {"choices":[],"type":"ping","x":"\xff"}\n\n', *rest]
        ),
        "NUL bytes": Raw(pieces=[b"\x00" * 1_000, first, b"\x00\n\n", *rest]),
        "broken json": Raw(pieces=[first, b'data: {"choices":[\n\n', *rest]),
        "deep json": Raw(pieces=[first, f"data: {DEEP}\n\n".encode(), *rest]),
        "a number of many digits": Raw(pieces=[first, b"data: " + b"9" * 10_000 + b"\n\n", *rest]),
        "an event that is a list": Raw(pieces=[first, b"data: [1]\n\n", *rest]),
        "an event that is null": Raw(pieces=[first, b"data: null\n\n", *rest]),
        "an event that is a word": Raw(pieces=[first, b'data: "x"\n\n', *rest]),
        "an empty event": Raw(pieces=[first, b"data:\n\n", b"data: {}\n\n", *rest]),
        "an event of no known name": Raw(
            pieces=[first, b'event: x\ndata: {"type":"x","choices":[]}\n\n', *rest]
        ),
        "an error event that is odd": Raw(
            pieces=[first, b'event: error\ndata: {"type":"error","error":[{"a":1}]}\n\n']
        ),
        "an error event of one word": Raw(
            pieces=[first, b'event: error\ndata: {"type":"error","error":"\\ud800"}\n\n']
        ),
        "a line without end": Raw(pieces=[first, line], is_endless=True),
        "a line of 50 MB": Raw(pieces=[first, *[line] * 50, b"\n\n", *rest]),
        "an event without end": Raw(pieces=[first, b"data: x\n" * 100_000], is_endless=True),
        "comments without end": Raw(pieces=[first, b": ping\n\n" * 100_000], is_endless=True),
        "a stream without end": Raw(pieces=[first, b"".join(rest[:-2]) * 1_000], is_endless=True),
        "bytes without end after the end": Raw(
            pieces=[first, *rest, b": ping\n\n" * 100_000], is_endless=True
        ),
        "the end alone": Raw(pieces=[rest[-1]]),
        "everything twice": Raw(pieces=[first, *rest[:-1], first, *rest]),
        "everything backwards": Raw(pieces=[*rest[::-1][1:], first, rest[-1]]),
    }


def _counted(wire: str) -> dict[str, Raw]:
    say, odd = Say(text=["OK."]), {}
    fields = (
        [("usage", "prompt_tokens"), ("usage", "completion_tokens"), ("usage", "total_tokens"),
         ("usage", "prompt_tokens_details", "cached_tokens"),
         ("usage", "completion_tokens_details", "reasoning_tokens"),
         ("usage", "prompt_tokens_details"), ("usage",), ("created",)]
        if wire == "openai"
        else [("message", "usage", "input_tokens"), ("usage", "output_tokens"),
              ("message", "usage", "cache_read_input_tokens"), ("message", "usage"), ("usage",)]
    )  # fmt: skip
    for path in fields:
        for name, value in NUMBERS.items():
            odd[f"{'.'.join(path)} is {name}"] = _set(wire, say, *path, value=value)
    return odd


def _worded(wire: str) -> dict[str, Raw]:
    say = Say(thoughts=["Hm."], text=["OK."], calls=[Calls("send_message", '{"text":"x"}')])
    delta: tuple[str | int, ...] = ("choices", 0, "delta")
    call: tuple[str | int, ...] = (*delta, "tool_calls", 0)
    fields: list[tuple[str | int, ...]] = (
        [("id",), ("object",), ("model",), ("service_tier",), ("choices", 0, "finish_reason"),
         (*delta, "content"), (*delta, "reasoning_content"), (*delta, "role"),
         (*delta, "tool_calls"), (*call, "id"), (*call, "index"), (*call, "type"),
         (*call, "function"), (*call, "function", "name"), (*call, "function", "arguments"),
         delta, ("choices", 0), ("choices",), ("choices", 0, "index")]
        if wire == "openai"
        else [("message", "id"), ("message", "model"), ("message", "content"),
              ("message", "role"), ("message",), ("index",), ("content_block",),
              ("content_block", "type"), ("content_block", "text"), ("content_block", "id"),
              ("content_block", "name"), ("content_block", "input"), ("delta",),
              ("delta", "type"), ("delta", "text"), ("delta", "thinking"),
              ("delta", "signature"), ("delta", "partial_json"), ("delta", "stop_reason"),
              ("type",)]
    )  # fmt: skip
    return {
        f"{'.'.join(map(str, path))} is {name}": _set(wire, say, *path, value=value)
        for path in fields
        for name, value in WORDS.items()
    }


def _openai() -> dict[str, Raw]:
    say = Say(text=["OK."], calls=[Calls("send_message", '{"text":"x"}')])

    call = ("choices", 0, "delta", "tool_calls", 0)
    return {
        "no choices": _without("openai", say, "choices"),
        "empty choices": _set("openai", say, "choices", value=[]),
        "no delta": _without("openai", say, "choices", 0, "delta"),
        "no model": _without("openai", say, "model"),
        "no id": _without("openai", say, "id"),
        "a call without id": _without("openai", say, *call, "id"),
        "a call without index": _without("openai", say, *call, "index"),
        "a call without name": _without("openai", say, *call, "function", "name"),
        "a call without function": _without("openai", say, *call, "function"),
        "a refusal that is a list": _set(
            "openai", say, "choices", 0, "delta", value={"refusal": [1]}
        ),
        "parts": _set(
            "openai", say, "choices", 0, "delta", "content", value=[{"type": "text", "text": 7}, 3]
        ),
        "annotations": _set(
            "openai", say, "choices", 0, "delta",
            value={"content": "x", "annotations": [{"a": "\ud800"}, 3]},
        ),
        "logprobs": _set(
            "openai", say, "choices", 0,
            value={"index": 0, "delta": {"content": "x"}, "finish_reason": "stop",
                   "logprobs": {"content": [{"token": 7, "logprob": "x"}]}},
        ),
    }  # fmt: skip


def _anthropic() -> dict[str, Raw]:
    block: dict[str, Any] = {"type": "content_block_start", "index": 0}
    stop: dict[str, Any] = {"type": "content_block_stop", "index": 0}
    start, ping, *_ = _said("anthropic")
    *_, end, over = _said("anthropic")

    def blocks(*between: Event) -> Raw:
        return Raw.of("anthropic", [start, ping, *between, end, over])

    return {
        "no start": Raw.of("anthropic", [ping, end, over]),
        "two starts": Raw.of("anthropic", [start, start, end, over]),
        "a delta of no block": blocks(
            {"type": "content_block_delta", "index": 9,
             "delta": {"type": "text_delta", "text": "x"}}
        ),
        "json without a call": blocks(
            {**block, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0,
             "delta": {"type": "input_json_delta", "partial_json": "{"}},
            stop,
        ),
        "an unknown block": blocks({**block, "content_block": {"type": "hologram", "x": 1}}, stop),
        "a call without anything": blocks({**block, "content_block": {"type": "tool_use"}}, stop),
        "a tool of its own": blocks(
            {**block, "content_block": {"type": "server_tool_use", "id": 7, "name": "x",
                                        "input": 3}},
            stop,
        ),
        "results of its own": blocks(
            {**block, "content_block": {"type": "web_search_tool_result", "tool_use_id": "x",
                                        "content": 7}},
            stop,
        ),
        "redacted": blocks(
            {**block, "content_block": {"type": "redacted_thinking", "data": 7}}, stop
        ),
        "citations": blocks(
            {**block, "content_block": {"type": "text", "text": "x", "citations": [7]}},
            {"type": "content_block_delta", "index": 0,
             "delta": {"type": "citations_delta", "citation": {"type": "x", "a": "\ud800"}}},
            stop,
        ),
        "no usage at all": Raw.of(
            "anthropic",
            [start, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, over],
        ),
    }  # fmt: skip
