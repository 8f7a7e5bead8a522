"""Stage `change_tracking`: every governed row of this transaction, field by field.

Rows in hand know what they were when they were found, so nothing that was written before this stage
or will be after it is missed, whoever writes it; the effect reads the same list again.
"""

from app.commands.context import Context


def run(ctx: Context) -> None:
    """List what has changed up to here, for a handler that wants to know."""
    ctx.changes = ctx.records.changes(ctx.since)
