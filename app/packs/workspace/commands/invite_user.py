"""`workspace.user.invite`: an account for somebody new."""

from typing import Any

from pydantic import Field

from app.access import scope
from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.identity import roles, users
from app.identity.models import Org, Role
from app.packs.workspace import acting
from app.packs.workspace.rights import ASSIGN, USERS

FIELDS = {"display_name": "displayName", "org_id": "orgId"}


class InviteUser(Input):
    """Whom, and what they may do from the first day on."""

    display_name: str = Field(min_length=1, max_length=200, description="The person's name.")
    login: str = Field(
        min_length=1, max_length=users.LOGIN_LENGTH, description="What they sign in with."
    )
    email: str | None = Field(
        None,
        max_length=254,
        pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
        description="Their e-mail address, if there is one.",
    )
    org_id: str = Field(pattern=acting.ID, description="The id of the organisation they belong to.")
    role_id: str | None = Field(
        None,
        pattern=acting.ID,
        description="The id of the role they hold there; none when left out.",
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Make the account. Its one-time link is made on the person's page, and shown there once.

    Raises:
        Rejected: the organisation or the role is not in reach; the login will not do.
        StepUpNeeded, BeyondYourRights: the person may not.
    """
    acting.require_fresh(ctx)
    wanted, person, work = ctx.input, ctx.call.principal, ctx.work
    org = acting.reached(ctx, USERS, Org, wanted.org_id, "orgId")
    with acting.refusing(FIELDS):
        user = users.create(
            work,
            person,
            org,
            login=wanted.login,
            display_name=wanted.display_name,
            email=wanted.email,
        )
    if wanted.role_id is not None:
        role = acting.reached(ctx, ASSIGN, Role, wanted.role_id, "roleId")
        held = scope.tenant_wide_permissions(work.session, person)
        roles.assign(work, person, user, role, org, held=held)
    return {"userId": user.id, "login": user.login, "status": user.status}


COMMAND = CommandDefinition(
    code="workspace.user.invite",
    display_name=Text(en="Invite person", zh="邀请人员"),
    description=Text(
        en="Makes an account for somebody new. Their link to sign in is made on their page.",
        zh="为新成员创建账号；登录链接在该成员的页面上生成。",
    ),
    agent_hint=Text(
        en="For people only: use when somebody joins and a name, a login and an organisation are "
        "known; workspace.user.disable closes the account again.",
        zh="仅限人工操作：有新成员加入、且姓名、登录名和所属组织已知时使用；"
        "workspace.user.disable 可停用账号。",
    ),
    risk=Risk.L2,  # the account and its role
    idempotent=False,
    reversible=True,
    undo="workspace.user.disable",
    undo_input={"userId": "result.userId"},
    operation=Operation.ACTION,
    input=InviteUser,
    example={
        "displayName": "Li Na",
        "login": "lina",
        "email": "lina@acme.example",
        "orgId": "01JDXP5Y8GZ0000000000000AB",
    },
    permission=USERS,
    people_only=True,
    handler=handle,
    events=("workspace.user.invited",),
    tags=("personal", "rights"),
)
