"""The application with an agent in it whose model says what a test wrote down (console.md, 10.2).

Everything is real but the model: the pages, the stream, the pipeline, the loop. Nobody works until
a test lets the agent play, or has a scheduler `at_work`; so what is in flight is known.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from app.commands import approval_closing
from app.commands.approval_models import Approval
from app.console.live import stream
from app.kernel import clock, db, settings
from app.runs import cancelling, lanes, request
from app.runs.models.scripted import Call, Step
from app.runs.scheduler import Scheduler
from e2e.board import House, house
from e2e.conftest import PageFor
from tests.runs.playing import DISCARD, REMIND, TOLD, Stage, about, playing

ALICE = "Alice Wang 王爱丽"
DELETE = {"operationType": "DELETE"}


def remind(report: str, message: str = "") -> Call:
    """A call that a person has to assent to: it leaves the house."""
    return Call(REMIND, about(report, **({"message": message} if message else {})))


def discard(report: str) -> Call:
    """A call that a person has to assent to: nothing brings a draft back."""
    return Call(DISCARD, {"targetRecordId": report, **DELETE})


@dataclass
class Scene:
    """Acme's people with the agent of expenses, served."""

    house: House
    stage: Stage

    async def page(self, page_for: PageFor, path: str, who: str = "alice", **look: Any) -> Page:
        """A page of somebody in a browser of their own, which hears of what happens."""
        page = await self.house.page(page_for, self.house.world.acme[who], **look)
        await self.go(page, path)
        return page

    async def go(self, page: Page, path: str) -> None:
        """Lead a page somewhere."""
        await page.goto(path)
        await expect(page.locator("html")).to_have_attribute("data-live", "up")

    async def asks(self, *calls: Call, then: tuple[Step, ...] = (), **said: Any) -> Approval:
        """The agent makes these calls for alice, and waits for a word on the first that needs one.

        `then` is what its model says afterwards; the newest request is the answer.
        """
        playing(Step(calls=list(calls)), *then)
        await self.stage.tell("Go on", **said)
        found = self.stage.open_approvals()
        assert found, self.stage.results()
        return found[-1]

    async def asks_to_remind(self, *then: Step, message: str = "", **said: Any) -> Approval:
        """The agent asks whether it may remind the approver of a new report."""
        report = await self.stage.desk.submitted("alice", 5_000)
        return await self.asks(remind(report, message), then=then, **said)

    async def asks_to_discard(self, *then: Step, **said: Any) -> Approval:
        """The agent asks whether it may throw a new draft away."""
        report = await self.stage.desk.draft("alice", 5_000)
        return await self.asks(TOLD, discard(report), then=then, **said)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Scheduler]:
        """Agents work meanwhile, on whatever comes, as in a server that was started."""
        scheduler = Scheduler()
        scheduler.start()
        try:
            yield scheduler
        finally:
            await scheduler.stop()

    @property
    def talk(self) -> str:
        """The page of the conversation of alice and the agent, where something was said."""
        found = self.stage.inputs("expenses")[-1]
        [lane] = [each for each in self.stage.lanes() if each.id == found.lane_id]
        return f"/conversations/{lane.conversation_id}"

    async def over(self) -> None:
        """Nothing goes on any more, and nobody waits for anything."""
        self.house.control.reset()
        await self.stage.hear()
        for lane in self.stage.lanes():
            db.transact_now(lanes.drop_queued, lane.tenant_id, lane.id, "context_reset")
        for run in self.stage.runs():
            db.transact_now(cancelling.cancel, run, None, "context_reset")
        for each in self.stage.open_approvals():
            db.transact_now(approval_closing.expire, each)

    def in_s(self, seconds: float) -> datetime:
        """So many seconds from now."""
        return clock.now() + timedelta(seconds=seconds)

    def row(self, approval: Approval) -> Approval:
        """A request as it is now."""
        return self.stage.asking.row(approval.id)


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """The application on a fresh database, in which nobody has said anything."""
    with pytest.MonkeyPatch.context() as monkeypatch, house(folder, monkeypatch) as made:
        monkeypatch.setenv("ASSENT_MODEL", "scripted:loop")
        monkeypatch.setattr(request, "FIRST_WAIT_S", 0.0)
        settings.current.cache_clear()
        end = stream.listen()  # what passes goes out too, as from a server that was started
        try:
            yield Scene(made, Stage(made.world))
        finally:
            end()


def path_of(approval: Approval) -> str:
    """The page of a request."""
    return f"/approvals/{approval.id}"


def verb(page: Page) -> Locator:
    """The button that assents."""
    return page.locator("[data-arm]")


async def read(page: Page) -> None:
    """Read everything on a card to its end, and wait until its verb works."""
    for box in await page.locator("[data-read]").all():
        await box.evaluate("each => each.scrollTo(0, each.scrollHeight)")
    await expect(verb(page)).to_have_attribute("aria-disabled", "false")


async def deny(page: Page, reason: str = "") -> None:
    """Say no on the page of a request."""
    await page.locator("summary", has_text="Deny").click()
    await page.locator("textarea[name=reason]").fill(reason)
    await page.get_by_role("button", name="Deny", exact=True).click()
