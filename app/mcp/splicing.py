"""Puts encoded bytes into an answer in the place of a marker.

A list of tools is encoded once and sent often: the SDK makes the envelope around a marker, in JSON
or in an event of a stream, and the bytes never pass its models again (SEC-60).
"""

from app.kernel.asgi.wire import Message, Send
from app.mcp.entered import Entered

LENGTH = b"content-length"


def splicing(who: Entered, send: Send) -> Send:
    """A `send` that splices what `who` was given; the head waits for the first piece."""
    head: Message | None = None

    async def spliced(message: Message) -> None:
        nonlocal head
        if message["type"] == "http.response.start":
            if _has_length(message):
                head = message
            else:
                await send(message)
            return
        body = message.get("body", b"")
        if who.marker and (place := f'"{who.marker}"'.encode()) in body:
            body = body.replace(place, who.spliced)
        if head is not None:
            begun, head = head, None
            await send(_with_length(begun, len(body)) if who.marker else begun)
        await send({**message, "body": body})

    return spliced


def _has_length(message: Message) -> bool:
    return any(name.lower() == LENGTH for name, _ in message.get("headers", ()))


def _with_length(message: Message, length: int) -> Message:
    kept = [pair for pair in message["headers"] if pair[0].lower() != LENGTH]
    return {**message, "headers": [*kept, (LENGTH, str(length).encode())]}
