"""Stage `post_invariant`: invariants after the write; a no takes the audit entry back too."""

from app.commands import rules
from app.commands.context import Context


def run(ctx: Context) -> None:
    """Ask the rules of this stage.

    Raises:
        Rejected: `invariant_failed`, with the rule's message and expression.
    """
    rules.check(ctx, ctx.command.rules.post_invariants, "invariant_failed")
