"""`workspace.key.rotate`: a new key in place of one that may be known.

An owner rotates what is the workspace's own: the key under which secrets are marked in the trail.
Keys of the deployment sign for all workspaces; its operator rotates them (`rotate-keys`). Secrets
of webhooks are shown once, so they are rotated on their page.
"""

from typing import Any, Literal

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.kernel import keyring
from app.packs.workspace import acting
from app.packs.workspace.rights import ROTATE


class RotateKey(Input):
    """Which one."""

    key: Literal["redaction"] = Field(
        description="The key: `redaction` marks secrets in the trail, so that equals can be found."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Make a new first key; the old one is kept for what was marked with it.

    Raises:
        StepUpNeeded: the sign-in of the person is too old.
    """
    acting.require_fresh(ctx)
    keyring.rotate(ctx.work, f"{ctx.input.key}:{ctx.call.principal.tenant_id}")
    return {"key": ctx.input.key}


COMMAND = CommandDefinition(
    code="workspace.key.rotate",
    display_name=Text(en="Rotate key", zh="轮换密钥"),
    description=Text(
        en="Makes a new key for marking secrets in the trail; marks from before and after cannot "
        "be compared any more.",
        zh="为审计记录中的敏感信息生成新的标记密钥；此前与此后的标记将无法相互比对。",
    ),
    agent_hint=Text(
        en="For people only: use when somebody outside may know the key, or when the rules of the "
        "house ask for a new one; nothing brings the old one back, so it is confirmed.",
        zh="仅限人工操作：密钥可能泄露，或内部制度要求更换时使用；旧密钥无法恢复，因此需要确认。",
    ),
    risk=Risk.L4,
    idempotent=False,
    reversible=False,
    operation=Operation.ACTION,
    input=RotateKey,
    example={"key": "redaction"},
    permission=ROTATE,
    people_only=True,
    handler=handle,
    events=("workspace.key.rotated",),
    tags=("rights",),
)
