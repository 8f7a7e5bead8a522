"""Stage `authorize`: the caller as they stand now, the permission, and the record through it.

The record is found through the same filter that lists use; outside of it, it does not exist.
"""

from app.access import acting, prepared
from app.commands import registry
from app.commands.context import Context
from app.commands.definition import Operation
from app.commands.errors import Rejected
from app.identity.principal import Scope


def run(ctx: Context) -> None:
    """Find out whether the caller may, and on which record; it is locked if it is to change.

    Raises:
        Rejected: `human_session_required`, `permission_denied`, `record_not_found`.
        AppError: user, tenant, delegation or agent no longer stand.
    """
    principal, command = ctx.call.principal, ctx.command
    alone = _runs_alone(ctx)
    ctx.acting = acting.now_acting(ctx.work.connection, principal, ctx.now, alone=alone)
    if command.people_only and not principal.is_person:
        raise Rejected("human_session_required")
    _check_scope(ctx)
    if not command.targeted:
        _check_permission(ctx)
    elif ctx.target_id is not None:
        _find_target(ctx, ctx.target_id)
    elif not _holds(ctx):
        raise Rejected("permission_denied", permission=command.permission)


def _runs_alone(ctx: Context) -> bool:
    """Whether others of the tenant have to wait; not for a rehearsal, which nobody builds upon."""
    declared = registry.declared().get(ctx.command.code)
    return declared is not None and declared.runs_alone and not ctx.is_rehearsal


def _check_scope(ctx: Context) -> None:
    scopes = ctx.user.scopes
    if scopes is None or Scope.COMMANDS_INVOKE in scopes:
        return
    if ctx.command.writes or Scope.COMMANDS_READ not in scopes:
        needed = Scope.COMMANDS_INVOKE if ctx.command.writes else Scope.COMMANDS_READ
        raise Rejected("permission_denied", scope=needed.value)


def _check_permission(ctx: Context) -> None:
    if ctx.command.operation is Operation.CREATE:
        where = {"owner": ctx.user.id, "org": ctx.user.org_id}
        values = prepared.values(ctx.call.principal, now=ctx.now, **where)
        question = prepared.covers(ctx.command.permission)
        allowed = question.run_with(ctx.work.connection, values).scalar()
    else:
        allowed = _holds(ctx)
    if not allowed:
        raise Rejected("permission_denied", permission=ctx.command.permission)


def _find_target(ctx: Context, target_id: str) -> None:
    model = ctx.published.machinery.model
    if model is None:
        raise Rejected("record_not_found")
    permission = ctx.command.permission
    row = ctx.records.reached(model, target_id, permission, lock=ctx.command.writes)
    if row is None:
        if not _holds(ctx):
            raise Rejected("permission_denied", permission=permission)
        raise Rejected("record_not_found")
    ctx.record, ctx.before = row, ctx.records.found(row)


def _holds(ctx: Context) -> bool:
    statement = prepared.holds(ctx.command.permission)
    values = prepared.values(ctx.call.principal, now=ctx.now)
    return bool(statement.run_with(ctx.work.connection, values).scalar())
