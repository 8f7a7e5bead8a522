"""`workspace.role.unassign`: take a role from a person."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.commands.errors import Rejected
from app.identity import roles
from app.identity.models import Org, Role, RoleAssignment, User
from app.kernel import clock
from app.kernel.i18n import N_
from app.packs.workspace import acting
from app.packs.workspace.rights import ASSIGN


class UnassignRole(Input):
    """Who, which role, and where."""

    user_id: str = Field(pattern=acting.ID, description="The id of the person.")
    role_id: str = Field(pattern=acting.ID, description="The id of the role.")
    org_id: str = Field(pattern=acting.ID, description="The id of the organisation it is held at.")


def handle(ctx: Context) -> dict[str, Any]:
    """Take it away; it counts no more from the commit on.

    Raises:
        Rejected: one of the three is not in reach; `not_assigned`.
        StepUpNeeded, LastOwner: it may not be.
    """
    acting.require_fresh(ctx)
    wanted, session = ctx.input, ctx.work.session
    user = acting.reached(ctx, ASSIGN, User, wanted.user_id, "userId")
    role = acting.reached(ctx, ASSIGN, Role, wanted.role_id, "roleId")
    org = acting.reached(ctx, ASSIGN, Org, wanted.org_id, "orgId")
    held = session.get(RoleAssignment, (user.tenant_id, user.id, role.id, org.id))
    if held is None:
        raise Rejected("not_assigned", says=N_("This person does not hold this role there."))
    ends_at = clock.rfc3339(held.ends_at) if held.ends_at else None
    roles.unassign(ctx.work, ctx.call.principal, user, role, org)
    return {"userId": user.id, "role": role.code, "orgId": org.id, "endsAt": ends_at}


COMMAND = CommandDefinition(
    code="workspace.role.unassign",
    display_name=Text(en="Take role away", zh="收回角色"),
    description=Text(
        en="Takes a role at an organisation from a person, at once.",
        zh="立即收回人员在某个组织的角色。",
    ),
    agent_hint=Text(
        en="For people only: use when somebody hands a task over and the role is not needed any "
        "more; workspace.role.assign gives it back.",
        zh="仅限人工操作：有人移交职责、不再需要该角色时使用；workspace.role.assign 可重新授予。",
    ),
    risk=Risk.L2,  # all that the role allowed
    idempotent=False,
    reversible=True,
    undo="workspace.role.assign",
    undo_input={
        "userId": "input.user_id",
        "roleId": "input.role_id",
        "orgId": "input.org_id",
        "endsAt": "result.endsAt",
    },
    operation=Operation.ACTION,
    input=UnassignRole,
    example={
        "userId": "01JDXP5Y8GZ0000000000000AB",
        "roleId": "01JDXP5Y8GZ0000000000000AC",
        "orgId": "01JDXP5Y8GZ0000000000000AD",
    },
    permission=ASSIGN,
    people_only=True,
    handler=handle,
    events=("workspace.role.unassigned",),
    tags=("rights",),
)
