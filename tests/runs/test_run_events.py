"""What the event streams say of runs: everything once, ids and states only."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from app.runs.models.scripted import Call, Step
from tests.api import streaming
from tests.api.streaming import Client, Frame, SignedIn
from tests.runs.playing import CREATE, TRIP, Stage, playing

pytestmark = pytest.mark.anyio


def signed_in(stage: Stage, login: str) -> SignedIn:
    """Somebody of Acme, in a browser whose cookie a bare client can send."""
    user = stage.world.acme[login]
    ((name, value),) = stage.world.client(user).cookies.items()
    return SignedIn(stage.tenant_id, user.id, f"{name}={value}", "")


async def heard(client: Client, until: str) -> list[Frame]:
    """Everything up to the state of a run that is waited for."""
    frames: list[Frame] = []
    async with asyncio.timeout(60):
        while (frame := await client.frame()) is not None:
            frames.append(frame)
            if frame.name == "run.state" and frame.data["data"]["state"] == until:
                break
    return frames


def states(frames: Sequence[Frame]) -> list[Any]:
    return [each.data["data"]["state"] for each in frames if each.name == "run.state"]


@pytest.mark.requirement("F-83", "RUN-80", "RUN-6")
async def test_two_pages_hear_everything_once_though_one_was_cut_off_in_between(
    stage: Stage,
) -> None:
    model = playing(Step(calls=[Call(CREATE, TRIP)]), Step(gate="last"))
    alice = signed_in(stage, "alice")
    with streaming.served() as port:
        async with Client.connected(port, alice) as steady:
            async with Client.connected(port, alice) as cut_off:
                stage.say("alice", "expenses", "Begin")
                async with stage.in_play():
                    await asyncio.wait_for(model.gate("last").reached.wait(), 60)
                    early = await heard(cut_off, "running")
                    await cut_off._writer.drain()
                    cut_off._writer.close()
                    model.gate("last").open()
                whole = await heard(steady, "completed")
            async with Client.connected(port, alice, early[-1].id) as again:
                late = await heard(again, "completed")

    assert states(whole) == states([*early, *late]) == ["queued", "running", "completed"]
    ids = [each.id for each in whole if each.name != "ready"]
    assert ids == [each.id for each in (*early, *late) if each.name != "ready"]
    assert len(set(ids)) == len(ids)
    names = {each.name for each in whole}
    assert {"run.state", "run.turn", "run.usage", "tool_call.state", "input.state"} <= names
    about_runs = [each for each in whole if each.name.startswith(("run.", "tool_call.", "input."))]
    assert not [each for each in about_runs if "Trip" in str(each.data)]


@pytest.mark.requirement("RUN-80")
async def test_nobody_hears_of_somebody_elses_run(stage: Stage) -> None:
    playing(Step(calls=[Call(CREATE, TRIP)]), Step(), Step())
    bob = signed_in(stage, "bob")
    stage.enable("bob")
    with streaming.served() as port:
        async with Client.connected(port, bob) as client:
            await stage.tell("Begin", "alice")
            await stage.tell("Begin", "bob")
            frames = await heard(client, "completed")

    assert states(frames) == ["queued", "running", "completed"]
    mine = {run.id for run in stage.runs() if run.user_id == stage.world.acme["bob"].id}
    assert {each.data["subject"] for each in frames if each.name == "run.state"} == mine
