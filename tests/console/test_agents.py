"""The directory of agents, an agent's profile, its runs, and when it works for somebody."""

from decimal import Decimal

import pytest
from sqlmodel import Session, select

from app.identity.models import Agent, AgentRelease
from app.kernel import db
from app.runs.run_models import AgentPause, AgentSchedule
from tests.console import run_stage
from tests.people import World


def _release(session: Session, agent: Agent) -> AgentRelease:
    query = select(AgentRelease).where(AgentRelease.agent_id == agent.id)
    return session.exec(query.order_by(AgentRelease.number.desc())).first()  # type: ignore[attr-defined, return-value]


def _schedules(session: Session) -> list[AgentSchedule]:
    return list(session.exec(select(AgentSchedule)).all())


@pytest.mark.requirement("UI-8", "UI-31")
async def test_everybody_meets_the_agents_and_sees_what_each_may_do_for_them(world: World) -> None:
    acme = world.acme
    stock = acme.agents["stock"]
    async with world.client(acme["alice"]) as hers:
        listed = (await hers.get("/agents")).text
        assert f'href="/agents/{stock.id}"' in listed
        assert "Acts for you" in listed
        assert "Does not act for you" in listed
        assert "No agent matches" in (await hers.get("/agents?q=nosuchagent")).text
        assert 'href="/agents" aria-current="page"' in listed

        page = (await hers.get(f"/agents/{stock.id}")).text
        assert "It may answer, not answer, answer several times, or start a conversation." in page
        assert f'action="/settings/delegations/{acme.delegations["alice"].id}/pause"' in page
        assert "offline planner" in page
        assert "24 steps" in page
        assert "200,000 tokens" in page
        assert "It has done nothing for you yet." in page
        assert "/admin/agents/" not in page.partition("releases-title")[0].partition("<main")[2]
        other = (await hers.get(f"/agents/{acme.agents['expenses'].id}")).text
        assert f"/settings/delegations/new?agent={acme.agents['expenses'].id}" in other
        assert "/schedules" not in other, "what may not act for her begins nothing either"

        stage = await run_stage.opened(world, hers)
        run_id = stage.run(lambda rows: rows.begin())
        page = (await hers.get(f"/agents/{stage.agent.id}")).text
        assert f'href="/runs/{run_id}"' in page
        assert run_id in (await hers.get(f"/agents/{stage.agent.id}/runs")).text
    async with world.client(acme["bob"]) as his:
        assert run_id not in (await his.get(f"/agents/{stage.agent.id}/runs")).text
        assert (await his.get(f"/agents/{world.globex.agents['stock'].id}")).status_code == 404


@pytest.mark.requirement("RUN-54", "UI-26")
async def test_a_person_says_when_an_agent_works_for_them(world: World) -> None:
    acme = world.acme
    path = f"/agents/{acme.agents['stock'].id}"
    work = {"instruction": "Look what runs low.", "rule": "weekdays 9:00"}
    async with world.client(acme["alice"]) as hers, world.client(acme["bob"]) as his:
        wrong = await hers.post(f"{path}/schedules", data=work | {"rule": "now and then"})
        assert wrong.status_code == 422
        assert "Write when, such as" in wrong.text
        assert "Look what runs low.</textarea>" in wrong.text, "what was typed is kept"

        made = await hers.post(f"{path}/schedules", data=work)
        assert made.headers["location"] == path
        [schedule] = db.read_now(_schedules)
        assert schedule.user_id == acme["alice"].id
        assert schedule.next_at is not None
        page = (await hers.get(path)).text
        assert "On weekdays at 09:00" in page
        assert "next <time" in page
        assert "Look what runs low." not in (await his.get(path)).text

        for act in ("pause", "removal"):
            theirs = await his.post(f"/schedules/{schedule.id}/{act}", data={"paused": "true"})
            assert theirs.status_code in {404, 422}
        await hers.post(f"/schedules/{schedule.id}/pause", data={"paused": "true"})
        assert "It rests." in (await hers.get(path)).text
        await hers.post(f"/schedules/{schedule.id}/pause", data={"paused": "false"})
        asked = await hers.get(f"/schedules/{schedule.id}/removal")
        assert "Remove this schedule?" in asked.text
        assert len(db.read_now(_schedules)) == 1, "asking changes nothing"
        assert (await hers.post(f"/schedules/{schedule.id}/removal")).headers["location"] == path
        assert db.read_now(_schedules) == []


@pytest.mark.requirement("RUN-105")
async def test_an_administrator_sets_model_limits_and_manners_of_the_next_release(
    world: World,
) -> None:
    agent = world.acme.agents["stock"]
    path = f"/admin/agents/{agent.id}"
    form = {
        "name": "Stock",
        "instructions": "Count well.",
        "admin_user_id": world.acme["ada"].id,
        "version": "1",
        "model": "default",
        "closing_text": "publish",
        "participation": "open",
        "contacts": "expenses, expenses",
        "steps": "12",
        "cost": "0.25",
    }
    async with world.client(world.acme["ada"]) as admin:
        for wrong, words in (
            ({"model": "nosuch"}, "There is no such model here."),
            ({"contacts": "nosuch"}, "There is no agent with the code nosuch."),
            ({"steps": "0"}, "This must be 1 or more."),
            ({"cost": "much"}, "Write a number."),
            ({"closing_text": "shout"}, "Choose one of the offered values."),
        ):
            refused = await admin.post(path, data=form | wrong)
            assert refused.status_code == 422
            assert words in refused.text

        assert (await admin.post(path, data=form)).status_code == 303
        assert (await admin.post(f"{path}/releases")).status_code == 303
        content = db.read_now(_release, agent).content
        assert content["closing_text"] == "publish"
        assert content["participation"] == "open"
        assert content["contacts"] == ["expenses"]
        assert content["limits"] == {"steps": 12, "cost_micros": 250_000}
        assert "model" not in content, "what the product has by itself is not repeated"
        edit = (await admin.get(f"{path}/edit")).text
        assert 'name="cost" type="text" value="0.25"' in edit
        assert f'value="{Decimal(12)}"' in edit
    async with world.client(world.acme["alice"]) as hers:
        assert "12 steps" in (await hers.get(f"/agents/{agent.id}")).text


@pytest.mark.requirement("RUN-113")
async def test_an_administrator_lets_an_agent_rest_for_everybody(world: World) -> None:
    agent = world.acme.agents["stock"]
    path = f"/admin/agents/{agent.id}"
    async with world.client(world.acme["ada"]) as admin, world.client(world.acme["alice"]) as hers:
        assert (await hers.post(f"{path}/pause", data={"paused": "true"})).status_code in {403, 404}
        await admin.post(f"{path}/pause", data={"paused": "true"})
        assert db.read_now(lambda s: len(s.exec(select(AgentPause)).all())) == 1
        for page in (await admin.get(path), await hers.get(f"/agents/{agent.id}")):
            assert "It is paused for everybody." in page.text
        await admin.post(f"{path}/pause", data={"paused": "false"})
        assert "It is paused for everybody." not in (await hers.get(f"/agents/{agent.id}")).text
