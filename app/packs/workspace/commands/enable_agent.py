"""`workspace.agent.enable`: a disabled agent works again."""

from typing import Any

from pydantic import Field

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.identity import agents
from app.identity.models import Agent
from app.packs.workspace import acting
from app.packs.workspace.rights import AGENTS


class EnableAgent(Input):
    """Which one."""

    agent_id: str = Field(pattern=acting.ID, description="The id of the agent.")


def handle(ctx: Context) -> dict[str, Any]:
    """Let it work again, for whoever let it act for them.

    Raises:
        Rejected: the agent is not in reach.
        StepUpNeeded, NotUsableNow: it may not be, or not now.
    """
    acting.require_fresh(ctx)
    agent = acting.reached(ctx, AGENTS, Agent, ctx.input.agent_id, "agentId")
    agents.enable(ctx.work, ctx.call.principal, agent)
    return {"agentId": agent.id, "status": agent.status}


COMMAND = CommandDefinition(
    code="workspace.agent.enable",
    display_name=Text(en="Enable agent", zh="启用智能体"),
    description=Text(
        en="Lets a disabled agent act again for everyone who delegated to it.",
        zh="允许已停用的智能体继续为委托人行事。",
    ),
    agent_hint=Text(
        en="For people only: use when the reason for which an agent was stopped is gone; "
        "workspace.agent.disable stops it again, at once.",
        zh="仅限人工操作：停用智能体的原因已排除时使用；workspace.agent.disable 可立即再次停用。",
    ),
    risk=Risk.L2,  # all that its users let it do
    idempotent=False,
    reversible=True,
    undo="workspace.agent.disable",
    undo_input={"agentId": "input.agent_id"},
    operation=Operation.ACTION,
    input=EnableAgent,
    example={"agentId": "01JDXP5Y8GZ0000000000000AB"},
    permission=AGENTS,
    people_only=True,
    handler=handle,
    events=("workspace.agent.enabled",),
    tags=("rights",),
)
