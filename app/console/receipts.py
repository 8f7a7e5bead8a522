"""Receipts: what a call came to, with what it changed and the way back (UI-83)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from app.access import scope
from app.audit.models import AuditEntry
from app.commands import catalogue, pipeline, registry
from app.commands.call import Call
from app.commands.descriptors import Descriptor
from app.commands.refused import Refused
from app.commands.stored import StoredDefinition
from app.console import effects, record_choices, said
from app.console.command_form import reading_command
from app.console.effects import Effects
from app.identity.models import User
from app.identity.principal import Principal
from app.kernel.errors import NotFound


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a call came to."""

    done: Mapping[str, Any]
    label: str
    effects: Effects
    approved_by: str
    undo: Descriptor | None
    reader: str | None
    facts: tuple[tuple[str, said.Said], ...]

    @property
    def undo_input(self) -> str:
        """What the form of the undo begins with, as JSON."""
        return json.dumps(self.done["undo"]["input"], ensure_ascii=False)


def receipt_of(
    session: Session, person: Principal, done: Mapping[str, Any]
) -> tuple[Descriptor, Receipt]:
    """The command and the receipt of an answer that the person's own call was given."""
    code = str(done["cmdCode"])
    seen = catalogue.of(session, person)
    descriptor = seen.find(code) or _as_described(session, person, code)
    entry = session.get(AuditEntry, (person.tenant_id, done["auditSeq"]))
    changes = (entry.changes or []) if entry else []
    approved_by = entry.approved_by if entry else None
    approver = session.get(User, (person.tenant_id, approved_by)) if approved_by else None
    names = said.Names.among(session, person.tenant_id, done["result"])
    undo = done.get("undo")
    return descriptor, Receipt(
        done=done,
        label=_label(session, person, descriptor.definition, done.get("record")),
        effects=effects.effects_of(session, person.tenant_id, changes),
        approved_by=approver.display_name if approver else "",
        undo=seen.find(undo["cmdCode"]) if undo else None,
        reader=reading_command(seen, descriptor.definition.record),
        facts=tuple(said.facts(_besides(done), names)),
    )


async def why_not(person: Principal, undo: Mapping[str, Any]) -> Refused | None:
    """Why the undo of a call is no longer possible; None where it still is."""
    try:
        await pipeline.preview(
            Call(code=undo["cmdCode"], input=undo["input"], principal=person, preview=True)
        )
    except Refused as refused:
        return None if refused.reason == "invalid_input" else refused
    return None


def _besides(done: Mapping[str, Any]) -> dict[str, Any]:
    """The answer without the record, which the receipt names anyway."""
    record = done.get("record") or {}
    return {name: value for name, value in done["result"].items() if value != record.get("id")}


def _label(
    session: Session,
    person: Principal,
    definition: StoredDefinition,
    record: Mapping[str, Any] | None,
) -> str:
    """What people know the record of a receipt by, if its reader still reaches it."""
    model = registry.record_types().get(str(record["type"])) if record else None
    if record is None or model is None:
        return ""
    reached = scope.within(person, definition.permission, model)
    row = session.exec(select(model).where(reached, col(model.id) == record["id"])).first()
    return record_choices.named(model, row) if row else ""


def _as_described(session: Session, person: Principal, code: str) -> Descriptor:
    """The command of an old receipt, though its reader may call it no longer."""
    for each in catalogue.published(session, person.tenant_id):
        if each.code == code:
            return each
    raise NotFound
