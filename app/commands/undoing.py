"""The command that takes a call back, with its input filled in."""

from typing import Any

from app.commands import published
from app.commands.context import Context
from app.commands.definition import Operation
from app.commands.outcome import Undo
from app.commands.published import Published


def of(ctx: Context) -> Undo | None:
    """How to undo what this call did; None where nothing does."""
    command = ctx.command
    if command.undo is None or not command.writes:
        return None
    if command.undo_when is not None and not ctx.scope.holds(command.undo_when):
        return None
    other = _in_force(ctx, command.undo)
    if other is None:
        return None
    given: dict[str, Any] = {}
    if other.definition.targeted and ctx.record is not None:
        given["targetRecordId"] = ctx.record.id
        if other.definition.writes:
            is_delete = other.definition.operation is Operation.DELETE
            given["operationType"] = "DELETE" if is_delete else "UPDATE"
    for name, expression in command.undo_input.items():
        given[name] = ctx.scope.computed(expression)
    return Undo(code=command.undo, input=given)


def _in_force(ctx: Context, code: str) -> Published | None:
    if code == ctx.command.code:
        return ctx.published  # the call keeps its version to the end
    return published.current(ctx.work.connection, ctx.call.principal.tenant_id, code)
