"""Marks of what others named: what stands for it in a page, in no way of their choosing (UI-30)."""

import hashlib


def of_presence(aid: str) -> str:
    """What marks every dot of an AID on a page."""
    return hashlib.sha256(b"presence" + aid.encode()).hexdigest()[:16]
