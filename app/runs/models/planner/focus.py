"""What "it" is: the record that was talked about last, from the calls and messages of the lane."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.runs.models.planner import records
from app.runs.models.planner.commands import Commands
from app.runs.models.planner.reading import READ, Purpose, Scene, mappings
from app.runs.models.planner.records import Found
from app.runs.models.planner.slots import codes
from app.runs.models.planner.slots.filling import Named
from app.runs.models.planner.slots.said import Said


def types(scene: Scene, known: Commands) -> list[str]:
    """The types of records of the newest calls, the newest first."""
    return list(dict.fromkeys(type for type, _ in _talked_about(scene, known)))


def last(scene: Scene, known: Commands, type: str) -> Found | None:
    """The record of a type that was talked about last, as it is now.

    Raises:
        LookFirst: it has to be read.
    """
    for kind, id in _talked_about(scene, known):
        if kind == type:
            [found] = records.look(scene, {"type": type, "id": id})
            return found[0] if found else None
    for text in scene.said_before():
        named = [code for code, _ in codes.codes(Said(text))]
        if named:
            found = records.by_name(scene, [type], Named(named[-1]))
            if len(found) == 1:
                return found[0]
    return None


def known_by_id(scene: Scene, id: str) -> Found | None:
    """A record that was read in this run, or that a question named."""
    for step in reversed(scene.all_steps):
        for told in _records_in(step.result):
            if told.get("id") == id and told.get("label") is not None:
                return Found.of(told, str(step.arguments.get("type", "")))
    for step in reversed(scene.all_steps):
        for told in _records_in(step.arguments):
            if told.get("id") == id:
                return Found.of(told, "")
    return None


def _talked_about(scene: Scene, known: Commands) -> Iterator[tuple[str, str]]:
    for step in reversed(scene.all_steps):
        if step.purpose is Purpose.ACT and step.outcome == "done":
            code, given = known.called(step.tool, step.arguments)
            yield from _of_call(known, code, given, step.result.get("record"))
        elif step.tool == READ and len(listed := list(_records_in(step.result))) == 1:
            yield str(listed[0].get("type") or step.arguments.get("type")), str(listed[0].get("id"))
    for told in scene.ask.recent:
        code = str(told.get("cmdCode", ""))
        yield from _of_call(known, code, told.get("arguments") or {}, told.get("record"))


def _of_call(
    known: Commands, code: str, given: Mapping[str, Any], record: Any
) -> Iterator[tuple[str, str]]:
    command = known.known.get(code)
    type = command.definition.record if command else None
    if isinstance(record, Mapping):
        type = str(record.get("type") or type or "") or None
        id = record.get("id")
    else:
        id = record if isinstance(record, str) else given.get("targetRecordId")
    if type and isinstance(id, str):
        yield type, id


def _records_in(told: Any) -> Iterator[Mapping[str, Any]]:
    for each in mappings(told):
        if isinstance(each.get("id"), str) and ("label" in each or "number" in each):
            yield each
