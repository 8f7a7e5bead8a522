"""Letting an agent rest in one conversation, and letting it begin anew there."""

import re

import pytest
from sqlmodel import Session, select

from app.kernel import db
from app.runs.run_models import Lane, RunInput
from tests.console import run_stage
from tests.people import World


def _lane(session: Session) -> Lane:
    return session.exec(select(Lane)).one()


def _inputs(session: Session) -> list[tuple[str, str | None]]:
    return [(row.state, row.reason) for row in session.exec(select(RunInput)).all()]


@pytest.mark.requirement("RUN-113", "UI-24")
async def test_a_person_lets_an_agent_rest_in_one_conversation_and_begin_anew(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        message = stage.newest()
        stage.run(
            lambda rows: rows.begin().hear(message, state="queued", run_id=None, accepted_at=None)
        )
        page = (await hers.get(stage.path)).text
        [lane_id] = set(re.findall(r'action="/lanes/(\w{26})/pause"', page))

        rested = await hers.post(f"/lanes/{lane_id}/pause", data={"paused": "true"})
        assert rested.headers["location"] == stage.path
        assert db.read_now(_lane).paused_at is not None
        assert "It rests here since" in (await hers.get(stage.path)).text
        await hers.post(f"/lanes/{lane_id}/pause", data={"paused": "false"})
        assert db.read_now(_lane).paused_at is None

        asked = await hers.get(f"/lanes/{lane_id}/reset")
        assert "Begin anew?" in asked.text
        assert db.read_now(_lane).reset_after_seq is None, "asking changes nothing"
        await hers.post(f"/lanes/{lane_id}/reset")
        assert db.read_now(_lane).reset_after_seq == message.log_seq
        assert db.read_now(_inputs) == [("dropped", "context_reset")]
        assert (await hers.post(f"/lanes/{lane_id}/pause", data={})).status_code == 422


@pytest.mark.requirement("UI-26", "RUN-113")
async def test_a_lane_is_its_persons_alone(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
    stage.run(lambda rows: rows.begin())
    lane_id = db.read_now(_lane).id

    for login in ("bob", "ada", "olga"):
        async with world.client(world.acme[login]) as other:
            for path in (f"/lanes/{lane_id}/pause", f"/lanes/{lane_id}/reset"):
                answer = await other.post(path, data={"paused": "true"})
                assert answer.status_code in {404, 422}
            assert (await other.get(f"/lanes/{lane_id}/reset")).status_code == 404
    assert db.read_now(_lane).paused_at is None
    assert db.read_now(_lane).reset_after_seq is None
