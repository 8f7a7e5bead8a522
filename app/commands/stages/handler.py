"""Stage `handler`: the pack's own code, for what rules cannot say."""

from app.commands.context import Context
from app.commands.errors import Fault


def run(ctx: Context) -> None:
    """Run it; what it returns is part of the result, what it raises as `Rejected` refuses.

    A handler that may not run for a rehearsal is left out there, and the preview says so.
    """
    handle = ctx.published.machinery.handler
    if not ctx.command.has_handler:
        return
    if ctx.is_rehearsal and not ctx.command.previewable:
        ctx.is_complete = False
        return
    if handle is None:
        raise Fault("handler_failed")  # the pack that had it is gone
    ctx.result.update(handle(ctx) or {})
    ctx.records.flush()
