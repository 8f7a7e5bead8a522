"""Stage 11: where a person has to assent, their word for exactly this call is used up (CMD-14)."""

from typing import TYPE_CHECKING

from app.commands import approvals
from app.commands.errors import Rejected

if TYPE_CHECKING:
    from app.commands.context import Context


def run(ctx: "Context") -> None:
    """Go on with a person's consent, or without one where none is needed.

    Raises:
        Rejected: there is no approval for this call, or it no longer holds.
    """
    if not ctx.command.needs_approval:
        return
    if ctx.call.approval_id is None:
        raise Rejected("approval_required")
    ctx.consent = approvals.consume(ctx)
