"""What a turn of the planner is: sentences of thought, and calls or nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.runs.models.planner.reading import AWAIT, SEND, TIMER, Purpose


@dataclass(frozen=True, slots=True)
class Call:
    """A call to be made, and what for."""

    tool: str
    arguments: Mapping[str, Any]
    purpose: Purpose


@dataclass(slots=True)
class Move:
    """One turn; without calls it is silence, or `text` where no tool may be called."""

    calls: list[Call] = field(default_factory=list)
    text: str = ""


class LookFirst(Exception):
    """Something has to be read before the planner can go on."""

    def __init__(self, *calls: Call) -> None:
        super().__init__()
        self.calls = list(calls)


class Decided(Exception):
    """The turn is settled, from wherever that became clear."""

    def __init__(self, move: Move) -> None:
        super().__init__()
        self.move = move


def say(text: str) -> Move:
    """Tell it, and be done."""
    return Move([Call(SEND, {"text": text, "format": "markdown"}, Purpose.SAY)])


def ask(question: str, expects: Mapping[str, Any], choices: list[str] | None = None) -> Move:
    """Ask, and wait for the answer."""
    arguments: dict[str, Any] = {"question": question, "expects": dict(expects)}
    if choices:
        arguments["choices"] = choices
    return Move([Call(AWAIT, arguments, Purpose.ASK)])


def pause(seconds: int) -> Move:
    """Wait for a moment."""
    return Move([Call(TIMER, {"seconds": seconds}, Purpose.PAUSE)])


SILENCE = Move()
