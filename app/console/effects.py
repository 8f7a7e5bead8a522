"""What a call changes and sends out of the house, as people read it: before, after, in their words.

The same for a preview, a receipt and an approval: it is made from the data of `RowChange`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from app.commands import registry
from app.commands.governed import field_name
from app.console.said import Names, Said, facts, say
from app.console.schema_forms import record_name
from app.console.schema_shape import said_name
from app.kernel.i18n import N_, gettext

KINDS = {
    "webhook": N_("Webhook"),
    "api_call": N_("Call of an outside service"),
    "external": N_("Call of an outside service"),
}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field; `is_by_itself` says that its value comes with the call and may differ (CMD-16)."""

    label: str
    before: Said
    after: Said
    is_by_itself: bool = False


@dataclass(frozen=True, slots=True)
class RecordChange:
    """One record. `operation` is create, update or delete."""

    record: str
    label: str
    id: str
    operation: str
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """One thing that leaves the house."""

    kind: str
    name: str
    facts: tuple[tuple[str, Said], ...]


@dataclass(frozen=True, slots=True)
class Effects:
    """Everything of one call; `is_complete` is False where a handler could not be rehearsed."""

    changes: tuple[RecordChange, ...] = ()
    outside: tuple[Sent, ...] = ()
    is_complete: bool = True


def effects_of(
    session: Session,
    tenant_id: str,
    changes: Sequence[Mapping[str, Any]],
    outside: Sequence[Mapping[str, Any]] = (),
    *,
    is_complete: bool = True,
) -> Effects:
    """What stands in `changes` and `outside`, with names instead of ids."""
    names = Names.among(session, tenant_id, [list(changes), list(outside)])
    names.known |= {str(each["id"]): str(each["label"]) for each in changes if each.get("label")}
    return Effects(
        tuple(_change(each, names) for each in changes),
        tuple(_sent(each, names) for each in outside),
        is_complete,
    )


def _change(change: Mapping[str, Any], names: Names) -> RecordChange:
    record = str(change["record"])
    fields: Mapping[str, Any] = change["fields"]
    by_itself = set(change.get("automatic", ()))
    currency = next((str(value) for value in fields.get("currency", ())[::-1] if value), "")
    return RecordChange(
        record=record_name(record),
        label=str(change.get("label", "")),
        id=str(change["id"]),
        operation=str(change["operation"]),
        fields=tuple(
            FieldChange(
                label_of(record, name),
                say(name, before, names, currency=currency),
                say(name, after, names, currency=currency),
                name in by_itself,
            )
            for name, (before, after) in fields.items()
        ),
    )


def _sent(sent: Mapping[str, Any], names: Names) -> Sent:
    kind = KINDS.get(str(sent.get("kind")), "")
    data = sent.get("data")
    told = facts(data, names) if isinstance(data, Mapping) else ()
    return Sent(gettext(kind) if kind else str(sent.get("kind")), str(sent["name"]), tuple(told))


def label_of(record: str, column: str) -> str:
    """What people call a column of a record's type."""
    model = registry.record_types().get(record)
    return gettext(field_name(model, column) if model else said_name(column))
