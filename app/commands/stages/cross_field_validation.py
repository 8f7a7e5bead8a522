"""Stage `cross_field_validation`: rules between input fields and record."""

from app.commands import rules
from app.commands.context import Context


def run(ctx: Context) -> None:
    """Ask the rules of this stage.

    Raises:
        Rejected: `cross_field_failed`, with the rule's message and expression.
    """
    rules.check(ctx, ctx.command.rules.cross_field, "cross_field_failed")
