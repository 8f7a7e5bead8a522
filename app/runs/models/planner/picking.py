"""Which of the offered an answer means: by its place, by its name, or by a part of it."""

import re
from collections.abc import Sequence

_NUMBERED = re.compile(
    r"\s*(?:no\.?|number|#|第|option)?\s*(\d{1,2}|[一二三四])\s*(?:个|张|项|号|条|种)?\s*[.。)]?\s*",
    re.IGNORECASE,
)
_ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}
_HAN = "一二三四"


def picked(text: str, names: Sequence[str]) -> int | None:
    """Which of the offered an answer means: by its place, or by its name."""
    folded = text.strip().lower()
    if (numbered := _NUMBERED.fullmatch(folded)) is not None:
        said = numbered[1]
        place = _HAN.index(said) if said in _HAN else int(said) - 1
        if 0 <= place < len(names):
            return place
    exact = [place for place, name in enumerate(names) if name and name.lower() == folded]
    within = [place for place, name in enumerate(names) if name and name.lower() in folded]
    part = [place for place, name in enumerate(names) if len(folded) > 1 and folded in name.lower()]
    for found in (exact, within, part):
        if len(found) == 1:
            return found[0]
    for word, place in _ORDINALS.items():
        if re.search(rf"\b(?:the )?{word}\b", folded) and names:
            return place % len(names) if place < len(names) else None
    return None
