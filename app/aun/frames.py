"""Frames of JSON-RPC: read strictly, written anew, never relayed as text (aun.md, 3).

One unsafe number relayed to a receiver would end its connection for ever, so it ends here.
"""

import json as lenient
import re
from dataclasses import dataclass
from typing import Any

from app.aun.errors import AunError, BadParams, BadRequestFrame
from app.kernel import json
from app.kernel.json import MAX_NODES_AUN, BadJSON

LONGEST_FRAME = 4 << 20
LONGEST_ID = 200

_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?\d{1,15})')

Id = str | int | None


class NotJson(AunError):
    """The frame is no JSON at all."""

    code = -32700
    reason = "not_json"


@dataclass(frozen=True, slots=True)
class Request:
    """One call. `id` is None for a notification, which is not answered."""

    id: Id
    method: str
    params: dict[str, Any]


class Refusal(Exception):
    """A frame that is no request; `id` is the request's as far as one can be read from it."""

    def __init__(self, request_id: Id, error: AunError) -> None:
        super().__init__(error.text)
        self.id, self.error = request_id, error


def read(raw: bytes) -> Request:
    """The request of a frame.

    Raises:
        Refusal: it is none, or holds what some receiver could not bear.
    """
    return request_of(value_of(raw))


def value_of(raw: bytes) -> Any:
    """The JSON value of a frame.

    Raises:
        Refusal: -32700 for what is no JSON, -32602 with the request's id for what is unsafe.
    """
    try:
        return json.loads(raw, max_bytes=LONGEST_FRAME, max_nodes=MAX_NODES_AUN)
    except BadJSON as fault:
        is_json, found = _id_in(raw)
        error = BadParams(f"unsafe JSON: {fault.rule}") if is_json else NotJson("not JSON")
        raise Refusal(found, error) from None


def request_of(value: Any) -> Request:
    """The request that a JSON value is.

    Raises:
        Refusal: -32600.
    """
    if not isinstance(value, dict):
        raise Refusal(None, BadRequestFrame("a request is an object"))
    request_id = value.get("id")
    if not _is_id(request_id):
        raise Refusal(None, BadRequestFrame("id is a string or an integer"))
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict):
        raise Refusal(request_id, BadRequestFrame("method is a string and params an object"))
    return Request(request_id, method, params)


def result(request_id: Id, value: Any) -> bytes:
    """The frame that answers a request."""
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "result": value})


def failure(request_id: Id, error: AunError, trace_id: str) -> bytes:
    """The frame that refuses a request."""
    data = {"trace_id": trace_id, "reason": error.reason, **error.data}
    told = {"code": error.code, "message": error.text, "data": data}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": told})


def event(name: str, params: dict[str, Any]) -> bytes:
    """The frame that tells of something."""
    return json.dumps({"jsonrpc": "2.0", "method": f"event/{name}", "params": params})


def challenge(nonce: str, server_time: float) -> bytes:
    """The very first frame of a socket."""
    params = {
        "nonce": nonce,
        "server": "assent",
        "protocol": {"min": "1.0", "max": "1.0"},
        "auth_methods": ["kite_token"],
        "server_time": server_time,
    }
    return json.dumps({"jsonrpc": "2.0", "method": "challenge", "params": params})


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_ID
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _id_in(raw: bytes) -> tuple[bool, Id]:
    """Whether a refused frame is JSON for lenient readers, and the id of its request."""
    try:
        value = lenient.loads(raw)
    except RecursionError:  # JSON so far; the id is found as text
        found = _ID.search(raw)
        return True, _fit(found[1]) if found else None
    except ValueError:
        return False, None
    found_id = value.get("id") if isinstance(value, dict) else None
    return True, found_id if _is_fit(found_id) else None


def _fit(text: bytes) -> Id:
    """The id that a piece of a refused frame is, None where an answer could not carry it."""
    try:
        found = lenient.loads(text)
    except ValueError:
        return None
    return found if _is_fit(found) else None


def _is_fit(value: Any) -> bool:
    if not _is_id(value) or (isinstance(value, int) and abs(value) >= 1 << 53):
        return False
    return not isinstance(value, str) or value.isprintable()
