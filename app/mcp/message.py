"""The one JSON-RPC message of a request, read strictly before any library does (SEC-48)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect

from app.kernel import json
from app.kernel.asgi.wire import Message, Receive

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
LIST, CALL = "tools/list", "tools/call"
KEY_META, APPROVAL_META = "assent/idempotencyKey", "assent/approval"
UNFIT = "The body is no JSON-RPC message"


class Unreadable(Exception):
    """The body is no message; `code` and `says` are those of JSON-RPC."""

    def __init__(self, code: int, says: str, rule: str = "") -> None:
        super().__init__(says)
        self.code, self.says, self.rule = code, says, rule

    def data(self) -> bytes:
        """What the client is told."""
        error: dict[str, Any] = {"code": self.code, "message": self.says}
        if self.rule:
            error["data"] = {"reason": json.BadJSON.reason, "detail": self.rule}
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": error})


@dataclass(frozen=True, slots=True)
class Posted:
    """A body as it came, and what it asks for."""

    raw: bytes
    sent: Mapping[str, Any]

    @property
    def method(self) -> str:
        """The method; empty for an answer."""
        method = self.sent.get("method")
        return method if isinstance(method, str) else ""

    @property
    def tool(self) -> str:
        """The tool that is called, if one is."""
        name = self.params.get("name")
        return name if isinstance(name, str) else ""

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters; empty where there are none."""
        params = self.sent.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def meta(self) -> Mapping[str, Any]:
        """What it says besides its parameters; empty where it says nothing."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


async def read(receive: Receive) -> Posted:
    """The message that arrives.

    Raises:
        Unreadable: it is not JSON we accept, more than one message, or none.
        BodyTooLarge, BodyTooSlow: as the layer that counts says.
    """
    raw = bytearray()
    more = True
    while more:
        piece = await receive()
        if piece["type"] == "http.disconnect":
            raise ClientDisconnect
        raw += piece.get("body", b"")
        more = piece.get("more_body", False)
    try:
        sent = json.loads(bytes(raw))
    except json.BadJSON as refused:
        raise Unreadable(PARSE_ERROR, "Parse error", refused.rule) from None
    if not isinstance(sent, dict):
        raise Unreadable(INVALID_REQUEST, "The body is one JSON-RPC message, not several")
    if not _is_message(sent):
        raise Unreadable(INVALID_REQUEST, UNFIT)  # the SDK would answer with its models' words
    return Posted(bytes(raw), sent)


def again(posted: Posted, receive: Receive) -> Receive:
    """A `receive` that hands the body over as a whole, then goes on with what comes."""
    left: list[Message] = [{"type": "http.request", "body": posted.raw, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def _is_message(sent: Mapping[str, Any]) -> bool:
    """Whether it is a request, a notification or an answer of JSON-RPC 2.0."""
    if sent.get("jsonrpc") != "2.0":
        return False
    if "method" in sent:
        params = sent.get("params")
        has_parts = isinstance(sent["method"], str) and isinstance(params, dict | None)
        return has_parts and ("id" not in sent or _is_id(sent["id"]))
    if "result" in sent:
        return isinstance(sent["result"], dict) and _is_id(sent.get("id"))
    error = sent.get("error")
    return (
        isinstance(error, dict)
        and type(error.get("code")) is int
        and isinstance(error.get("message"), str)
        and "id" in sent
        and (sent["id"] is None or _is_id(sent["id"]))
    )


def _is_id(id: Any) -> bool:
    return isinstance(id, str) or type(id) is int
