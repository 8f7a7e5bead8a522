"""Expressions that need no interpreter come to the same without it."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from app.commands import expressions
from app.commands.expressions import Compiled, Scope

TEXTS = (
    "record.state in ['draft', 'rejected']",
    "record.state in ['draft']",
    "'draft' in ['draft', '']",
    "record.note in ['', 'a,b', ' in ', '北京']",
    "record.owner_id == user.id",
    "record.owner_id != user.id",
    "record.org_id == user.org",
    "record.note == before.note",
    "record.note != input.note",
    "input.note == ''",
    "'北京' == record.note",
    "result.note == record.note",
    "record.total == before.total",
    "record.missing == 'x'",
    "record.nothing == 'x'",
    "record.nothing in ['x']",
    "record.note == record.total",
)


@dataclass
class Around:
    """What a scope reads of a call."""

    record: Any
    before: dict[str, Any]
    values: dict[str, Any]
    result: dict[str, Any]
    user: Any = field(default_factory=lambda: SimpleNamespace(id="u1", org_id="o1"))


def rows() -> list[Around]:
    """Calls on records of some kinds."""
    whole = {"owner_id": "u1", "org_id": "o1", "total": 7, "nothing": None}
    return [
        Around(
            SimpleNamespace(**whole, state=state, note=note),
            {"note": "北京", "total": 7},
            {"note": note},
            {"note": "a,b"},
        )
        for state in ("draft", "rejected", "paid")
        for note in ("", "北京", "a,b", " in ")
    ]


@pytest.mark.requirement("CMD-1")
@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_compared_as_the_interpreter_compares_them(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    around: list[Any] = rows()
    quickly = [Scope(each).holds(text) for each in around]
    monkeypatch.setattr(Scope, "_compared", lambda *_: None)

    assert quickly == [Scope(each).holds(text) for each in around]


@pytest.mark.requirement("CMD-1")
@pytest.mark.parametrize(
    "text",
    [
        r"record.note == 'a\'b'",
        r"record.note in ['a\\', 'b']",
        "record.note == 'a' || record.note == 'b'",
        "record.note in [record.state]",
        "record.note in []",
        "user.roles == 'x'",
        "record.note == 7",
        "size(record.note) == 7",
    ],
)
def test_what_says_more_is_left_to_the_interpreter(text: str) -> None:
    compiled: Compiled = expressions.compiled(text)

    assert compiled.compared is None
    assert compiled.among is None
