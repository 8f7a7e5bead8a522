"""What a call tells others: the things themselves, with what stands in them.

The same function makes what is sent and what a preview shows. A preview leaves aside what differs
each time (the call's id, automatic times, ids and numbers), so that the same effect reads the same
(CMD-16).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from app.audit import chain
from app.commands import registry
from app.commands.definition import Operation
from app.commands.stored import StoredDefinition

if TYPE_CHECKING:
    from app.commands.context import Context

DOMAIN_EVENT, WEBHOOK, API_CALL, EXTERNAL = "domain_event", "webhook", "api_call", "external"


@dataclass(frozen=True, slots=True)
class Telling:
    """One thing to tell: by which stage, under which name, and what stands in it."""

    kind: str
    name: str
    data: dict[str, Any]
    is_for_receivers: bool = True


def by(ctx: "Context", *, is_preview: bool = False) -> Iterator[Telling]:
    """Everything the call has to tell, in the order of its definition; external effects apart."""
    command = ctx.command
    to_receivers = {each.type for each in command.webhooks}
    for event in command.events:
        data = _data(ctx, event.data, is_preview)
        yield Telling(DOMAIN_EVENT, event.type, data, event.type not in to_receivers)
    for hook in command.webhooks:
        yield Telling(WEBHOOK, hook.type, _data(ctx, hook.data, is_preview))
    if command.operation is not Operation.EXTERNAL:
        for call in command.api_calls:
            yield Telling(API_CALL, call.name, _data(ctx, call.data, is_preview))


def request(ctx: "Context", *, is_preview: bool = False) -> dict[str, Any]:
    """What an external command asks of its performer: what it declares, or else its input."""
    declared = next((call.data for call in ctx.command.api_calls if call.data), None)
    return dict(ctx.call.input) if declared is None else _data(ctx, declared, is_preview)


def performer(command: StoredDefinition) -> str:
    """Who performs an external command: the name of its API call, or the command's own code."""
    return command.api_calls[0].name if command.api_calls else command.code


def reading_permission(record_type: str | None, otherwise: str) -> str:
    """The permission by which a record of a type is read: by it people hear of the record."""
    return registry.reading_permissions().get(record_type or "", otherwise)


def _data(ctx: "Context", declared: Mapping[str, str], is_preview: bool) -> dict[str, Any]:
    if declared:
        made = {name: ctx.scope.computed(text) for name, text in declared.items()}
    else:
        made = {"record": _record(ctx)} if ctx.record is not None else {}
        if not is_preview:
            made["result"] = _public(ctx)
    if is_preview:
        hidden = _automatic(ctx)
        return {name: _settled(value, hidden) for name, value in made.items()}
    return {"callId": ctx.call.call_id, **{name: chain.plain(made[name]) for name in made}}


def _record(ctx: "Context") -> dict[str, Any]:
    row = ctx.record
    return {
        "type": row.RECORD,
        "id": row.id,
        "version": row.version,
        "state": row.state,
        "label": row.label,
    }


def _public(ctx: "Context") -> dict[str, Any]:
    schema: Mapping[str, Any] = ctx.command.output_schema or {}
    parts: Mapping[str, Any] = schema.get("properties", {})
    return {
        name: value for name, value in ctx.result.items() if not parts.get(name, {}).get("x-secret")
    }


def _automatic(ctx: "Context") -> dict[Any, str]:
    """Values that came by themselves, and what stands for them."""
    found: dict[Any, str] = {ctx.now: "now", chain.plain(ctx.now): "now"}
    for change in ctx.changes:
        for column in change.automatic & set(change.fields):
            value = change.fields[column][1]
            if isinstance(value, str | datetime) and value != "":
                found[value] = f"{change.record}.{column}"
    return found


def _settled(value: Any, hidden: Mapping[Any, str]) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _settled(item, hidden) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_settled(item, hidden) for item in value]
    if isinstance(value, str | datetime) and value in hidden:
        return hidden[value]
    return chain.plain(value)
