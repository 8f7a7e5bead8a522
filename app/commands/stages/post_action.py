"""Stage `post_action`: commands that follow, each through every stage, in this same transaction."""

from app.commands.call import Call
from app.commands.context import Context
from app.commands.definition import PostAction
from app.commands.errors import Fault, Rejected
from app.commands.refused import Refused
from app.kernel import ids

DEEPEST = 3


def run(ctx: Context) -> None:
    """Run what follows.

    Raises:
        Rejected: the reason of the command that was refused, with its stage as `innerStage`;
            `computation_failed`.
    """
    for action in ctx.command.post_actions:
        if action.when is None or ctx.scope.computed(action.when) is True:
            _follow(ctx, action)


def _follow(ctx: Context, action: PostAction) -> None:
    if ctx.call.depth >= DEEPEST:
        raise Fault("post_action_failed")
    call = Call(
        code=action.code,
        input={name: ctx.scope.computed(text) for name, text in action.input.items()},
        principal=ctx.call.principal,
        call_id=ids.ulid(),
        origin=ctx.call.origin,
        parent_call_id=ctx.call.call_id,
        depth=ctx.call.depth + 1,
    )
    try:
        ctx.follow(call, ctx)
    except Refused as inner:
        raise Rejected(
            inner.reason,
            *inner.errors,
            says=inner.says,
            text=inner.text,
            inner=inner,
            # of calls in calls, the innermost says where
            **{"innerStage": inner.stage, "innerCommand": action.code, **inner.facts},
        ) from inner
