"""What became of the calls: told once, in the person's language, with the way back."""

import re
from collections.abc import Mapping
from typing import Any

from app.commands.descriptors import Descriptor
from app.identity.search import fold
from app.kernel.i18n import gettext as _
from app.runs.models.planner import commands, focus, moves, refusals, wording
from app.runs.models.planner.commands import Commands
from app.runs.models.planner.moves import Call, Decided, Move
from app.runs.models.planner.reading import SEND, Purpose, Scene, Step
from app.runs.models.planner.slots import schema

_MINE = re.compile(r"\b(?:my|mine|i|of mine)\b|我的|我有|我自己")
_FOR_ME = re.compile(r"\bfor me\b|\bmy (?:decision|approval)\b|待我|等我|要我|轮到我")


def tell(scene: Scene, known: Commands, text: str) -> Move:
    """The reply to what was done, or the next step that a refusal asks for.

    Raises:
        LookFirst: a record has to be read anew.
    """
    acted = scene.acted
    if (again := _brief_first(scene, known)) is not None:
        return again
    try:
        parts = [_one(scene, known, step, text) for step in acted]
    except Decided as decided:
        return decided.move
    return moves.say("\n\n".join(part for part in parts if part))


def _brief_first(scene: Scene, known: Commands) -> Move | None:
    """Say it and call again, where the loop did not count what was said before."""
    refused = [step for step in scene.acted if step.result.get("reason") == refusals.BRIEF_FIRST]
    tries = {step.seq for step in scene.steps if step.purpose is Purpose.ACT}
    if not refused or len(tries) > 1:
        return None
    names = []
    for step in refused:
        code, given = known.called(step.tool, step.arguments)
        command = known.known.get(code)
        shown = refusals.label_of(scene, given.get(schema.TARGET))
        names.append(f"{commands.name(command) if command else code} {shown}".strip())
    text = _("I am about to do this: %(what)s.") % {"what": wording.listed(names)}
    brief = Call(SEND, {"text": text, "format": "markdown"}, Purpose.BRIEF)
    return Move([brief, *(Call(each.tool, each.arguments, Purpose.ACT) for each in refused)])


def _one(scene: Scene, known: Commands, step: Step, text: str) -> str:
    code, given = known.called(step.tool, step.arguments)
    command = known.known.get(code)
    name = wording.quoted(commands.name(command) if command is not None else code)
    about = _record_of(scene, step, given)
    what = _("%(label)s: %(value)s") % {"label": name, "value": about} if about else name
    match step.outcome:
        case "done" if command is not None and not command.definition.writes:
            return _read(scene, command, step.result.get("result"), text)
        case "done":
            target = focus.known_by_id(scene, str(given.get(schema.TARGET, "")))
            currency = target.currency if target is not None else ""
            return _done(command, step.result, what, scene.ask.timezone, currency)
        case "denied":
            return _denied(step.result, what)
        case "expired":
            return _(
                "Nobody decided in time, so %(what)s was not run. Shall I ask again? Just say so."
            ) % {"what": what}
        case "not_started":
            return _("%(what)s was not started, and nothing was changed.") % {"what": what}
        case "interrupted":
            return _("%(what)s was cut off before anything happened.") % {"what": what}
        case "refused":
            said = refusals.told(scene, known, step, command)
            return _("%(what)s did not work: %(why)s") % {"what": what, "why": said}
    return _("I cannot tell whether %(what)s took effect. Please look before you try again.") % {
        "what": what
    }


def _record_of(scene: Scene, step: Step, given: Mapping[str, Any]) -> str:
    known = refusals.label_of(scene, given.get(schema.TARGET))
    if known:
        return known
    result, record = step.result.get("result"), step.result.get("record")
    for told in (result, record):
        if isinstance(told, Mapping):
            label = told.get("number") or told.get("label") or told.get("reference")
            if isinstance(label, str):
                return f"**{wording.plain(label)}**"
    return ""


def _done(
    command: Descriptor | None, result: Mapping[str, Any], what: str, zone: str, currency: str
) -> str:
    lines = [" ".join([_("Done: %(what)s.") % {"what": what}, *_state(command, result)])]
    told = result.get("result")
    if command is not None and isinstance(told, Mapping):
        more = {name: each for name, each in told.items() if name not in {"number", "label"}}
        lines += wording.answer(command, more, zone, currency)
    if result.get("changed_by"):
        lines.append(_("Whoever agreed changed some values; what ran is what they agreed to."))
    if isinstance(undo := result.get("undo"), Mapping) and undo.get("cmdCode"):
        lines += ["", _("Say “undo that” and I take it back.")]
    return "\n".join(lines)


def _state(command: Descriptor | None, result: Mapping[str, Any]) -> list[str]:
    """Where the record stands now, if the command moved it."""
    record = result.get("record")
    state = record.get("state") if isinstance(record, Mapping) else None
    if not state or command is None or command.definition.transition is None:
        return []
    shown = wording.quoted(wording.word(str(state)))
    return [_("It now stands at %(state)s.") % {"state": shown}]


def _denied(result: Mapping[str, Any], what: str) -> str:
    reason = str(result.get("reason") or "").strip()
    by = str(result.get("by") or "").strip() or _("Somebody")
    if reason:
        said = _("%(by)s said no to %(what)s: “%(reason)s”.")
        told = said % {"by": by, "what": what, "reason": wording.plain(reason).rstrip(".。")}
    else:
        told = _("%(by)s said no to %(what)s.") % {"by": by, "what": what}
    return "\n".join([told, _("Nothing was changed.")])


def _read(scene: Scene, command: Descriptor, result: Any, text: str) -> str:
    rows = wording.rows_of(result)
    if rows is None:
        lines = wording.answer(command, result, scene.ask.timezone)
        return (
            "\n".join([f"**{commands.name(command)}**", "", *lines])
            if lines
            else _("There is nothing to show.")
        )
    kept = of_person(scene, rows, text)
    if not kept:
        return _("There is none.")
    told = [wording.row_line(command, row, scene.ask.timezone) for row in kept]
    shown = [f"- {line}" for line in told if line]
    lines = [_("I found %(count)d:") % {"count": len(kept)}, "", *shown[: wording.ROWS]]
    if len(kept) > wording.ROWS:
        lines.append(_("… and %(count)d more.") % {"count": len(kept) - wording.ROWS})
    return "\n".join(lines)


def of_person(scene: Scene, rows: list[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    """Whose rows were asked for: somebody's by name, "my" own, or what waits "for me"."""
    name = scene.person_name
    if not name or not all("ownerName" in row for row in rows):
        return rows
    others = {str(row["ownerName"]) for row in rows} - {name}
    if called := {each for each in others if each and fold(each) in fold(text)}:
        return [row for row in rows if row["ownerName"] in called]
    if _FOR_ME.search(text.lower()):
        return [row for row in rows if row["ownerName"] != name]
    if _MINE.search(text.lower()):
        return [row for row in rows if row["ownerName"] == name]
    return rows
