"""A message that is held behind a request says whose decision it waits for."""

import pytest

from app.commands.approval_models import Approval
from app.identity.models import User, UserStatus
from app.kernel import db
from app.kernel.db import Work
from tests.commands.asking import REMIND, SEND, Asking
from tests.console import run_stage
from tests.console.run_rows import RunRows
from tests.packs.expenses.desk import Desk
from tests.people import World


@pytest.mark.requirement("UI-9", "UI-69")
async def test_a_held_message_says_whose_decision_it_waits_for(world: World) -> None:
    asking = Asking(Desk(world))
    own = await asking.ask(
        asking.call(asking.agent("alice"), REMIND, await asking.desk.submitted("alice", 2_000))
    )
    others = await asking.ask(
        asking.call("fiona", SEND, await asking.desk.approved("alice", 2_000))
    )
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        message = stage.newest()

        def play(rows: RunRows) -> None:
            rows.begin()
            rows.hear(message, state="queued", hold="approval", run_id=None, accepted_at=None)
            rows.wait("approval")

        run_id = stage.run(play)

        async def chip(row: Approval, **values: object) -> str:
            asking.set(row.id, run_id=run_id, **values)
            page = (await hers.get(stage.path)).text
            asking.set(row.id, run_id=None)
            return page.partition(f'id="message-{message.id}-input"')[2].partition("</div>")[0]

        assert "waits for your decision" in await chip(own)
        several = await chip(others)
        assert "waits for the decision of another person with “Send payments”" in several
        assert "your" not in several
        db.transact_now(_leave, world, "alice", "fiona", "frank")
        assert "waits for the decision of Frank" in await chip(others)
        assert "waits for a decision" in await chip(own, state="denied")


def _leave(work: Work, world: World, *staying: str) -> None:
    """Everybody else of Acme is gone."""
    for login, user in world.acme.people.items():
        if login not in staying:
            gone = work.session.get_one(User, (user.tenant_id, user.id))
            gone.status = UserStatus.DISABLED
            work.session.add(gone)
