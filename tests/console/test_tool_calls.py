"""A call nobody knew the outcome of: a person looks and says, once (UI-13)."""

import pytest
from sqlmodel import Session

from app.kernel import db
from app.runs.run_models import ToolCall
from tests.console import run_stage
from tests.console.run_rows import RunRows
from tests.people import World


@pytest.mark.requirement("UI-13", "RUN-113", "UI-26")
async def test_a_person_says_what_became_of_a_call_and_nothing_is_sent_again(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        made: list[str] = []

        def play(rows: RunRows) -> None:
            rows.begin()
            rows.think("I pay it.")
            made.append(rows.call("expense.payment.send", state="unknown").id)
            rows.become("outcome_unknown")

        run_id = stage.run(play)
        path = f"/tool-calls/{made[-1]}/resolution"
        for page in ((await hers.get(stage.path)).text, (await hers.get(f"/runs/{run_id}")).text):
            assert "This was sent, and no answer came." in page
            assert page.count(f'action="{path}"') == 2
            assert "again" not in page.partition("tool-look")[2].partition("</div>")[0]

        assert (await hers.post(path, data={"finding": "perhaps"})).status_code == 422
        async with world.client(world.acme["bob"]) as his:
            assert (await his.post(path, data={"finding": "happened"})).status_code == 404
        said = await hers.post(path, data={"finding": "did_not"})
        assert said.headers["location"] == f"/runs/{run_id}"

        page = (await hers.get(f"/runs/{run_id}")).text
        assert "It did not happen" in page
        assert f'action="{path}"' not in page
        assert (await hers.post(path, data={"finding": "happened"})).status_code == 409
    assert db.read_now(_finding, world.acme.id, made[-1]) == ("unknown", "did_not")


def _finding(session: Session, tenant_id: str, call_id: str) -> tuple[str, str | None]:
    call = session.get_one(ToolCall, (tenant_id, call_id))
    return call.state, call.resolved_as
