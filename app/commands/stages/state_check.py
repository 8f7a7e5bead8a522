"""Stage `state_check`: the record stands where this begins, at the version that was seen."""

from app.commands.context import Context
from app.commands.errors import Rejected


def run(ctx: Context) -> None:
    """Compare state and version.

    Raises:
        Rejected: `illegal_state` with `currentState` and `allowedFrom`; `version_conflict`.
    """
    transition, record = ctx.command.transition, ctx.record
    if record is None:
        return
    if transition is not None:
        state = getattr(record, transition.field)
        if state not in transition.from_:
            raise Rejected("illegal_state", currentState=state, allowedFrom=list(transition.from_))
    expected = ctx.call.expected_version
    if expected is not None and record.version != expected:
        raise Rejected("version_conflict", currentVersion=record.version, expectedVersion=expected)
