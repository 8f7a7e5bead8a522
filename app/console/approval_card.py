"""What stands on the card of an approval: everything a person needs to decide, in their words.

The order and the contents are those of UI-72; a value is never cut, and what cannot be shown in
full takes the verb button away (UI-73).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from app.commands import approval_reading, deciding, registry
from app.commands.approval_models import Approval, ApprovalState
from app.commands.approval_reading import Shown
from app.commands.definition import Risk
from app.commands.governed import field_name
from app.commands.stored import StoredDefinition
from app.console import effects, said
from app.console.effects import Effects
from app.console.said import Names, Said
from app.console.schema_forms import record_name
from app.console.schema_shape import Shape, said_name, shape_of, snake
from app.console.view import url
from app.identity import ways_in
from app.identity.models import Permission, User
from app.identity.principal import Principal
from app.kernel import clock, unseen
from app.kernel.i18n import gettext, language

SHOWABLE = 64 * 1024  # bytes of arguments that a page shows in full
TARGET = "targetRecordId"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its label by the schema, its value in full, what it was before an edit."""

    label: str
    value: Said
    hint: str = ""
    before: Said | None = None
    secret_length: int | None = None
    is_target: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One approval as one person reads it now.

    Attributes:
        nonce: of the dialog; empty where this person cannot decide it now.
        type_to_confirm: what has to be typed before the verb; empty below L4.
        cannot_show: the arguments are too large to be shown in full, so nobody can assent to them.
        empty: labels of arguments the command needs and in which there is nothing to see.
    """

    shown: Shown
    arguments: tuple[Argument, ...]
    raw: str
    effects: Effects
    receipt: Effects | None
    rule: str
    nonce: str
    type_to_confirm: str
    is_fresh: bool
    has_passkey: bool
    cannot_show: bool
    empty: tuple[str, ...] = ()

    @property
    def row(self) -> Approval:
        """The approval."""
        return self.shown.row

    @property
    def command(self) -> StoredDefinition:
        """The definition it was opened under."""
        return self.shown.definition

    @property
    def verb(self) -> str:
        """What the button says: the command's own name, never "OK"."""
        return self.command.display_name.in_(language())

    @property
    def is_live(self) -> bool:
        """Whether anything about it may still change."""
        return self.shown.is_open or self.row.state == ApprovalState.APPROVED

    @property
    def may_approve(self) -> bool:
        """Whether the verb button is there."""
        is_incomplete = self.command.risk is Risk.L4 and not self.effects.is_complete
        is_unreadable = self.cannot_show or bool(self.empty)
        return bool(self.nonce) and not (self.shown.changed or is_unreadable or is_incomplete)

    @property
    def undo_input(self) -> str:
        """What the form of the undo command begins with, as JSON."""
        undo = self.shown.ran.undo if self.shown.ran else None
        return json.dumps(undo["input"], ensure_ascii=False) if undo else ""

    @property
    def passkey_options(self) -> str:
        """Where the script asks what a passkey has to sign; empty where none is needed."""
        if not (self.needs_step_up and self.has_passkey):
            return ""
        return url(f"/approvals/{self.row.id}/passkey/options", nonce=self.nonce)

    @property
    def needs_step_up(self) -> bool:
        """Whether the person has to prove first who they are."""
        return bool(self.type_to_confirm) and not self.is_fresh


def card_for(session: Session, person: Principal, approval_id: str, *, is_fresh: bool) -> Card:
    """The card of one approval.

    Raises:
        NotFound: there is none, or it is not theirs to see.
    """
    shown = approval_reading.one_for(session, person, approval_id)
    row = shown.row
    preview = row.preview
    raw = json.dumps(row.arguments, ensure_ascii=False, indent=2, sort_keys=True)
    decides = shown.may_decide and shown.is_open
    return Card(
        shown=shown,
        arguments=tuple(_arguments(session, row, shown.definition)),
        raw=raw,
        effects=effects.effects_of(
            session,
            row.tenant_id,
            preview["changes"],
            preview["outside"],
            is_complete=preview["complete"],
        ),
        receipt=effects.effects_of(session, row.tenant_id, shown.ran.changes)
        if shown.ran
        else None,
        rule=_rule(session, row),
        nonce=deciding.nonce_for(row, person.session_id or "") if decides else "",
        type_to_confirm=deciding.to_type(row),
        is_fresh=is_fresh,
        has_passkey=decides and _has_passkey(session, person),
        cannot_show=len(raw.encode()) > SHOWABLE,
        empty=tuple(_empty(row, shown.definition)),
    )


def is_stale_preview(row: Approval) -> bool:
    """Whether the preview is older than two minutes, so that it offers to be computed again."""
    return clock.now() - row.previewed_at > deciding.DIALOG_LIVES


def _arguments(session: Session, row: Approval, definition: StoredDefinition) -> Iterator[Argument]:
    names = Names.among(session, row.tenant_id, [row.arguments, row.original or {}])
    labels = _labels_of_records(row)
    shapes = {part.name: part for part in shape_of(definition.input_schema).parts}
    currency = str(row.arguments.get("currency") or "")
    for name in [*shapes, *(each for each in row.arguments if each not in shapes)]:
        shape = shapes.get(name)
        if name not in row.arguments and name not in (row.original or {}):
            continue
        if shape is not None and shape.kind == "fixed":
            continue  # there is one possible value: it says nothing
        value = row.arguments.get(name)
        before = (row.original or {}).get(name)
        is_changed = row.original is not None and before != value
        yield Argument(
            label=_label(definition, shape, name),
            value=_value(name, value, names, labels, currency),
            hint=gettext(str(shape.schema.get("description", ""))) if shape else "",
            before=_value(name, before, names, labels, currency) if is_changed else None,
            secret_length=_secret_length(value) if name in definition.secrets else None,
            is_target=name == TARGET,
        )


def _empty(row: Approval, definition: StoredDefinition) -> Iterator[str]:
    """What the command needs and nobody can read: empty, or letters that show nothing."""
    shapes = {part.name: part for part in shape_of(definition.input_schema).parts}
    for name in definition.input_schema.get("required", ()):
        value = row.arguments.get(name)
        is_text = isinstance(value, str)
        if value in (None, [], {}) or (is_text and not unseen.is_seen(value)):
            yield _label(definition, shapes.get(name), name)


def _value(name: str, value: Any, names: Names, labels: Mapping[str, str], currency: str) -> Said:
    if isinstance(value, str) and value in labels:
        return Said("text", labels[value])
    return said.say(name, value, names, currency=currency)


def _secret_length(value: Any) -> int | None:
    is_mark = isinstance(value, Mapping) and value.get("redacted") is True
    return int(value["length"]) if is_mark else None


def _labels_of_records(row: Approval) -> dict[str, str]:
    """What the records in it are known by, as far as the request itself says."""
    labels = {str(each["id"]): str(each["label"]) for each in row.preview["changes"]}
    if row.target_id and row.target_label:
        labels[row.target_id] = row.target_label
    return labels


def _label(definition: StoredDefinition, shape: Shape | None, name: str) -> str:
    if shape is not None and (title := shape.schema.get("title")):
        return gettext(str(title))
    model = registry.record_types().get(definition.record or "")
    if model is not None and name == TARGET:
        return record_name(model.RECORD)
    column = definition.map.get(snake(name), snake(name))
    if model is not None and column in {**model.FIELDS, **model.COMMON_FIELDS}:
        return gettext(field_name(model, column))
    return gettext(said_name(name))


def _has_passkey(session: Session, person: Principal) -> bool:
    user = session.get(User, (person.tenant_id, person.user_id))
    return user is not None and bool(ways_in.passkeys(session, user))


def _rule(session: Session, row: Approval) -> str:
    """What the one who decides has to hold, in words; empty where the requester decides."""
    if row.approver_permission is None:
        return ""
    permission = session.get(Permission, row.approver_permission)
    titles = permission.title if permission else {}
    return titles.get(language()) or titles.get("en") or row.approver_permission
