"""What an administrator may say of a pack's command: its words, and how strict it is.

Never less strict than the pack: who declares a command knows what it does. Code, record, operation,
input, effects and handler are not here, so nothing can change them.
"""

from collections.abc import Iterator
from typing import Any, Self

from pydantic import Field

from app.commands.definition import (
    LONGEST_APPROVAL_S,
    Approvers,
    Part,
    Risk,
    Rule,
    Rules,
    SodRule,
    Text,
)
from app.commands.stored import StoredDefinition
from app.kernel.errors import FieldError
from app.kernel.i18n import N_

RULE_STAGES = tuple(Rules.model_fields)


class Overrides(Part):
    """The fields of a command that the console edits, as a whole."""

    display_name: Text
    description: Text
    agent_hint: Text
    risk: Risk
    idempotent: bool
    reversible: bool
    permission: str
    feature: str | None = None
    people_only: bool = False
    sod: tuple[SodRule, ...] = ()
    approvers: Approvers | None = None
    approval_ttl_s: int | None = Field(None, ge=30, le=LONGEST_APPROVAL_S)
    rules: Rules = Rules()
    tags: tuple[str, ...] = ()

    @classmethod
    def of(cls, definition: StoredDefinition) -> Self:
        """What `definition` says in these fields."""
        return cls(**{name: getattr(definition, name) for name in cls.model_fields})

    def on(self, base: StoredDefinition) -> StoredDefinition:
        """`base` with these fields; a command made irreversible loses its undo."""
        said = {**base.data(), **self.model_dump(mode="json", by_alias=True)}
        if base.reversible and not self.reversible:
            said |= {"undo": None, "undo_input": {}}
        return StoredDefinition.model_validate(said)


def changed(before: StoredDefinition, after: StoredDefinition) -> dict[str, tuple[Any, Any]]:
    """The fields in which two definitions differ: field -> (before, after), as stored."""
    old, new = before.data(), after.data()
    return {name: (old[name], new[name]) for name in new if old[name] != new[name]}


def loosened(base: StoredDefinition, wanted: Overrides) -> list[FieldError]:
    """What of `wanted` is less strict than the pack's own definition, at its field."""
    return [FieldError(name, says, facts) for name, says, facts in _loosened(base, wanted)]


def carried(old: StoredDefinition, ours: StoredDefinition, new: StoredDefinition) -> Overrides:
    """What an administrator changed on top of `old`, on top of `new` now.

    Where the pack has become stricter than the administrator was, the pack counts.
    """
    kept = {
        name: getattr(ours if getattr(ours, name) != getattr(old, name) else new, name)
        for name in Overrides.model_fields
    }
    kept["rules"] = Rules(
        **{stage: _joined(new.rules, ours.rules, old.rules, stage) for stage in RULE_STAGES}
    )
    kept["sod"] = (*new.sod, *(rule for rule in ours.sod if rule not in (*old.sod, *new.sod)))
    kept["tags"] = tuple(
        dict.fromkeys((*new.tags, *(tag for tag in ours.tags if tag not in old.tags)))
    )
    for error in loosened(new, Overrides(**kept)):
        field = error.pointer.partition("/")[0]
        kept[field] = getattr(new, field)
    return Overrides(**kept)


def _joined(new: Rules, ours: Rules, old: Rules, stage: str) -> tuple[Rule, ...]:
    known = {rule.expr for rule in (*getattr(new, stage), *getattr(old, stage))}
    added = (rule for rule in getattr(ours, stage) if rule.expr not in known)
    return (*getattr(new, stage), *added)


def _loosened(
    base: StoredDefinition, wanted: Overrides
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    if wanted.risk.level < base.risk.level:
        yield "risk", N_("The pack says %(risk)s; it can only be raised."), {"risk": base.risk}
    for name in ("idempotent", "reversible"):
        if getattr(wanted, name) and not getattr(base, name):
            yield name, N_("The pack does not promise this, so it cannot be said here."), {}
    if base.people_only and not wanted.people_only:
        yield "people_only", N_("The pack keeps this command for people."), {}
    if base.feature and wanted.feature != base.feature:
        yield (
            "feature",
            N_("The pack asks for the feature %(feature)s; that stays."),
            {"feature": base.feature},
        )
    if base.approvers and not wanted.approvers:
        yield "approvers", N_("The pack asks somebody else to decide; that stays."), {}
    if missing := [tag for tag in base.tags if tag not in wanted.tags]:
        yield "tags", N_("The pack's own tags stay: %(tags)s."), {"tags": ", ".join(missing)}
    yield from _loosened_rules(base, wanted)


def _loosened_rules(
    base: StoredDefinition, wanted: Overrides
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for stage in RULE_STAGES:
        kept = {rule.expr for rule in getattr(wanted.rules, stage)}
        for rule in getattr(base.rules, stage):
            if rule.expr not in kept:
                yield (
                    "rules",
                    N_("The pack's own rule stays: %(expression)s"),
                    {"expression": rule.expr},
                )
    for rule in base.sod:
        stays = [
            each
            for each in wanted.sod
            if (each.conflicts_with, each.scope) == (rule.conflicts_with, rule.scope)
            and (each.mode == rule.mode or each.mode == "hard")
        ]
        if not stays:
            yield (
                "sod",
                N_("The pack keeps apart who runs %(code)s; that stays."),
                {"code": rule.conflicts_with},
            )
