"""`finish_silently`: the round ends, and nothing is said."""

import pytest

from app.runs import offering, tools
from app.runs.outcome import Done, Tools
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("RUN-45", "RUN-54", "F-82")
async def test_nothing_is_said_by_it_also_after_something_was(desks: Desks) -> None:
    run = await desks.at_work()
    await desks.call(run, "send_message", text="Noted.")

    done = await desks.call(run, "finish_silently", reason="All is said.")

    assert isinstance(done, Done)
    assert [(each.payload or {})["text"] for each in desks.sent()] == ["Noted."]
    assert desks.waits() == []


@pytest.mark.requirement("RUN-32")
async def test_it_is_alone_in_its_batch(desks: Desks) -> None:
    run = await desks.at_work()
    run.tools = await offering.tools_of(run)
    both = Tools(
        (
            desks.proposed(run, "send_message", text="Hello"),
            desks.proposed(run, "finish_silently"),
        )
    )

    assert tools.find_flaw(run, both) == tools.NOT_ALONE
    assert tools.find_flaw(run, Tools(both.calls[1:])) is None
