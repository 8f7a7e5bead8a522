"""The form of a command's draft: what is typed in it, and what an administrator means by it.

The pack's own rules, tags and conflicts always stay, so the form holds only what is added to them.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from app.commands.definition import LONGEST_APPROVAL_S, Approvers, Risk, Rule, Rules, SodRule, Text
from app.commands.overrides import RULE_STAGES, Overrides
from app.commands.readiness import Finding
from app.commands.stored import StoredDefinition
from app.console.names import Name
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_

ADDED_RULES, ADDED_CONFLICTS = 8, 4  # rows of the form

Stage = Literal["asserts", "pre_invariants", "cross_field", "post_invariants"]
Scope = Literal["same_record", "same_model"]
Mode = Literal["hard", "audit"]
Line = Annotated[str, Field(max_length=200)]
Words = Annotated[str, Field(max_length=2_000)]


class _Draft(BaseModel):
    """What the form sends, the rows left out; `expected` is the hash of the draft it shows."""

    model_config = ConfigDict(extra="forbid")

    name_en: Name
    name_zh: Name
    description_en: Words
    description_zh: Words
    hint_en: Words
    hint_zh: Words
    risk: Risk
    idempotent: bool = False
    reversible: bool = False
    people_only: bool = False
    permission: Line
    feature: Line = ""
    approvers: Line = ""
    approval_ttl_s: Annotated[int, Field(ge=30, le=LONGEST_APPROVAL_S)] | None = None
    tags: Line = ""
    expected: Line = ""


def _rows() -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for number in range(1, ADDED_RULES + 1):
        fields[f"rule_{number}_stage"] = (Stage, "asserts")
        fields[f"rule_{number}_expr"] = (Words, "")
        fields[f"rule_{number}_en"] = (Line, "")
        fields[f"rule_{number}_zh"] = (Line, "")
    for number in range(1, ADDED_CONFLICTS + 1):
        fields[f"sod_{number}_code"] = (Line, "")
        fields[f"sod_{number}_scope"] = (Scope, "same_record")
        fields[f"sod_{number}_mode"] = (Mode, "hard")
    return fields


Draft: type[_Draft] = create_model("Draft", __base__=_Draft, **_rows())


def typed(base: StoredDefinition, said: StoredDefinition) -> dict[str, object]:
    """What stands in the form of a draft that says `said`, on top of the pack's `base`."""
    values: dict[str, object] = {
        "name_en": said.display_name.en,
        "name_zh": said.display_name.zh,
        "description_en": said.description.en,
        "description_zh": said.description.zh,
        "hint_en": said.agent_hint.en,
        "hint_zh": said.agent_hint.zh,
        "risk": said.risk.value,
        "idempotent": said.idempotent,
        "reversible": said.reversible,
        "people_only": said.people_only,
        "permission": said.permission,
        "feature": said.feature or "",
        "approvers": said.approvers.permission if said.approvers else "",
        "approval_ttl_s": said.approval_ttl_s,
        "tags": ", ".join(tag for tag in said.tags if tag not in base.tags),
    }
    for number, (stage, rule) in enumerate(added_rules(base, said), 1):
        values[f"rule_{number}_stage"] = stage
        values[f"rule_{number}_expr"] = rule.expr
        values[f"rule_{number}_en"], values[f"rule_{number}_zh"] = rule.message.en, rule.message.zh
    for number, conflict in enumerate(_added_conflicts(base, said), 1):
        values[f"sod_{number}_code"] = conflict.conflicts_with
        values[f"sod_{number}_scope"], values[f"sod_{number}_mode"] = conflict.scope, conflict.mode
    return values


def meant(base: StoredDefinition, form: _Draft) -> Overrides:
    """What the form says, with everything of the pack's that stays.

    Raises:
        Invalid: a row is no rule, at its field.
    """
    tags = [tag.strip() for tag in form.tags.replace("，", ",").split(",")]
    return Overrides(
        display_name=Text(en=form.name_en, zh=form.name_zh),
        description=Text(en=form.description_en, zh=form.description_zh),
        agent_hint=Text(en=form.hint_en, zh=form.hint_zh),
        risk=form.risk,
        idempotent=form.idempotent,
        reversible=form.reversible,
        people_only=form.people_only or base.people_only,
        permission=form.permission,
        feature=base.feature or form.feature or None,
        approvers=Approvers(permission=form.approvers) if form.approvers else None,
        approval_ttl_s=form.approval_ttl_s,
        tags=tuple(dict.fromkeys((*base.tags, *filter(None, tags)))),
        rules=_rules(base, form),
        sod=(*base.sod, *_conflicts(form)),
    )


def added_rules(base: StoredDefinition, said: StoredDefinition) -> list[tuple[str, Rule]]:
    """The rules that an administrator added, with the stage each is asked at."""
    return [
        (stage, rule)
        for stage in RULE_STAGES
        for rule in getattr(said.rules, stage)
        if rule not in getattr(base.rules, stage)
    ]


def at_fields(
    form: _Draft | None, typed: dict[str, object], found: list[Finding]
) -> list[FieldError]:
    """The findings as errors at the fields of the form."""
    values = form.model_dump() if form else typed
    return [FieldError(_field(values, each), each.says, dict(each.facts)) for each in found]


def _field(values: dict[str, Any], finding: Finding) -> str:
    expression = finding.facts.get("expression")
    if finding.field == "rules":
        for number in range(1, ADDED_RULES + 1):
            if values.get(f"rule_{number}_expr") == expression:
                return f"rule_{number}_expr"
    if finding.field == "sod":
        for number in range(1, ADDED_CONFLICTS + 1):
            if values.get(f"sod_{number}_code") == finding.facts.get("code"):
                return f"sod_{number}_code"
    text = {"display_name": "name", "description": "description", "agent_hint": "hint"}
    if finding.field in text:
        language = (
            "zh" if finding.facts.get("language") == "zh-CN" or _is_chinese(finding) else "en"
        )
        return f"{text[finding.field]}_{language}"
    return finding.field if finding.field in _Draft.model_fields else ""


def _is_chinese(finding: Finding) -> bool:
    return finding.code == "text_not_translated"


def _rules(base: StoredDefinition, form: _Draft) -> Rules:
    added: dict[str, list[Rule]] = {stage: [] for stage in RULE_STAGES}
    for number in range(1, ADDED_RULES + 1):
        stage, expr, en, zh = (
            getattr(form, f"rule_{number}_{part}") for part in ("stage", "expr", "en", "zh")
        )
        if expr:
            added[stage].append(Rule(expr=expr, message=Text(en=en, zh=zh)))
        elif en or zh:
            raise Invalid(FieldError(f"rule_{number}_expr", N_("Write what has to hold.")))
    return Rules(**{stage: (*getattr(base.rules, stage), *rules) for stage, rules in added.items()})


def _conflicts(form: _Draft) -> Iterator[SodRule]:
    for number in range(1, ADDED_CONFLICTS + 1):
        code, scope, mode = (
            getattr(form, f"sod_{number}_{part}") for part in ("code", "scope", "mode")
        )
        if code:
            try:
                yield SodRule(conflicts_with=code, scope=scope, mode=mode)
            except ValidationError:
                raise Invalid(
                    FieldError(f"sod_{number}_code", N_("This is no code of a command."))
                ) from None


def _added_conflicts(base: StoredDefinition, said: StoredDefinition) -> list[SodRule]:
    return [rule for rule in said.sod if rule not in base.sod]
