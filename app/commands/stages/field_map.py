"""Stage `field_map`: automatic values, then input to columns; the record itself changes here."""

from typing import Any

from app.commands.context import Context
from app.commands.definition import Operation
from app.commands.errors import Fault, Rejected


def run(ctx: Context) -> None:
    """Create, change, delete, or move the record to its next state.

    Raises:
        Rejected: `version_conflict`, `duplicate_value`, `record_not_found` for a row that a column
            names and nobody has.
    """
    operation = ctx.command.operation
    if operation is Operation.CREATE:
        _create(ctx)
    elif operation is Operation.DELETE:
        ctx.records.delete(ctx.record)
    elif ctx.record is not None and ctx.command.writes:
        _change(ctx)
    if not ctx.command.computed:  # else the formulas' columns are written along with these
        ctx.records.flush()


def _create(ctx: Context) -> None:
    model = ctx.published.machinery.model
    if model is None:
        raise Fault("field_map_failed")
    automatic = {column: _automatic(ctx, value) for column, value in ctx.command.set.items()}
    first = next(iter(model.STATES), "")
    values = {"state": first, **automatic, **_mapped(ctx, only_sent=False)}
    ctx.record = ctx.records.create(
        model,
        org_id=values.pop("org_id", ctx.user.org_id),
        owner_id=values.pop("owner_id", ctx.user.id),
        **values,
    )
    ctx.records.mark_automatic(ctx.record, *automatic)


def _change(ctx: Context) -> None:
    automatic = {column: _automatic(ctx, value) for column, value in ctx.command.set.items()}
    for column, value in {**automatic, **_mapped(ctx, only_sent=True)}.items():
        setattr(ctx.record, column, value)
    ctx.records.mark_automatic(ctx.record, *automatic)
    if (transition := ctx.command.transition) is not None:
        setattr(ctx.record, transition.field, transition.to)


def _mapped(ctx: Context, *, only_sent: bool) -> dict[str, Any]:
    sent = _sent(ctx)
    return {
        column: ctx.values[name]
        for name, column in ctx.command.map.items()
        if name in ctx.values and (name in sent or not only_sent)
    }


def _sent(ctx: Context) -> set[str]:
    snake = ctx.published.machinery.snake
    return {snake[name] for name in ctx.call.input if name in snake}


def _automatic(ctx: Context, value: str) -> Any:
    match value.split(":", 1):
        case ["now"]:
            return ctx.now
        case ["user.id"]:
            return ctx.user.id
        case ["user.org"]:
            return ctx.user.org_id
        case ["id"]:
            return ctx.call.call_id
        case ["next", name]:
            return ctx.number(name)
    raise Rejected("computation_failed", expression=value)
