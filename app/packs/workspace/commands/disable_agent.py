"""`workspace.agent.disable`: an agent stops, for everyone."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.identity import agents
from app.identity.models import Agent
from app.packs.workspace import acting
from app.packs.workspace.rights import AGENTS


class DisableAgent(Input):
    """Which one."""

    agent_id: str = Field(pattern=acting.ID, description="The id of the agent.")


def handle(ctx: Context) -> dict[str, Any]:
    """Stop it at once; delegations stay, tokens end.

    Raises:
        Rejected: the agent is not in reach.
        StepUpNeeded, NotUsableNow: it may not be, or not now.
    """
    acting.require_fresh(ctx)
    agent = acting.reached(ctx, AGENTS, Agent, ctx.input.agent_id, "agentId")
    agents.disable(ctx.work, ctx.call.principal, agent)
    return {"agentId": agent.id, "status": agent.status}


COMMAND = CommandDefinition(
    code="workspace.agent.disable",
    display_name=Text(en="Disable agent", zh="停用智能体"),
    description=Text(
        en="Stops an agent for everyone, at once. What people delegated to it stays as it is.",
        zh="立即为所有人停用智能体；已有的委托保持不变。",
    ),
    agent_hint=Text(
        en="For people only: use when an agent does what it should not; workspace.agent.enable "
        "lets it work again.",
        zh="仅限人工操作：智能体行为异常时使用；workspace.agent.enable 可重新启用。",
    ),
    risk=Risk.L2,  # the agent and its tokens
    idempotent=False,
    reversible=True,
    undo="workspace.agent.enable",
    undo_input={"agentId": "input.agent_id"},
    operation=Operation.ACTION,
    input=DisableAgent,
    example={"agentId": "01JDXP5Y8GZ0000000000000AB"},
    permission=AGENTS,
    people_only=True,
    handler=handle,
    events=("workspace.agent.disabled",),
    tags=("rights",),
)
