"""Whether a definition may be published, and what its author should look at (CMD-2).

Each check yields findings; an error refuses publication, a warning is told. They read data alone,
so that a pack's definition and an administrator's are held to the same.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import jsonschema_rs
from pydantic import BaseModel, ValidationError

from app.commands import expressions, registry, sources
from app.commands.definition import Operation, PostAction, Risk, Rule, Text
from app.commands.governed import PLATFORM_COLUMNS, GovernedRecord
from app.commands.published import python_name
from app.commands.stored import StoredDefinition
from app.identity import permissions
from app.kernel.i18n import LANGUAGES, N_, gettext, speaking

LONGEST_HINT = 300  # characters
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_WIRE_NAME = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]*)+\b|\b[a-z]+(?:_[a-z0-9]+)+\b")
_BEFORE = frozenset({"record", "input", "user", "agent", "tenant", "now", "related"})
_AFTER = expressions.NAMES
SECRET_KEPT = N_("The secret input %(name)s would be kept or told here for all to read.")
#: What stands in these is stored or told as it is. Only what an external command asks is sealed.
_KEPT_IN_CLEAR = frozenset(
    {"computed", "undo", "side_effects", "post_actions", "events", "webhooks"}
)


class Severity(StrEnum):
    """What a finding means for publication."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at. `says` is English source text with `%(fact)s` in it.

    Attributes:
        field: of the definition; where a form shows it.
    """

    severity: Severity
    code: str
    field: str
    says: str
    facts: Mapping[str, Any]

    def text(self, language: str) -> str:
        """The sentence in `language`."""
        with speaking(language):
            return gettext(self.says) % self.facts

    def data(self) -> dict[str, Any]:
        """For programs: the sentence in every language."""
        return {
            "severity": self.severity.value,
            "finding": self.code,
            "field": self.field,
            "says": {language: self.text(language) for language in LANGUAGES},
        }


@dataclass(frozen=True, slots=True)
class Known:
    """What a definition may name.

    Attributes:
        commands: every other one of the tenant, by code; it may be among them itself.
        taken: codes in force whose names on the wire are not to be had again.
        inputs: the input models of packs, by command.
    """

    commands: Mapping[str, StoredDefinition]
    taken: frozenset[str]
    permissions: frozenset[str]
    features: frozenset[str]
    record_types: Mapping[str, type[GovernedRecord]]
    inputs: Mapping[str, type[BaseModel]] = field(default_factory=dict)

    @classmethod
    def of(cls, commands: Mapping[str, StoredDefinition], taken: Iterable[str]) -> "Known":
        """With what packs declare besides."""
        packs = registry.packs()
        declared = [*permissions.PLATFORM, *(each for pack in packs for each in pack.permissions)]
        return cls(
            commands=commands,
            taken=frozenset(taken),
            permissions=frozenset(each.code for each in declared),
            features=frozenset(each.code for pack in packs for each in pack.features),
            record_types=registry.record_types(),
            inputs={code: each.input for code, each in registry.declared().items()},
        )


def check(definition: StoredDefinition, known: Known) -> list[Finding]:
    """Everything there is to say, the errors first."""
    found = [finding for look in LOOKS for finding in look(definition, known)]
    return sorted(found, key=lambda each: each.severity)


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Those that refuse publication."""
    return [each for each in findings if each.severity is Severity.ERROR]


def transport_name(code: str) -> str:
    """A command's name where dots do not travel; two commands may not share one (CMD-F19)."""
    return code.replace(".", "_").casefold()


def _error(code: str, field: str, says: str, /, **facts: Any) -> Finding:
    return Finding(Severity.ERROR, code, field, says, facts)


def _warning(code: str, field: str, says: str, /, **facts: Any) -> Finding:
    return Finding(Severity.WARNING, code, field, says, facts)


def _words(told: StoredDefinition, _: Known) -> Iterator[Finding]:
    for name in ("display_name", "description", "agent_hint"):
        text: Text = getattr(told, name)
        for language, said in (("en", text.en), ("zh-CN", text.zh)):
            if not said.strip():
                yield _error(
                    "text_missing", name, N_("It says nothing in %(language)s."), language=language
                )
        if text.zh.strip() and not _CHINESE.search(text.zh):
            finding = _error if name == "agent_hint" else _warning
            yield finding("text_not_translated", name, N_("The Chinese text holds no Chinese."))


def _hint(told: StoredDefinition, _: Known) -> Iterator[Finding]:
    fields = set(told.input_schema.get("properties", {}))
    for language in LANGUAGES:
        hint = told.agent_hint.in_(language)
        if len(hint) > LONGEST_HINT:
            yield _error(
                "hint_too_long",
                "agent_hint",
                N_("The hint has %(length)s characters in %(language)s; %(most)s are the most."),
                length=len(hint),
                language=language,
                most=LONGEST_HINT,
            )
        if told.undo and hint.strip() and told.undo not in hint:
            yield _error(
                "hint_without_undo",
                "agent_hint",
                N_("The hint in %(language)s does not name what takes it back: %(undo)s."),
                language=language,
                undo=told.undo,
            )
        if sources.is_reserved(told.code):
            continue  # others chose these words
        repeated = [word for word in _WIRE_NAME.findall(hint) if word in fields]
        if repeated or "{" in hint:
            yield _error(
                "hint_repeats_schema",
                "agent_hint",
                N_("The hint in %(language)s repeats the schema: %(names)s."),
                language=language,
                names=", ".join(repeated) or "{",
            )


def _risk(told: StoredDefinition, _: Known) -> Iterator[Finding]:
    level = told.risk.level
    facts = {"risk": told.risk.value}
    is_outside = told.operation is Operation.EXTERNAL and not sources.is_reserved(told.code)
    if level < 3 and (told.webhooks or told.api_calls or is_outside):
        yield _error(
            "risk_too_low",
            "risk",
            N_("It has an effect outside, so it is L3 at least, not %(risk)s."),
            **facts,
        )
    if level < 2 and (told.side_effects or told.post_actions):
        yield _error(
            "risk_too_low",
            "risk",
            N_("It writes several records, so it is L2 at least, not %(risk)s."),
            **facts,
        )
    if level < 1 and (
        told.operation is not Operation.READ or told.set or told.map or told.computed
    ):
        yield _error(
            "risk_too_low", "risk", N_("It writes, so it is L1 at least, not %(risk)s."), **facts
        )
    if told.risk is Risk.L4 and not told.previewable:
        yield _error(
            "l4_not_previewable",
            "risk",
            N_("Nobody can assent to an L4 command whose effect cannot be shown first."),
        )


def _taking_back(told: StoredDefinition, known: Known) -> Iterator[Finding]:
    if told.risk is Risk.L0 and not told.reversible:
        yield _error("l0_irreversible", "reversible", N_("What only reads is always reversible."))
    if told.risk is Risk.L4 and told.reversible:
        yield _error("l4_reversible", "reversible", N_("An L4 command is never reversible."))
    if told.reversible and told.writes and not told.undo:
        yield _error(
            "undo_missing", "reversible", N_("It says it is reversible, but not by which command.")
        )
    if told.undo is None:
        return
    if not told.reversible:
        yield _warning(
            "undo_unused",
            "reversible",
            N_("It names %(undo)s, but says it is not reversible."),
            undo=told.undo,
        )
    paired = known.commands.get(told.undo)
    if told.undo != told.code and (paired is None or paired.pack != told.pack):
        yield _error(
            "undo_unknown", "reversible", N_("Its pack has no command %(undo)s."), undo=told.undo
        )


def _bypass(told: StoredDefinition, known: Known) -> Iterator[Finding]:
    """A command that needs assent must not run inside one that does not."""
    for action in told.post_actions:
        yield from _followed(told, action, known.commands.get(action.code))
    if told.needs_approval:
        for other in known.commands.values():
            follows = any(action.code == told.code for action in other.post_actions)
            if follows and other.code != told.code and not other.needs_approval:
                yield _error(
                    "approval_bypassed",
                    "risk",
                    N_("%(code)s runs it without anybody's assent."),
                    code=other.code,
                )


def _followed(
    told: StoredDefinition, action: PostAction, follower: StoredDefinition | None
) -> Iterator[Finding]:
    if follower is None:
        yield _error(
            "command_unknown", "post_actions", N_("There is no command %(code)s."), code=action.code
        )
    elif follower.needs_approval and not told.needs_approval:
        yield _error(
            "approval_bypassed",
            "risk",
            N_("It runs %(code)s, which needs assent, without anybody's assent."),
            code=action.code,
        )


def _rights(told: StoredDefinition, known: Known) -> Iterator[Finding]:
    if told.permission not in known.permissions:
        yield _error(
            "permission_unknown",
            "permission",
            N_("Nothing declares the permission %(permission)s."),
            permission=told.permission,
        )
    if told.feature is not None and told.feature not in known.features:
        yield _error(
            "feature_unknown",
            "feature",
            N_("Nothing declares the feature %(feature)s."),
            feature=told.feature,
        )
    if told.approvers and told.approvers.permission not in known.permissions:
        yield _error(
            "permission_unknown",
            "approvers",
            N_("Nothing declares the permission %(permission)s."),
            permission=told.approvers.permission,
        )
    if told.approvers and (shared := _reads(told, known, told.approvers.permission)):
        yield _error(
            "permission_shared",
            "approvers",
            N_("Who may only read would decide: %(code)s asks for the same permission."),
            code=shared[0],
        )
    if told.approval_ttl_s is not None and not told.needs_approval:
        yield _warning(
            "ttl_unused", "approval_ttl_s", N_("It never asks for assent, so this says nothing.")
        )
    if told.writes and (reads := _reads(told, known, told.permission)):
        yield _error(
            "permission_shared",
            "permission",
            N_("Who may only read would run it: %(code)s asks for the same permission."),
            code=reads[0],
        )
    for rule in told.sod:
        if rule.conflicts_with not in known.commands:
            yield _error(
                "command_unknown",
                "sod",
                N_("There is no command %(code)s."),
                code=rule.conflicts_with,
            )


def _reads(told: StoredDefinition, known: Known, permission: str) -> list[str]:
    """The other commands that only read and ask for `permission`."""
    return sorted(
        other.code
        for other in known.commands.values()
        if other.permission == permission and not other.writes and other.code != told.code
    )


def _names(told: StoredDefinition, known: Known) -> Iterator[Finding]:
    name = transport_name(told.code)
    for other in sorted(known.taken - {told.code}):
        if transport_name(other) == name:
            yield _error(
                "name_clash",
                "code",
                N_("As a tool it has the same name as %(code)s: %(name)s."),
                code=other,
                name=name,
            )


def _schema(told: StoredDefinition, known: Known) -> Iterator[Finding]:
    schema = told.input_schema
    if sources.is_reserved(told.code):  # its source took it apart, and wrote it anew
        return
    for path, part in _parts(schema, schema.get("$defs", {})):
        if path and not str(part.get("description", "")).strip():
            yield _error(
                "undescribed", "input", N_("The input %(field)s is not described."), field=path
            )
        is_object = not path or "properties" in part
        if is_object and part.get("additionalProperties") is not False:
            yield _error(
                "open_schema",
                "input",
                N_("The input %(field)s takes what nobody named."),
                field=path or "/",
            )
        if not str(part.get("$ref", "#/")).startswith("#/"):
            yield _error(
                "foreign_reference",
                "input",
                N_("The input %(field)s points to another document."),
                field=path,
            )
    yield from _example(told, known)


def _parts(
    schema: Mapping[str, Any],
    definitions: Mapping[str, Any],
    path: str = "",
    seen: tuple[str, ...] = (),
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every property, by its path, with what its reference says."""
    whole = dict(schema)
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions and name not in seen:
        whole = {**definitions[name], **schema}
        seen = (*seen, name)
    yield path, whole
    for key, part in whole.get("properties", {}).items():
        yield from _parts(part, definitions, f"{path}/{key}", seen)
    for part in (whole.get("items"), *whole.get("anyOf", ()), *whole.get("oneOf", ())):
        if isinstance(part, dict):
            for below, inner in _parts(part, definitions, path, seen):
                if below != path:
                    yield below, inner


def _example(told: StoredDefinition, known: Known) -> Iterator[Finding]:
    try:
        validator = jsonschema_rs.validator_for(told.input_schema, validate_formats=True)
    except (jsonschema_rs.ValidationError, ValueError) as fault:
        yield _error(
            "schema_invalid",
            "input",
            N_("The input is described by no valid schema: %(why)s"),
            why=_line(fault),
        )
        return
    first = next(iter(validator.iter_errors(told.example)), None)
    if first is not None:
        yield _error(
            "example_invalid",
            "example",
            N_("The example is no valid input: %(why)s"),
            why=_line(first.message),
        )
    elif (own := known.inputs.get(told.code)) is not None:
        given = {
            name: value
            for name, value in told.example.items()
            if not told.targeted or name not in {"targetRecordId", "operationType"}
        }
        try:
            own.model_validate(given)
        except ValidationError as fault:
            why = fault.errors(include_url=False)[0]["msg"]
            yield _error(
                "example_invalid",
                "example",
                N_("The example is no valid input: %(why)s"),
                why=_line(why),
            )


def _record(told: StoredDefinition, known: Known) -> Iterator[Finding]:
    if told.record is None:
        writes_one = told.operation not in {Operation.READ, Operation.ACTION, Operation.EXTERNAL}
        if writes_one or told.targeted or told.transition:
            yield _error(
                "record_missing",
                "record",
                N_("It changes a record, but does not say of which type."),
            )
        return
    model = known.record_types.get(told.record)
    if model is None:
        yield _error(
            "record_unknown",
            "record",
            N_("No pack has records of type %(record)s."),
            record=told.record,
        )
        return
    yield from _columns(told, model)
    yield from _states(told, model)
    for name in told.related:
        if name not in model.RELATED:
            yield _error(
                "related_unknown",
                "related",
                N_("%(record)s has no list %(name)s."),
                record=told.record,
                name=name,
            )


def _columns(told: StoredDefinition, model: type[GovernedRecord]) -> Iterator[Finding]:
    fields = {python_name(name) for name in told.input_schema.get("properties", {})}
    for name in told.map:
        if name not in fields:
            yield _error("input_unknown", "map", N_("There is no input %(name)s."), name=name)
    for name in sorted(_secret_inputs(told) & set(told.map)):
        yield _error("secret_kept", "map", SECRET_KEPT, name=name)
    columns = {*told.map.values(), *told.set, *told.computed}
    for name in sorted(columns - set(model.model_fields)):
        yield _error(
            "column_unknown",
            "map",
            N_("%(record)s has no column %(name)s."),
            record=told.record,
            name=name,
        )
    for name in sorted(set(told.map.values()) & PLATFORM_COLUMNS):
        yield _error(
            "column_of_platform", "map", N_("No input may fill the column %(name)s."), name=name
        )


def _states(told: StoredDefinition, model: type[GovernedRecord]) -> Iterator[Finding]:
    if told.transition is None:
        if told.operation is Operation.TRANSITION:
            yield _error(
                "transition_missing",
                "transition",
                N_("It changes a state, but does not say which."),
            )
        return
    if told.transition.field not in model.model_fields:
        yield _error(
            "column_unknown",
            "transition",
            N_("%(record)s has no column %(name)s."),
            record=told.record,
            name=told.transition.field,
        )
    for state in told.transition.from_:
        if told.transition.to not in model.STATES.get(state, ()):
            yield _error(
                "transition_unknown",
                "transition",
                N_("%(record)s does not go from %(state)s to %(to)s."),
                record=told.record,
                state=state,
                to=told.transition.to,
            )


def _expressions(told: StoredDefinition, _: Known) -> Iterator[Finding]:
    for name, text, allowed in _asked(told):
        try:
            compiled = expressions.compiled(text)
        except ValueError as fault:
            yield _error(
                "expression_invalid",
                name,
                N_("This expression does not compile: %(expression)s (%(why)s)"),
                expression=text,
                why=_line(fault),
            )
            continue
        foreign = sorted(compiled.names - allowed)
        foreign += [f"related.{each}" for each in sorted(compiled.related - set(told.related))]
        for secret in sorted(_secret_inputs(told)) if _is_kept(told, name) else ():
            if compiled.reads("input", secret):
                yield _error("secret_kept", name, SECRET_KEPT, name=secret)
        if foreign:
            yield _error(
                "expression_reads_unknown",
                name,
                N_("This expression reads what is not there: %(names)s in %(expression)s"),
                names=", ".join(foreign),
                expression=text,
            )


def _asked(told: StoredDefinition) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Every expression: the field it stands in, its text, and the names it may read there."""
    rules = told.rules
    for rule in (*rules.asserts, *rules.pre_invariants, *rules.cross_field):
        yield "rules", rule.expr, _BEFORE
    for rule in rules.post_invariants:
        yield "rules", rule.expr, _AFTER
    for text in told.computed.values():
        yield "computed", text, _AFTER
    for text in (*told.undo_input.values(), *([told.undo_when] if told.undo_when else [])):
        yield "undo", text, _AFTER
    for effect in told.side_effects:
        for each in (effect.id, effect.when, *effect.set.values()):
            if each is not None:
                yield "side_effects", each, _AFTER
    for action in told.post_actions:
        for each in (action.when, *action.input.values()):
            if each is not None:
                yield "post_actions", each, _AFTER
    for field_name in ("events", "webhooks", "api_calls"):
        for one in getattr(told, field_name):
            for text in one.data.values():
                yield field_name, text, _AFTER


def _is_kept(told: StoredDefinition, name: str) -> bool:
    if name == "api_calls":
        return told.operation is not Operation.EXTERNAL
    return name in _KEPT_IN_CLEAR


def _secret_inputs(told: StoredDefinition) -> set[str]:
    """The input fields that are secret, or hold something secret, by their Python names."""
    return {python_name(pointer.partition("/")[0]) for pointer in told.secrets}


def _messages(told: StoredDefinition, _: Known) -> Iterator[Finding]:
    rules: list[Rule] = [
        rule for stage in told.rules.__class__.model_fields for rule in getattr(told.rules, stage)
    ]
    for rule in rules:
        if not rule.message.en.strip() or not rule.message.zh.strip():
            yield _error(
                "message_missing",
                "rules",
                N_("What people are told is missing in a language: %(expression)s"),
                expression=rule.expr,
            )


def _line(fault: object) -> str:
    """The first line of what a library says, without its whole input."""
    return str(fault).strip().partition("\n")[0][:200]


LOOKS = (
    *(_words, _hint, _risk, _taking_back, _bypass, _rights, _names),
    *(_schema, _record, _expressions, _messages),
)
