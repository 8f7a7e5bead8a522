"""What takes back the newest command that changed something, of this run or of its lane."""

from collections.abc import Mapping
from typing import Any

from app.runs.models.planner.commands import Commands
from app.runs.models.planner.reading import Purpose, Scene


def last(scene: Scene, known: Commands) -> tuple[str, Mapping[str, Any]] | None:
    """The code and the input of that undo; None if the command has none."""
    for step in reversed(scene.all_steps):
        if step.purpose is Purpose.ACT and step.outcome == "done":
            code, _given = known.called(step.tool, step.arguments)
            if _writes(known, code):
                return _undo_in(step.result.get("undo"))
    for told in scene.ask.recent:
        if _writes(known, str(told.get("cmdCode", ""))):
            return _undo_in(told.get("undo"))
    return None


def _writes(known: Commands, code: str) -> bool:
    command = known.known.get(code)
    return command is None or command.definition.writes


def _undo_in(undo: Any) -> tuple[str, Mapping[str, Any]] | None:
    if not isinstance(undo, Mapping) or not isinstance(undo.get("cmdCode"), str):
        return None
    given = undo.get("input")
    return undo["cmdCode"], given if isinstance(given, Mapping) else {}
