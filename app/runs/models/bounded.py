"""How much of an answer is read: a server that never ends fills neither memory nor time.

The libraries read lines and events of any length, and as many as come.
"""

from collections.abc import AsyncIterator

import httpx2

from app.kernel import http

EVENT, LINES = 4 << 20, 1_000  # bytes and lines between two empty ones
WHOLE, OF_A_TOKEN = 1 << 20, 1 << 10  # bytes; an event of one token has some hundred
ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")
LONGEST_END = max(map(len, ENDS))


def whole(output_limit: int) -> int:
    """Bytes of an answer of so many tokens: more than any that keeps to them."""
    return WHOLE + OF_A_TOKEN * output_limit


async def bound(response: httpx2.Response) -> None:
    """Give up on an answer of which one event is too long: one library copies it at each line."""
    if response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Events(response.stream)


class _Events(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, lines, before = 0, 0, b""
        async for chunk in self._inner:
            seen = before + chunk
            if ended := max(seen.rfind(end) + len(end) if end in seen else 0 for end in ENDS):
                size, lines, of_event = 0, 0, seen[ended:]
            else:
                of_event = chunk
            size += len(of_event)
            lines += of_event.count(b"\n") + of_event.count(b"\r")
            if size > EVENT or lines > LINES:
                raise http.Refused("size")
            before = seen[1 - LONGEST_END :]
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
