"""`workspace.user.disable`: a person and everything that acts for them stops."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.identity import users
from app.identity.models import User
from app.packs.workspace import acting
from app.packs.workspace.rights import USERS


class DisableUser(Input):
    """Whom."""

    user_id: str = Field(pattern=acting.ID, description="The id of the person.")


def handle(ctx: Context) -> dict[str, Any]:
    """Stop them at once.

    Raises:
        Rejected: the person is not in reach.
        StepUpNeeded, LastOwner, NotUsableNow: it may not be, or not now.
    """
    acting.require_fresh(ctx)
    user = acting.reached(ctx, USERS, User, ctx.input.user_id, "userId")
    users.disable(ctx.work, ctx.call.principal, user)
    return {"userId": user.id, "status": user.status}


COMMAND = CommandDefinition(
    code="workspace.user.disable",
    display_name=Text(en="Disable person", zh="停用人员"),
    description=Text(
        en="Ends every session, link and token of a person at once; they cannot sign in.",
        zh="立即终止该人员的所有会话、链接和令牌，且不能再登录。",
    ),
    agent_hint=Text(
        en="For people only: use when somebody leaves or an account may be in wrong hands; what "
        "ends does not come back, so the person who asks confirms it.",
        zh="仅限人工操作：有人离职或账号可能被盗用时使用；终止的会话和令牌无法恢复，因此需要确认。",
    ),
    risk=Risk.L2,  # the account, its sessions, links and tokens
    idempotent=False,
    reversible=False,  # workspace.user.enable opens the account, and nothing that ended
    operation=Operation.ACTION,
    input=DisableUser,
    example={"userId": "01JDXP5Y8GZ0000000000000AB"},
    permission=USERS,
    people_only=True,
    handler=handle,
    events=("workspace.user.disabled",),
    tags=("personal", "rights"),
)
