"""`workspace.role.assign`: let a person hold a role."""

from typing import Any

from pydantic import AwareDatetime, Field

from app.access import scope
from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.commands.errors import Rejected
from app.identity import roles
from app.identity.models import Org, Role, RoleAssignment, User
from app.kernel.i18n import N_
from app.packs.workspace import acting
from app.packs.workspace.rights import ASSIGN


class AssignRole(Input):
    """Who, which role, from where, until when."""

    user_id: str = Field(pattern=acting.ID, description="The id of the person.")
    role_id: str = Field(pattern=acting.ID, description="The id of the role.")
    org_id: str = Field(
        pattern=acting.ID, description="The id of the organisation from which its scopes count."
    )
    ends_at: AwareDatetime | None = Field(
        None, description="When it ends by itself, with time zone; never when left out."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Assign it; it counts from the commit on.

    Raises:
        Rejected: one of the three is not in reach; `already_assigned`; the end has passed.
        StepUpNeeded, BeyondYourRights: the person may not.
    """
    acting.require_fresh(ctx)
    wanted, person, session = ctx.input, ctx.call.principal, ctx.work.session
    user = acting.reached(ctx, ASSIGN, User, wanted.user_id, "userId")
    role = acting.reached(ctx, ASSIGN, Role, wanted.role_id, "roleId")
    org = acting.reached(ctx, ASSIGN, Org, wanted.org_id, "orgId")
    if session.get(RoleAssignment, (user.tenant_id, user.id, role.id, org.id)) is not None:
        raise Rejected(
            "already_assigned",
            says=N_("This person was given this role there already."),
        )
    held = scope.tenant_wide_permissions(session, person)
    with acting.refusing({"ends_at": "endsAt"}):
        roles.assign(ctx.work, person, user, role, org, ends_at=wanted.ends_at, held=held)
    return {"userId": user.id, "role": role.code, "orgId": org.id}


COMMAND = CommandDefinition(
    code="workspace.role.assign",
    display_name=Text(en="Assign role", zh="分配角色"),
    description=Text(
        en="Gives a person a role at an organisation. Nobody gives what they do not hold.",
        zh="在某个组织授予人员一个角色；任何人都不能授予自己没有的权限。",
    ),
    agent_hint=Text(
        en="For people only: use when somebody takes over a task and a role has what it needs; "
        "workspace.role.unassign takes it away again.",
        zh="仅限人工操作：有人承担新职责、且已有合适角色时使用；workspace.role.unassign 可收回。",
    ),
    risk=Risk.L2,  # all that the role allows
    idempotent=False,
    reversible=True,
    undo="workspace.role.unassign",
    undo_input={
        "userId": "input.user_id",
        "roleId": "input.role_id",
        "orgId": "input.org_id",
    },
    operation=Operation.ACTION,
    input=AssignRole,
    example={
        "userId": "01JDXP5Y8GZ0000000000000AB",
        "roleId": "01JDXP5Y8GZ0000000000000AC",
        "orgId": "01JDXP5Y8GZ0000000000000AD",
    },
    permission=ASSIGN,
    people_only=True,
    handler=handle,
    events=("workspace.role.assigned",),
    tags=("rights",),
)
