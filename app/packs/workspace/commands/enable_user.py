"""`workspace.user.enable`: a disabled person may sign in again."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.identity import users
from app.identity.models import User
from app.packs.workspace import acting
from app.packs.workspace.rights import USERS


class EnableUser(Input):
    """Whom."""

    user_id: str = Field(pattern=acting.ID, description="The id of the person.")


def handle(ctx: Context) -> dict[str, Any]:
    """Open the account; nothing that ended comes back.

    Raises:
        Rejected: the person is not in reach.
        StepUpNeeded, NotUsableNow: it may not be, or not now.
    """
    acting.require_fresh(ctx)
    user = acting.reached(ctx, USERS, User, ctx.input.user_id, "userId")
    users.enable(ctx.work, ctx.call.principal, user)
    return {"userId": user.id, "status": user.status}


COMMAND = CommandDefinition(
    code="workspace.user.enable",
    display_name=Text(en="Enable person", zh="启用人员"),
    description=Text(
        en="Lets a disabled person sign in again, with the roles they had.",
        zh="允许已停用的人员重新登录，并保留其原有角色。",
    ),
    agent_hint=Text(
        en="For people only: use when a disabled person works here again; workspace.user.disable "
        "stops them as before.",
        zh="仅限人工操作：已停用的人员需要重新工作时使用；workspace.user.disable 可再次停用。",
    ),
    risk=Risk.L2,  # the account, and all that its roles allow
    idempotent=False,
    reversible=True,
    undo="workspace.user.disable",
    undo_input={"userId": "input.user_id"},
    operation=Operation.ACTION,
    input=EnableUser,
    example={"userId": "01JDXP5Y8GZ0000000000000AB"},
    permission=USERS,
    people_only=True,
    handler=handle,
    events=("workspace.user.enabled",),
    tags=("personal", "rights"),
)
