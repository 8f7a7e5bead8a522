"""Stage `computed_fields`: columns that a formula says."""

from app.commands.context import Context


def run(ctx: Context) -> None:
    """Compute, in the order in which they are written down.

    Raises:
        Rejected: `computation_failed`, with the column and its expression.
    """
    for column, expression in ctx.command.computed.items():
        setattr(ctx.record, column, ctx.scope.computed(expression, column=column))
    if ctx.command.computed:
        ctx.records.flush()
