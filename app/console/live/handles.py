"""The public name of a browser session: it says which session a page was drawn for, no more."""

import hashlib


def handle_of(session_id: str) -> str:
    """The handle; the cookie's secret, which rotates, is no part of it (§3.2)."""
    return hashlib.sha256(b"live" + session_id.encode()).hexdigest()[:16]
