"""Stage `sod_check`: nobody holds both ends of one piece of business.

The audit trail is the witness. An entry is part of its call's own commit, so there is no moment in
which a report is submitted but its submission is not yet on record. A user's agents are the user.
"""

from app.audit import witness
from app.commands.context import Context
from app.commands.definition import SodRule
from app.commands.errors import Rejected


def run(ctx: Context) -> None:
    """Refuse a call whose user already ran a conflicting command.

    Raises:
        Rejected: `sod_conflict`, naming the rule; somebody else has to make this call.
    """
    for rule in ctx.command.sod:
        if not _has_done_the_other(ctx, rule):
            continue
        if rule.mode == "hard":
            raise Rejected("sod_conflict", conflictsWith=rule.conflicts_with, scope=rule.scope)
        ctx.remarks.append("sod_conflict")  # kept in the audit entry


def _has_done_the_other(ctx: Context, rule: SodRule) -> bool:
    record_type = ctx.command.record
    if record_type is None or (ctx.record is None and rule.scope == "same_record"):
        return False
    return witness.has_done(
        ctx.work.connection,
        tenant_id=ctx.call.principal.tenant_id,
        user_id=ctx.call.principal.user_id,
        command=rule.conflicts_with,
        target_type=record_type,
        target_id=ctx.record.id if rule.scope == "same_record" else None,
    )
