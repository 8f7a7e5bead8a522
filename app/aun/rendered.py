"""The text of a message as HTML, made once, before it is stored: pages read it as it is."""

import asyncio
from typing import Any

from app.aun import markdown
from app.aun.reading import text_of

LONGEST = 50_000  # characters; pages show what is longer as plain text
PLAIN = "plain"  # the `format` of text without markup (aun.md, 7.3)
SHORT = 500  # characters that are rendered faster than a thread is woken


async def html_of(payload: dict[str, Any] | None) -> str | None:
    """What a readable payload says; None for no text, too much of it, or text to show as it is."""
    text = text_of(payload) if payload and payload.get("format") != PLAIN else ""
    if not text or len(text) > LONGEST:
        return None
    if len(text) <= SHORT:
        return markdown.html_of(text)
    return await asyncio.to_thread(markdown.html_of, text)
