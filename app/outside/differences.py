"""What differs between a tool as it was enabled and as it is offered now, line by line."""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

LINES = 500  # of one text that are compared, from the first that differs
AROUND = 3  # lines that are the same, around those that are not


@dataclass(frozen=True, slots=True)
class Line:
    """One line: gone, new, or the same; `gap`: lines were left out here."""

    mark: Literal["gone", "new", "same", "gap"]
    text: str


def between(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> list[Line]:
    """The lines that differ, with a few around them; none where both say the same.

    What comes after very many lines is left out, with a gap in its place.
    """
    old, new = _lines(before) if before is not None else [], _lines(now)
    same = _same(old, new)
    old, new = old[same:], new[same:]
    found: list[Line] = []
    for line in difflib.unified_diff(old[:LINES], new[:LINES], lineterm="", n=AROUND):
        match line[:2]:
            case "--" | "++":
                continue
            case "@@":
                found += [Line("gap", "")] if found else []
            case _:
                found.append(Line(_MARKS[line[0]], line[1:]))
    return [*found, Line("gap", "")] if max(len(old), len(new)) > LINES else found


def written(content: Mapping[str, Any]) -> str:
    """A schema as people read one."""
    return json.dumps(content, indent=2, ensure_ascii=False)


_MARKS: Mapping[str, Literal["gone", "new", "same"]] = {"-": "gone", "+": "new", " ": "same"}


def _lines(content: Mapping[str, Any]) -> list[str]:
    said = str(content.get("description", "")).splitlines()
    schemas = {name: content[name] for name in ("input", "output") if content.get(name)}
    return [*said, *written(schemas).splitlines()]


def _same(old: list[str], new: list[str]) -> int:
    """How many lines at the beginning are the same, but for those that are shown."""
    pairs = enumerate(zip(old, new, strict=False))
    first = next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))
    return max(first - AROUND, 0)
