"""The types of ASGI, and small ways to read a scope and to answer."""

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]


def values(scope: Scope, name: bytes) -> Iterator[str]:
    """Each value of the header `name`, which is given in lower case."""
    return (value.decode("latin-1") for key, value in scope["headers"] if key == name)


def value(scope: Scope, name: bytes) -> str:
    """The first value of the header `name`, or an empty text."""
    return next(values(scope, name), "")


def is_under(path: str, prefix: str) -> bool:
    """Whether `path` is `prefix` or below it; `/v1` is not above `/v10`."""
    return path == prefix or path.startswith(prefix.rstrip("/") + "/")


async def answer(
    send: Send, status: int, headers: dict[str, str] | None = None, body: bytes = b""
) -> None:
    """Send a whole response."""
    lines = {"content-length": str(len(body)), **(headers or {})}
    encoded = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in lines.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
