"""Programs read runs, without a thought in them, and stop those of their user (RUN-113)."""

import pytest
from sqlmodel import select

from app.aun.models import Message
from app.identity import delegations
from app.identity.oauth import operator
from app.identity.principal import Scope
from app.kernel import db
from app.kernel.db import Work
from app.runs.run_models import Run
from tests.console import run_stage
from tests.console.run_rows import RunRows
from tests.people import World

THOUGHT = "only for Alice and auditors"


def usual(rows: RunRows) -> None:
    rows.begin()
    heard = select(Message).where(Message.conversation_id == rows.conversation_id)
    message = rows.work.session.exec(heard).first()
    assert message is not None
    rows.hear(message)
    rows.think(THOUGHT, text=THOUGHT)
    rows.call("expense.report.list", arguments_redacted={"state": "draft"}, audit_seq=7)
    rows.become("suspended", tokens_used=1_280)


def bearer(login: str, agent: str) -> dict[str, str]:
    token = db.transact_now(operator.mint, f"acme/{login}", agent, "api")
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.requirement("RUN-113", "UI-12")
async def test_a_run_is_read_by_those_it_concerns_and_holds_no_thought(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        run_id = stage.run(usual)

        listed = (await hers.get("/v1/runs")).json()
        shown = await hers.get(f"/v1/runs/{run_id}")

        assert [each["runId"] for each in listed["runs"]] == [run_id]
        assert (listed["total"], listed["next"]) == (1, None)
        told = shown.json()
        assert (told["state"], told["tokensUsed"], told["turn"]) == ("suspended", 1_280, 1)
        assert [each["messageId"] for each in told["inputs"]] == [stage.newest().id]
        [turn] = told["turns"]
        assert [each["model"] for each in turn["requests"]] == ["offline planner"]
        [call] = turn["calls"]
        assert (call["tool"], call["auditSeq"]) == ("expense.report.list", 7)
        assert call["arguments"] == {"state": "draft"}
        assert THOUGHT not in shown.text
        assert (await hers.get("/v1/runs", params={"state": "failed"})).json()["runs"] == []

    for login in ("axel", "ada", "olga"):
        async with world.client(world.acme[login]) as other:
            assert (await other.get(f"/v1/runs/{run_id}")).json()["runId"] == run_id
            assert (await other.get("/v1/runs")).json()["total"] == 1
    for user in (world.acme["bob"], world.globex["gina"]):
        async with world.client(user) as other:
            unknown = await other.get(f"/v1/runs/{'0' * 26}")
            theirs = await other.get(f"/v1/runs/{run_id}")
            assert theirs.status_code == unknown.status_code == 404
            assert (await other.get("/v1/runs")).json()["runs"] == []


@pytest.mark.requirement("RUN-113", "RUN-69")
async def test_whoever_acts_for_the_user_stops_a_run_and_nobody_elses(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
    run_id = stage.run(lambda rows: rows.begin(state="suspended"))
    for login in ("alice", "bob"):
        db.transact_now(_let_act, world, login)
    path = f"/v1/runs/{run_id}/cancellation"
    program = world.anonymous()

    assert (await program.post(path)).status_code == 401
    others = await program.post(path, headers=bearer("bob", "expenses"))
    assert others.status_code == 404
    async with world.client(world.acme["axel"]) as auditor:
        assert (await auditor.post(path)).status_code == 403
    assert _state(world, run_id) == "suspended"

    stopped = await program.post(path, headers=bearer("alice", "expenses"))
    assert stopped.json()["state"] == "canceled"
    again = await program.post(path, headers=bearer("alice", "expenses"))
    assert again.json()["endedAt"] == stopped.json()["endedAt"]
    assert _state(world, run_id) == "canceled"


def _let_act(work: Work, world: World, login: str) -> None:
    acme = world.acme
    delegations.make_for(work, acme[login], acme.agents["expenses"], [Scope.COMMANDS_INVOKE])


def _state(world: World, run_id: str) -> str:
    return db.read_now(lambda session: session.get_one(Run, (world.acme.id, run_id)).state)
