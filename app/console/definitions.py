"""Definitions of commands as people read them: what each field is called, and what differs."""

import json
from collections.abc import Mapping
from typing import Any

from app.commands import overrides
from app.commands.stored import StoredDefinition
from app.kernel.i18n import N_, gettext

LABELS: Mapping[str, str] = {
    "display_name": N_("Name"),
    "description": N_("Description"),
    "agent_hint": N_("Hint for agents"),
    "risk": N_("Risk"),
    "idempotent": N_("Safe to repeat"),
    "reversible": N_("Can be undone"),
    "undo": N_("Undone by"),
    "undo_input": N_("Input of the undo"),
    "undo_when": N_("Can be undone when"),
    "record": N_("Record"),
    "operation": N_("Operation"),
    "targeted": N_("Names its record"),
    "input_schema": N_("Input"),
    "output_schema": N_("Result"),
    "example": N_("Example"),
    "permission": N_("Permission"),
    "feature": N_("Feature"),
    "people_only": N_("For people only"),
    "transition": N_("Change of state"),
    "sod": N_("Kept apart from"),
    "approvers": N_("Who approves"),
    "approval_ttl_s": N_("Approvals live (seconds)"),
    "related": N_("Lists that rules read"),
    "rules": N_("Rules"),
    "set": N_("Automatic values"),
    "map": N_("Input to columns"),
    "computed": N_("Formulas"),
    "has_handler": N_("Runs code of the pack"),
    "previewable": N_("Can be previewed"),
    "side_effects": N_("Other records"),
    "roll_ups": N_("Sums"),
    "post_actions": N_("Commands that follow"),
    "events": N_("Events"),
    "webhooks": N_("Webhooks"),
    "api_calls": N_("Calls outside"),
    "tags": N_("Tags"),
}
STAGES: Mapping[str, str] = {
    "asserts": N_("before anything (assert)"),
    "pre_invariants": N_("about the record before it (pre-invariant)"),
    "cross_field": N_("between fields (cross-field)"),
    "post_invariants": N_("about the record after it (post-invariant)"),
}


Difference = tuple[str, str, str]  # label of the field, before, after


def differences(before: StoredDefinition | None, after: StoredDefinition) -> list[Difference]:
    """Each field in which two definitions differ; all that say something where there was none."""
    if before is None:
        return [
            (label, "", text)
            for name, label in LABELS.items()
            if (text := _text(after.data()[name]))
        ]
    changed = overrides.changed(before, after)
    return [
        (label, _text(changed[name][0]), _text(changed[name][1]))
        for name, label in LABELS.items()
        if name in changed
    ]


def _text(value: Any) -> str:
    """A field as its reader reads it: nothing for nothing, JSON for what has parts."""
    if value is None or value in ("", [], {}):
        return ""
    match value:
        case bool():
            return gettext("Yes") if value else gettext("No")
        case {"en": en, "zh-CN": zh} if len(value) == 2:
            return f"{en}\n{zh}"
        case str():
            return value
        case list() if all(isinstance(each, str) for each in value):
            return ", ".join(value)
        case _:
            return json.dumps(value, ensure_ascii=False, indent=1)
