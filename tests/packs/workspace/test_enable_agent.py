"""`workspace.agent.enable`: a disabled agent works again."""

import pytest

from app.identity import agents
from app.kernel import db
from tests.packs.workspace.office import Office

ENABLE = "workspace.agent.enable"


@pytest.mark.requirement("CMD-25")
async def test_a_stopped_agent_works_again_and_is_stopped_again(office: Office) -> None:
    agent = office.acme.agents["stock"].id
    too_soon = await office.refused(ENABLE, agentId=agent)
    office.do("workspace.agent.disable", agentId=agent)

    done = office.do(ENABLE, agentId=agent)
    assert db.read_now(agents.one, office.acme.id, agent).status == "published"
    await office.undo(done)

    assert (too_soon.stage, too_soon.reason, too_soon.status) == ("handler", "illegal_state", 409)
    assert db.read_now(agents.one, office.acme.id, agent).status == "disabled"
