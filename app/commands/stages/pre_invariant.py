"""Stage `pre_invariant`: invariants of the record type before the write."""

from app.commands import rules
from app.commands.context import Context


def run(ctx: Context) -> None:
    """Ask the rules of this stage.

    Raises:
        Rejected: `invariant_failed`, with the rule's message and expression.
    """
    rules.check(ctx, ctx.command.rules.pre_invariants, "invariant_failed")
