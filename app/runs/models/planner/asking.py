"""Questions: one that names everything missing, three at the most, then the form (RUN-107)."""

from collections.abc import Sequence

from app.commands.descriptors import Descriptor
from app.kernel.i18n import gettext as _
from app.runs.models.planner import commands, moves, records, wording
from app.runs.models.planner.moves import Move
from app.runs.models.planner.records import Found
from app.runs.models.planner.slots import filling, schema
from app.runs.models.planner.slots.schema import Field, Kind
from app.runs.models.planner.wishes import Wish

AT_MOST = 3  # questions
OFFERED = 4  # records
LONGEST_CHOICE = 100  # characters


def for_fields(wish: Wish, missing: Sequence[Field]) -> Move:
    """Ask for values."""
    if wish.asked >= AT_MOST:
        return form(wish.command)
    names = [each.name for each in missing]
    only = missing[0] if len(missing) == 1 else None
    choices = [wording.word(each) for each in only.choices[:10]] if only is not None else []
    lines = [" ".join([*_known(wish), _opening(wish)])]
    lines += [f"- {_wanted(wish, each, bool(choices))}" for each in missing]
    return moves.ask("\n".join(lines), wish.kept("fields", missing=names), choices or None)


def for_record(wish: Wish, found: Sequence[Found], field: str | None = None) -> Move:
    """Several records fit: let the person choose."""
    if wish.asked >= AT_MOST:
        return form(wish.command)
    shown = list(found)[:OFFERED]
    name = records.name_of(shown[0].type)
    parts = [_("Which %(record)s do you mean?") % {"record": name}]
    if len(found) > len(shown):
        parts.append(_("There are more; you can also tell me a number or a word of the title."))
    expects = wish.kept("record", options=[each.kept() for each in shown], field=field)
    return moves.ask(" ".join(parts), expects, [_choice(each) for each in shown])


def to_confirm(wish: Wish, found: Found) -> Move:
    """One record is there, but it is not called what was said."""
    if wish.asked >= AT_MOST:
        return form(wish.command)
    text = _("I found only %(record)s. Is that the one you mean?") % {
        "record": wording.record(found)
    }
    expects = wish.kept("confirm", options=[found.kept()])
    return moves.ask(text, expects, [_("Yes"), _("No")])


def for_target(wish: Wish) -> Move:
    """Nothing says which record."""
    if wish.asked >= AT_MOST:
        return form(wish.command)
    told = wish.command.definition
    text = _("Which %(record)s is it about? A number or a word of its title is enough.") % {
        "record": records.name_of(told.record or "")
    }
    return moves.ask(text, wish.kept("target"))


def to_run(wish: Wish) -> Move:
    """Something of the sentence is not accounted for, and nothing would take the call back."""
    if wish.asked >= AT_MOST:
        return form(wish.command)
    name = wording.quoted(commands.name(wish.command))
    about = wording.listed(wording.record(each) for each in wish.targets)
    text = _("Just to be sure: %(name)s for %(record)s?") % {"name": name, "record": about}
    return moves.ask(text, wish.kept("run"), [_("Yes"), _("No")])


def for_command(text: str, several: Sequence[Descriptor], asked: int) -> Move:
    """Several commands fit: let the person choose."""
    if asked >= AT_MOST:
        return moves.say(_("I am still not sure what you mean, so I have done nothing."))
    names = [commands.name(each) for each in several]
    if len(names) == 1:
        head = _("Do you mean %(name)s?") % {"name": wording.quoted(names[0])}
        names = [_("Yes"), _("No")]
    else:
        head = _("I can read that in more than one way. Which one do you mean?")
    expects = {
        "kind": "command",
        "text": text[:600],
        "options": [each.code for each in several],
        "asked": asked + 1,
    }
    return moves.ask(head, expects, names)


def form(command: Descriptor) -> Move:
    """Enough questions: the form has a field for everything."""
    text = _(
        "I did not get everything I need. The form for %(name)s has a field for each value: "
        "/commands/%(code)s"
    )
    return moves.say(text % {"name": wording.quoted(commands.name(command)), "code": command.code})


def _known(wish: Wish) -> list[str]:
    """What was understood, so that nobody says it again."""
    known = wording.values(wish.command, wish.filled.values, "", "")
    return [_("I have: %(values)s.") % {"values": wording.listed(known)}] if known else []


def _opening(wish: Wish) -> str:
    name = wording.quoted(commands.name(wish.command))
    if wish.targets:
        shown = wording.listed(each.label for each in wish.targets)
        return _("For %(name)s on %(record)s I still need:") % {"name": name, "record": shown}
    return _("For %(name)s I still need:") % {"name": name}


def _wanted(wish: Wish, each: Field, are_listed: bool) -> str:
    """A field with what would do, and why what was said does not."""
    label = schema.label(wish.command, each.name)
    hint = "" if are_listed else _hint(wish, each)
    return _("%(field)s: %(hint)s") % {"field": label, "hint": hint} if hint else label


def _hint(wish: Wish, each: Field) -> str:
    match wish.filled.problems.get(each.name):
        case filling.AMBIGUOUS_DAY:
            return _("that could be two different days; please write it like 2026-10-03")
        case filling.SEVERAL:
            return _("you named more than one; which one counts?")
        case filling.TOO_EXACT:
            return _("two decimal places at most")
        case filling.NO_SIGN:
            return _("is it more or less? Write +3 or -3")
        case filling.UNFIT:
            return _("what you wrote does not fit here")
        case str() as told:
            return told
    return _example(each)


def _example(each: Field) -> str:
    match each.kind:
        case Kind.CHOICE:
            shown = wording.listed(wording.word(choice) for choice in each.choices)
            return _("one of: %(choices)s") % {"choices": shown}
        case Kind.DAY:
            return _("a day, like 3 October or 2026-10-03")
        case Kind.MONTH:
            return _("a month, like October or 2026-10")
        case Kind.AMOUNT:
            return _("an amount, like 86.50")
        case Kind.INTEGER:
            return _("a whole number")
        case Kind.BOOLEAN:
            return _("yes or no")
        case Kind.REFERENCE if each.record:
            return _("a number, a code or a name")
    return ""


def _choice(found: Found) -> str:
    return wording.record(found)[:LONGEST_CHOICE]
