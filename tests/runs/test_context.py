"""What a run knows at its start: no more than its principal may see."""

import pytest

from app.runs import opening, preparing
from app.runs.states import EntryKind
from tests.runs.agents import Office

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("RUN-78")
async def test_history_begins_where_the_principal_came_in_through_a_linked_client(
    office: Office,
) -> None:
    group = office.group()
    office.say_in(group, "alice", "Said before anybody else was here")
    office.outsider("tina", linked_to="bob")
    office.let_in(group, "tina")
    office.say_in(group, "alice", "Said to both")
    office.say_in(group, "tina", "What did I miss?")
    await office.hear()
    await opening.open_due()

    told = {}
    for claim in office.claim():
        run = await preparing.prepare(claim)
        history = [each.body["text"] for each in run.transcript if each.kind == EntryKind.HISTORY]
        told[run.facts.user_id] = history

    assert told[office.world.acme["bob"].id] == ["Said to both"]
