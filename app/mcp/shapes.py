"""Requests of the revision 2026-07-28 that differ only in what the SDK passes on without a look.

The SDK checks headers and envelope of each request and frames each result, with models that cost
more than most calls. Of two requests of one shape it takes both or neither, and frames their
results alike: so it answers the first of a shape, and its frame stands around all that follow.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from app.kernel import json
from app.kernel.asgi.wire import Scope
from app.mcp.message import APPROVAL_META, CALL, KEY_META, LIST, Posted

READ = frozenset({b"host", b"origin", b"content-type", b"accept"})  # by the SDK, and `mcp-*`
PASSED_ON = {  # parts of a result that are not of its frame
    LIST: frozenset({"tools", "nextCursor"}),
    CALL: frozenset({"content", "structuredContent"}),
}
LONGEST, KNOWN = 8_192, 1_024  # bytes of a shape, shapes

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_MESSAGE = {"jsonrpc", "id", "method", "params"}
_NAME, _OURS = b"mcp-name", b"mcp-"


@dataclass(frozen=True, slots=True)
class Frame:
    """What the SDK puts around a result.

    Attributes:
        members: of the result, encoded, in their order; None for what differs each time.
        shows_forms: whether clients of this shape can ask their user a question.
    """

    members: Mapping[str, bytes | None]
    shows_forms: bool

    def around(self, id: str | int, own: Mapping[str, bytes]) -> bytes:
        """The answer to the request `id`; `own` are the members of the result that differ."""
        known = {
            name: own.get(name) if said is None else said for name, said in self.members.items()
        }
        pieces = [b'{"jsonrpc":"2.0","id":', json.dumps(id), b',"result":']
        between = b"{"
        for name, said in {**known, **own}.items():
            if said is not None:
                pieces += between, json.dumps(name), b":", said
                between = b","
        pieces.append(b"}}")
        return b"".join(pieces)  # once: a page is long


class Frames:
    """The frames of the shapes that came last."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Frame] = OrderedDict()
        self._lock = Lock()

    def of(self, shape: bytes | None) -> Frame | None:
        """The frame of a shape, if one of it was answered."""
        if shape is None or shape not in self._known:
            return None
        with self._lock:
            self._known.move_to_end(shape)
            return self._known[shape]

    def learn(
        self, shape: bytes, method: str, result: Mapping[str, Any], *, shows_forms: bool
    ) -> None:
        """Keep the frame of a result of the SDK; only one that is whole and good has one."""
        if result.get("isError") or result.get("resultType") != "complete":
            return
        members = {
            name: None if name in PASSED_ON[method] else json.dumps(part)
            for name, part in result.items()
        }
        with self._lock:
            self._known[shape] = Frame(members, shows_forms)
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)

    def forget(self) -> None:
        """Ask the SDK again."""
        with self._lock:
            self._known.clear()


frames = Frames()


def of(scope: Scope, posted: Posted) -> bytes | None:
    """The shape of a request; None where it has none, and the SDK has to look.

    Everything that the SDK reads is in it, but for what it passes on: the place in a list, the name
    of a tool that stands in the header as well, arguments, an idempotency key, a progress token.
    """
    sent, params = posted.sent, posted.sent.get("params")
    if sent.keys() != _MESSAGE or type(params) is not dict:
        return None
    meta = params.get("_meta")
    if type(meta) is not dict or not _is_plain(posted.method, params, meta):
        return None
    headers = []
    for name, value in scope["headers"]:
        if name == _NAME:
            if value.decode("latin-1") != params.get("name"):
                return None
            headers.append((_NAME.decode(), ""))
        elif name in READ or name.startswith(_OURS):
            headers.append((name.decode("latin-1"), value.decode("latin-1")))
    told = {name: part for name, part in meta.items() if not _is_passed_on(name, part)}
    shape = json.dumps([posted.method, told, headers])
    return shape if len(shape) <= LONGEST else None


def _is_plain(method: str, params: Mapping[str, Any], meta: Mapping[str, Any]) -> bool:
    if method == LIST:
        return params.keys() <= {"_meta", "cursor"} and type(params.get("cursor", "")) is str
    return (
        method == CALL
        and params.keys() <= {"_meta", "name", "arguments"}
        and type(params.get("arguments", {})) is dict
        and _is_word(params.get("name"))
        and meta.get(APPROVAL_META) is None
    )


def _is_word(name: Any) -> bool:
    """Whether a name reads the same in a header."""
    return type(name) is str and name.isascii() and name.replace(".", "_").isidentifier()


def _is_passed_on(name: str, part: Any) -> bool:
    if name == KEY_META:
        return part is None or (type(part) is str and _KEY.fullmatch(part) is not None)
    return name == "progressToken" and type(part) in {str, int}
