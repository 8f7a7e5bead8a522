"""What is said before something is changed: what, which record, values, and what takes it back."""

from app.commands.definition import Risk
from app.commands.descriptors import Descriptor
from app.kernel.i18n import gettext as _
from app.runs.models.planner import commands, wording
from app.runs.models.planner.slots import schema
from app.runs.models.planner.wishes import Wish


def is_due(command: Descriptor) -> bool:
    """Whether people hear of it beforehand: from L2 on, and wherever nothing takes it back."""
    told = command.definition
    return told.writes and (told.risk.level >= Risk.L2.level or told.needs_approval)


def brief(wish: Wish, undo: Descriptor | None, zone: str) -> str:
    """One or two sentences, and the values."""
    name = wording.quoted(commands.name(wish.command))
    about = wording.listed(wording.record(each) for each in wish.targets)
    if about:
        head = _("I am about to run %(name)s for %(record)s.") % {"name": name, "record": about}
    else:
        head = _("I am about to run %(name)s.") % {"name": name}
    shown = wording.values(wish.command, wish.filled.values, _currency(wish), zone)
    shown += [
        _("%(label)s: %(value)s") % {"label": _label(wish, field), "value": wording.record(found)}
        for field, found in wish.references.items()
    ]
    return "\n".join([head, *(f"- {each}" for each in shown), *_afterwards(wish.command, undo)])


def _afterwards(command: Descriptor, undo: Descriptor | None) -> list[str]:
    told = command.definition
    if told.needs_approval:
        if told.reversible:
            return ["", _("A person has to agree first, so you will see a request for that.")]
        return [
            "",
            _("Nothing takes it back afterwards, so a person has to agree to exactly this first."),
        ]
    if undo is None:
        return []
    name = wording.quoted(commands.name(undo))
    return ["", _("If it turns out wrong, %(name)s takes it back.") % {"name": name}]


def _label(wish: Wish, field: str) -> str:
    return schema.label(wish.command, field)


def _currency(wish: Wish) -> str:
    said = wish.filled.values.get("currency")
    if isinstance(said, str):
        return said
    return next((each.currency for each in wish.targets if each.currency), "")
