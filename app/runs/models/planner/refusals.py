"""What the planner does about a refusal, by its advice (RUN-107)."""

from collections.abc import Mapping
from typing import Any

from app.commands.descriptors import Descriptor
from app.kernel.i18n import gettext as _
from app.runs.models.planner import asking, commands, focus, moves, records, wishes, wording
from app.runs.models.planner.commands import Commands
from app.runs.models.planner.moves import Call, Decided, Move
from app.runs.models.planner.reading import TIMER, Purpose, Scene, Step
from app.runs.models.planner.records import Found
from app.runs.models.planner.slots import schema

PAUSE_S = 2
BRIEF_FIRST = "brief_first"


def told(scene: Scene, known: Commands, step: Step, command: Descriptor | None) -> str:
    """The refusal in words; for some advice only after a pause, a look, or one more try.

    Raises:
        LookFirst: the record has to be read anew.
        Decided: it is asked or done again.
    """
    said = _words(step) or str(step.result.get("detail") or _("That was refused."))
    match step.result.get("advice"):
        case "fix_arguments" if command is not None:
            _ask_again(known, step, command)
        case "wait_and_reread":
            if not any(each.tool == TIMER for each in scene.since(step.seq)):
                raise Decided(moves.pause(PAUSE_S))
            return _with_state(scene, known, step, command, said)
        case "reread_state":
            return _with_state(scene, known, step, command, said)
        case "escalate_to_other_user":
            return " ".join([said, _("Somebody else has to do it; I cannot do it for you.")])
        case "retry_later":
            return _later(scene, step, command, said)
    return said


def _words(step: Step) -> str:
    """What is known of a state in the language that is spoken, which need not be the account's."""
    told = step.result
    state, allowed = told.get("currentState"), told.get("allowedFrom")
    if told.get("reason") != "illegal_state" or not state or not isinstance(allowed, list):
        return ""
    shown = {
        "currentState": wording.word(str(state)),
        "allowedFrom": wording.listed(wording.word(str(each)) for each in allowed),
    }
    return _("It stands at %(currentState)s; this is possible from %(allowedFrom)s.") % shown


def _ask_again(known: Commands, step: Step, command: Descriptor) -> None:
    """Ask for the fields that were named.

    Raises:
        Decided: the question.
    """
    _code, given = known.called(step.tool, step.arguments)
    problems = _problems(step.result)
    wanted = [each for each in schema.fields(command) if each.name in problems]
    if not wanted:
        return
    wish = wishes.of(command, {"values": dict(given)})
    target = wish.filled.values.pop(schema.TARGET, None)
    if isinstance(target, str):
        wish.targets = [Found(command.definition.record or "", target, "", "", {}, None)]
    for each in wanted:
        wish.filled.values.pop(each.name, None)
        wish.filled.problems[each.name] = problems[each.name]
    raise Decided(asking.for_fields(wish, wanted))


def _problems(result: Mapping[str, Any]) -> dict[str, str]:
    listed = result.get("fields") or result.get("errors") or ()
    found: dict[str, str] = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping):
            name = str(each.get("field") or each.get("pointer") or "").strip("/").partition("/")[0]
            found[name] = str(
                each.get("problem") or each.get("detail") or each.get("message") or ""
            )
        else:
            found[str(each)] = ""
    return found


def _with_state(
    scene: Scene, known: Commands, step: Step, command: Descriptor | None, said: str
) -> str:
    """The words, how the record stands now, and what may be done with it."""
    _code, given = known.called(step.tool, step.arguments)
    id, type = given.get(schema.TARGET), command.definition.record if command else None
    if not isinstance(id, str) or not type:
        return said
    [found] = _reread(scene, step, type, id)
    if not found:
        return said
    lines = [said, "", f"- {wording.record(found[0])} · {wording.word(found[0].state or '-')}"]
    able = [known.known[code] for code in found[0].may or () if code in known.known]
    names = [wording.quoted(commands.name(each)) for each in able if each.definition.writes][:6]
    if names:
        lines += ["", _("What is possible now: %(names)s.") % {"names": wording.listed(names)}]
    return "\n".join(lines)


def _reread(scene: Scene, step: Step, type: str, id: str) -> list[list[Found]]:
    """The record as it is after the refusal: what was read before does not count."""
    fresh = Scene(scene.ask, steps=scene.since(step.seq))
    return records.look(fresh, {"type": type, "id": id})


def _later(scene: Scene, step: Step, command: Descriptor | None, said: str) -> str:
    tries = [
        each
        for each in scene.steps
        if each.purpose is Purpose.ACT
        and (each.tool, each.arguments) == (step.tool, step.arguments)
    ]
    if command is not None and command.definition.idempotent and len(tries) < 2:
        raise Decided(Move([Call(step.tool, step.arguments, Purpose.ACT)]))
    return " ".join([said, _("Please try again a little later.")])


def label_of(scene: Scene, id: object) -> str:
    """What a record is called that was read before; empty if it was not."""
    found = focus.known_by_id(scene, id) if isinstance(id, str) else None
    return wording.short(found) if found is not None else ""
