"""`workspace.agent.disable`: an agent stops at once, for everyone."""

import pytest

from app.identity import agents
from app.kernel import db
from tests.packs.workspace.office import Office
from tests.packs.workspace.test_people_only import agent_of

DISABLE = "workspace.agent.disable"


@pytest.mark.requirement("CMD-25", "CMD-F18")
async def test_a_disabled_agent_reads_nothing_more_until_it_is_enabled(office: Office) -> None:
    office.world.give(office.acme["alice"], "auditor")
    agent = agent_of(office)
    assert office.do("inventory.stock.list", agent).outcome == "done"

    done = office.do(DISABLE, agentId=agent.agent_id)
    stopped = await office.refused("inventory.stock.list", agent)
    foreign = await office.refused(DISABLE, agentId=office.world.globex.agents["stock"].id)
    denied = await office.refused(DISABLE, "alice", agentId=agent.agent_id)
    await office.undo(done)

    assert (stopped.stage, stopped.status) == ("authorize", 401)
    assert (foreign.reason, foreign.errors[0].pointer) == ("record_not_found", "agentId")
    assert denied.reason == "permission_denied"
    status = db.read_now(agents.one, office.acme.id, str(agent.agent_id)).status
    assert status == "published"
