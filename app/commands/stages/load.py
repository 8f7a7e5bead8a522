"""Stage `load`: the published definition that is in force for this tenant, or nothing."""

from app.commands import published
from app.commands.context import Context
from app.commands.errors import Rejected


def run(ctx: Context) -> None:
    """Take one version for the whole call.

    Raises:
        Rejected: `unknown_command`.
    """
    found = published.current(ctx.work.connection, ctx.call.principal.tenant_id, ctx.call.code)
    if found is None:
        raise Rejected("unknown_command")
    ctx.published = found
