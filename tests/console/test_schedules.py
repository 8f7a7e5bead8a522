"""A page says how a rule was understood; ending a schedule twice is no fault."""

import pytest
from sqlmodel import Session, select

from app.console import schedule_words
from app.kernel import db, i18n
from app.runs.run_models import AgentSchedule
from tests.people import World


def _one(session: Session) -> AgentSchedule | None:
    return session.exec(select(AgentSchedule)).first()


@pytest.mark.requirement("UI-24", "UI-25")
async def test_acts_on_a_schedule_are_posts_and_lead_back_to_its_agent(world: World) -> None:
    path = f"/agents/{world.acme.agents['stock'].id}"
    work = {"instruction": "Look.", "rule": "every 2 hours"}
    async with world.client(world.acme["alice"]) as hers:
        await hers.post(f"{path}/schedules", data=work)
        made = db.read_now(_one)
        assert made is not None
        here = f"/schedules/{made.id}"
        for paused in ("true", "true", "false", "false"):
            answer = await hers.post(f"{here}/pause", data={"paused": paused})
            assert answer.headers["location"] == path
            row = db.read_now(_one)
            assert row is not None
            assert (row.paused_at is not None) is (paused == "true")
        assert (await hers.post(f"{here}/pause", data={"paused": "perhaps"})).status_code == 422
        assert (await hers.get(f"{here}/pause")).status_code == 405
        assert (await hers.post(f"{here}/removal")).status_code == 303
        assert (await hers.post(f"{here}/removal")).status_code == 404
        assert (await hers.get(f"{here}/removal")).status_code == 404


@pytest.mark.requirement("UI-26")
async def test_the_page_says_what_was_understood_and_the_next_time(world: World) -> None:
    path = f"/agents/{world.acme.agents['stock'].id}"
    async with world.client(world.acme["alice"]) as hers:
        odd = await hers.post(f"{path}/schedules", data={"instruction": "Look.", "rule": "at noon"})
        made = await hers.post(
            f"{path}/schedules", data={"instruction": "Look.", "rule": "每周一、三 9点"}
        )
        page = (await hers.get(path)).text

    assert (odd.status_code, made.status_code) == (422, 303)
    assert "“every day 9:00”, “weekdays at 9:00”, “every monday at 9:00”" in odd.text
    assert "Every Monday and Wednesday at 09:00" in page
    row = db.read_now(_one)
    assert row is not None
    assert row.next_at is not None
    assert f'next <time datetime="{row.next_at:%Y-%m-%dT%H:%M:%SZ}"' in page


@pytest.mark.parametrize(
    ("tag", "rule", "words"),
    [
        ("en", "daily at 9", "Every day at 09:00"),
        ("en", "monday to friday 9", "On weekdays at 09:00"),
        ("en", "周末 10:00", "On weekends at 10:00"),
        ("en", "每小时", "Every hour"),
        ("en", "every 120 minutes", "Every 2 hours"),
        ("en", "every 90 minutes", "Every 90 minutes"),
        ("zh-CN", "weekdays 9", "工作日 09:00"),
        ("zh-CN", "mondays 9", "每星期一 09:00"),
        ("zh-CN", "every 2 hours", "每 2 小时"),
        ("en", "of an older time", "of an older time"),
    ],
)
def test_a_rule_is_told_in_the_readers_language(tag: str, rule: str, words: str) -> None:
    with i18n.speaking(tag):
        assert schedule_words.understood(rule) == words
