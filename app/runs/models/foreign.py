"""What a stranger's program sent, made such that every database, log and page can take it."""

import json
from typing import Any


def clean(text: str) -> str:
    """Text of a stranger as every database takes it: no NUL, no half characters."""
    if text.isascii() and "\x00" not in text:
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\x00", "\ufffd")


def text_of(said: Any) -> str:
    """The text that should stand here; of what is none, its JSON."""
    if said is None:
        return ""
    return clean(said if isinstance(said, str) else json.dumps(said, default=repr))
