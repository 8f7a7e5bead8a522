"""Stage `side_effect`: other records that are created or changed along with this one."""

from app.commands import registry
from app.commands.context import Context
from app.commands.definition import SideEffect
from app.commands.errors import Rejected


def run(ctx: Context) -> None:
    """Carry out what the definition says about other records.

    Raises:
        Rejected: `record_not_found`, `version_conflict`, `computation_failed`.
    """
    for effect in ctx.command.side_effects:
        if effect.when is None or ctx.scope.computed(effect.when) is True:
            _carry_out(ctx, effect)
    if ctx.command.side_effects:
        ctx.records.flush()


def _carry_out(ctx: Context, effect: SideEffect) -> None:
    model = registry.record_type(effect.record)
    values = {column: ctx.scope.computed(expression) for column, expression in effect.set.items()}
    if effect.operation == "create":
        parent = ctx.record
        ctx.records.create(
            model,
            org_id=parent.org_id if parent else ctx.user.org_id,
            owner_id=parent.owner_id if parent else ctx.user.id,
            **values,
        )
        return
    row = ctx.records.get(model, str(ctx.scope.computed(effect.id or "")), lock=True)
    if row is None:
        raise Rejected("record_not_found", record=effect.record)
    for column, value in values.items():
        setattr(row, column, value)
