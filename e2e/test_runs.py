"""Runs in a real browser: thoughts as they grow, cards as they change, stop, and its page.

The rows are what the loop writes; the stream, the pages and the hub are the real ones.
"""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.async_api import Page, expect
from sqlmodel import col, select

from app.console.live import stream
from app.kernel import clock, db, deltas
from app.kernel.db import Work
from app.runs import told
from app.runs.run_models import ModelRequest, Run, RunInput, ToolCall
from e2e.board import House, house
from e2e.conftest import Axe, PageFor
from tests.console import run_stage
from tests.console.run_rows import RunRows
from tests.console.run_stage import Stage

THOUGHT = "Three drafts; the October one is meant."
NOISE = ["<b>bold</b> & <script>alert(1)</script> ", "second piece ", "third"]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        house(tmp_path_factory.mktemp("runs"), monkeypatch) as made,
    ):
        end = stream.listen()  # what passes goes out too, as from a server that was started
        yield made
        end()


async def staged(lived: House) -> Stage:
    """Alice and the agent, in the one conversation they have, where nothing goes on."""
    await db.transaction(over)
    async with lived.world.client(lived.world.acme["alice"]) as hers:
        return await run_stage.opened(lived.world, hers)


def over(work: Work) -> None:
    """Every run has ended, some time ago."""
    for run in work.session.exec(select(Run).where(col(Run.ended_at).is_(None))).all():
        run.state, run.ended_at = "completed", clock.now()
        work.session.add(run)


def thinking(rows: RunRows) -> None:
    """It has just begun to ask the model."""
    rows.at = clock.now() - timedelta(seconds=3)
    rows.begin()
    rows.turn = 1
    rows.ask(state="started", ended_at=None, finish=None)


def calling(rows: RunRows) -> None:
    """It waits for somebody, after a thought and some calls."""
    rows.at = clock.now() - timedelta(seconds=3)
    rows.begin()
    rows.think(THOUGHT)
    rows.call("expense.report.list", result={"outcome": "done", "result": {"total": 3}})
    rows.call("expense.report.submit", state="failed", stage="state_check", timings={"load": 1})
    rows.call("expense.payment.send", state="unknown")
    rows.wait("message")


def answered(work: Work, stage: Stage, run_id: str) -> None:
    """The response was accepted, and a call began."""
    run = work.session.get_one(Run, (stage.agent.tenant_id, run_id))
    rows = RunRows(work, stage.agent, stage.alice_id, stage.conversation_id, clock.now())
    rows.run_id, rows.turn = run_id, 1
    request = work.session.exec(select(ModelRequest).where(ModelRequest.run_id == run_id)).one()
    request.state, request.ended_at = "done", clock.now()
    work.session.add(request)
    rows._entry("response", {"thoughts": [THOUGHT], "text": "", "calls": []})
    made = rows.call("read_record", state="started", ended_at=None)
    told.turn(work, run, 1, request.thought_id)
    told.call(work, run, made)


def done(work: Work, stage: Stage, run_id: str) -> None:
    """The call is done."""
    run = work.session.get_one(Run, (stage.agent.tenant_id, run_id))
    made = work.session.exec(select(ToolCall).where(ToolCall.run_id == run_id)).one()
    made.state, made.ended_at, made.rev = "done", clock.now(), 2
    work.session.add(made)
    work.session.flush()
    told.call(work, run, made)


def ended(work: Work, stage: Stage, run_id: str) -> None:
    """The end of the run is stored, with what it had heard."""
    run = work.session.get_one(Run, (stage.agent.tenant_id, run_id))
    run.state, run.reason, run.ended_at, run.version = "canceled", "by_user", clock.now(), 9
    work.session.add(run)
    for row in work.session.exec(select(RunInput).where(RunInput.run_id == run_id)).all():
        row.state = "canceled"
        work.session.add(row)
        work.session.flush()
        told.input(work, row, stage.conversation_id, watcher_id=run.user_id)
    work.session.flush()
    told.run(work, run)


def announce(work: Work, stage: Stage, run_id: str) -> str:
    """What the loop says when a request goes out, and that the run works; the thought's id."""
    request = work.session.exec(select(ModelRequest).where(ModelRequest.run_id == run_id)).one()
    told.run(work, work.session.get_one(Run, (stage.agent.tenant_id, run_id)))
    work.announce(
        told.Began(
            tenant_id=stage.agent.tenant_id,
            user_id=stage.alice_id,
            run_id=run_id,
            conversation_id=stage.conversation_id,
            turn=1,
            thought_id=request.thought_id,
            attempt=1,
        )
    )
    return request.thought_id


async def opened(lived: House, page_for: PageFor, path: str, **look: str | int | bool) -> Page:
    page = await lived.page(page_for, lived.world.acme["alice"], **look)
    await page.goto(path)
    if look.get("javascript", True):
        await expect(page.locator("html")).to_have_attribute("data-live", "up")
    return page


@pytest.mark.requirement("UI-5", "UI-10", "UI-36", "UI-87", "CON-56", "CON-59", "CON-113")
async def test_a_run_is_watched_from_its_first_thought_to_its_end(
    lived: House, page_for: PageFor
) -> None:
    stage = await staged(lived)
    page = await opened(lived, page_for, stage.path)
    strip = page.locator(".strip")
    await expect(strip).to_have_count(0)
    await expect(page.locator(".composer-mode")).to_be_hidden()

    run_id = stage.run(thinking)
    thought_id = await db.transaction(announce, stage, run_id)

    await expect(strip).to_contain_text("Working")
    await expect(page.locator(".composer-mode")).to_be_visible()
    node = page.locator(f"#thought-{thought_id}-1-text")
    await expect(page.locator(f"#thought-{thought_id}-head")).to_contain_text("Thinking…")
    height = await page.locator(f"#thought-{thought_id}").evaluate("(each) => each.offsetHeight")
    at = 0
    for piece in [*NOISE[:2], NOISE[1], NOISE[2]]:  # one of them twice
        start = 0 if piece == NOISE[0] else sum(map(len, NOISE[: NOISE.index(piece)]))
        deltas.append(
            lived.world.acme.id, stage.alice_id, f"thought-{thought_id}-1-text", start, piece
        )
        at = start + len(piece)
    await expect(node).to_have_text("".join(NOISE))
    assert at == sum(map(len, NOISE))
    grown = await page.locator(f"#thought-{thought_id}").evaluate("(each) => each.offsetHeight")
    assert grown == height, "the line stays as high as it was"

    await db.transaction(answered, stage, run_id)
    await expect(page.locator(f"#thought-{thought_id}-head")).to_contain_text("Thought")
    await expect(node).to_be_hidden()
    card = page.locator(".tool", has_text="Read a record").last
    await expect(card).to_contain_text("Running")
    await page.locator(f"#thought-{thought_id}-head").click()
    await expect(node).to_have_text(THOUGHT)
    await card.locator("summary").first.click()
    await db.transaction(done, stage, run_id)
    await expect(card).to_contain_text("Done")
    await expect(node).to_be_visible()
    await expect(card.locator("details").first).to_have_attribute("open", "")

    await page.locator("#composer-text").fill("half a sentence")
    await strip.get_by_role("button", name="Stop").click()
    await expect(strip).to_contain_text("Stopping…")
    await expect(page.locator("#messages")).not_to_contain_text("Stopped")
    await expect(page.locator("#composer-text")).to_have_value("half a sentence")
    await db.transaction(ended, stage, run_id)
    await expect(strip).to_have_count(0)
    await expect(page.locator(f"#run-{run_id}-end")).to_contain_text("Stopped by Alice")
    await expect(page.locator(".composer-mode")).to_be_hidden()
    await expect(page.locator(f"#thought-{thought_id}")).to_have_count(1)
    await page.reload()
    await expect(page.locator(f"#run-{run_id}-end")).to_contain_text("Stopped by Alice")


@pytest.mark.requirement("UI-12", "UI-25", "UI-91", "UI-107", "RUN-113")
@pytest.mark.parametrize(
    ("theme", "lang", "width"), [("light", "en", 1280), ("dark", "zh-CN", 320)]
)
async def test_the_pages_of_runs_and_agents_are_for_everybody(
    lived: House, page_for: PageFor, axe: Axe, theme: str, lang: str, width: int
) -> None:
    stage = await staged(lived)
    run_id = stage.run(calling)
    work = {"instruction": "Look what runs low.", "rule": "weekdays 9:00"}
    agent = f"/agents/{stage.agent.id}"
    async with lived.world.client(lived.world.acme["alice"]) as hers:
        await hers.post(f"{agent}/schedules", data=work)
    page = await opened(lived, page_for, stage.path, theme=theme, lang=lang, width=width)
    lane = await page.locator('a[href^="/lanes/"]').first.get_attribute("href")

    for path in (stage.path, f"/runs/{run_id}", agent, f"{agent}/runs", str(lane)):
        await page.goto(path)
        for summary in await page.locator(".thought summary, .tool summary").all():
            await summary.click()
        assert await axe(page) == [], path
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, path
    await page.goto(agent)
    await page.locator('a[href$="/removal"]').first.click()
    assert await axe(page) == []


@pytest.mark.requirement("UI-25", "UI-10")
async def test_a_run_is_read_and_stopped_without_script(lived: House, page_for: PageFor) -> None:
    stage = await staged(lived)
    run_id = stage.run(calling)
    page = await opened(lived, page_for, stage.path, javascript=False)
    await expect(page.get_by_text(THOUGHT).last).to_be_hidden()
    await page.locator(".thought summary").last.click()
    await expect(page.get_by_text(THOUGHT).last).to_be_visible()

    await (
        page.locator(".strip", has=page.locator(f'a[href="/runs/{run_id}"]'))
        .get_by_role("button", name="Stop")
        .click()
    )

    await expect(page.get_by_text("The run was stopped.")).to_be_visible()
    assert re.search(stage.path, page.url)
    await expect(page.locator(f"#run-{run_id}-end")).to_contain_text("Stopped by Alice")
    await page.goto(f"/runs/{run_id}")
    await expect(page.locator("h1")).to_contain_text("Run of")
    await expect(page.get_by_text("Stopped by Alice")).to_be_visible()
