"""Stage `assert`: preconditions of the command."""

from app.commands import rules
from app.commands.context import Context


def run(ctx: Context) -> None:
    """Ask the rules of this stage.

    Raises:
        Rejected: `assertion_failed`, with the rule's message and expression.
    """
    rules.check(ctx, ctx.command.rules.asserts, "assertion_failed")
