"""Journeys of people who run commands: with script and without, by keyboard, on a phone."""

import re
from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser, Page, Route, expect

from e2e.conftest import Axe, Watch
from e2e.doors import Doors, demo_in
from e2e.every_page import EMPLOYEE, OWNER, Demo

LOOKS = [("light", "en", 1280), ("dark", "zh-CN", 320)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo_in(tmp_path_factory.mktemp("commands")) as running:
        yield running


@pytest.fixture
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    yield made
    await made.close()


async def opened(
    doors: Doors,
    quiet: Watch,
    theme: str = "light",
    lang: str = "en",
    width: int = 1280,
    who: str = EMPLOYEE,
) -> Page:
    page = await doors.page(who, theme, lang, width)
    quiet.over(page.context)
    return page


async def is_sound(page: Page, axe: Axe) -> None:
    assert await axe(page) == []
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")


@pytest.mark.requirement("UI-103", "UI-83", "UI-16", "UI-19")
async def test_a_report_is_rehearsed_made_filled_and_submitted(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    for theme, lang, width in LOOKS:
        page = await opened(doors, quiet, theme, lang, width)
        await page.goto("/commands/expense.report.create")
        await page.locator("button[value=example]").click()
        await page.locator("[name='/title']").fill(f"Shanghai, {theme}")
        await page.locator("[hx-post$='/previews']").click()
        await expect(page.locator("#preview-title")).to_be_focused()
        await expect(page.locator("[name='/title']")).to_have_value(f"Shanghai, {theme}")
        await is_sound(page, axe)

        await page.locator("[data-call]").click()
        await page.wait_for_url("**/calls/*")
        await expect(page.locator("main")).to_contain_text(f"Shanghai, {theme}")
        await is_sound(page, axe)

        await page.goto("/commands/expense.report.submit")
        await page.locator("select[name='/targetRecordId']").select_option(
            label=await _option(page, f"Shanghai, {theme}")
        )
        await page.locator("[data-call]").click()
        await expect(page.locator("#refusal")).to_be_focused()
        await expect(page.locator("#refusal")).to_contain_text("assertion_failed")
        await is_sound(page, axe)
        await page.close()


async def _option(page: Page, part: str) -> str:
    return await page.locator("select[name='/targetRecordId'] option", has_text=part).inner_text()


@pytest.mark.requirement("UI-25", "UI-103")
async def test_a_form_works_without_script(
    doors: Doors, browser: Browser, quiet: Watch, demo: Demo
) -> None:
    context = await browser.new_context(
        base_url=demo.server.base_url,
        java_script_enabled=False,
        storage_state=await doors.state_of(EMPLOYEE),
        locale="en",
    )
    quiet.over(context)
    page = await context.new_page()

    await page.goto("/commands/expense.report.create")
    await page.get_by_role("button", name="New expense report").click()
    await expect(page.locator("#refusal")).to_contain_text("Some fields need another look.")
    await page.get_by_role("link", name="Title").click()
    await page.get_by_label("Title").fill("Without script")
    await page.get_by_label("Month").fill("2026-10")
    await page.get_by_label("Title").press("Enter")  # which only checks
    await expect(page.get_by_role("heading", name="What it would do")).to_be_visible()
    await page.get_by_role("button", name="New expense report").click()
    await expect(page.get_by_text("Done", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Undo: Discard expense report").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Discard expense report")
    await expect(page.locator("option[selected]")).to_contain_text("Without script")
    await page.get_by_role("button", name="Discard expense report").click()
    await expect(page).to_have_url(re.compile(r"/approvals/\w{26}"))
    await context.close()


@pytest.mark.requirement("UI-90", "UI-21")
async def test_the_catalogue_is_searched_and_a_command_run_by_keyboard(
    doors: Doors, quiet: Watch
) -> None:
    page = await opened(doors, quiet)
    await page.goto("/commands")
    await page.get_by_role("searchbox").focus()
    await page.keyboard.type("list reports")
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="List expense reports").focus()
    await page.keyboard.press("Enter")
    await page.get_by_label("Month").focus()
    await page.keyboard.type("2026-10")
    await page.keyboard.press("Enter")  # a reading command has nothing to check
    await expect(page.get_by_role("heading", name="Result")).to_be_focused()


@pytest.mark.requirement("UI-17")
async def test_a_lost_answer_is_looked_up_and_not_asked_for_again(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    page = await opened(doors, quiet)
    quiet.tolerate("net::ERR", "Failed to fetch", "htmx", "Failed to load resource")
    await page.goto("/commands/expense.report.create")
    await page.locator("[name='/title']").fill("Lost and found")
    await page.locator("[name='/period']").fill("2026-10")
    sent = 0

    async def lose(route: Route) -> None:
        nonlocal sent
        sent += 1
        await route.fetch()  # it arrives and runs
        await route.abort()  # the answer does not

    await page.route("**/calls", lose)
    await page.locator("[data-call]").click()
    await expect(page.locator("#lost")).to_be_focused()
    await expect(page.locator("[data-call]")).to_be_hidden()
    await is_sound(page, axe)
    await page.get_by_role("link", name="Look it up").click()

    await expect(page.get_by_text("Done", exact=True)).to_be_visible()
    await expect(page.locator("main")).to_contain_text("Lost and found")
    assert sent == 1


@pytest.mark.requirement("UI-103")
async def test_what_was_typed_survives_a_reload_until_it_was_run(
    doors: Doors, quiet: Watch
) -> None:
    page = await opened(doors, quiet)
    await page.goto("/commands/expense.report.create")
    await page.locator("[name='/title']").fill("Half a title")
    await page.goto("/commands")
    await page.goto("/commands/expense.report.create")
    await expect(page.locator("[name='/title']")).to_have_value("Half a title")

    await page.locator("[name='/period']").fill("2026-10")
    await page.locator("[data-call]").click()
    await page.wait_for_url("**/calls/*")
    await page.goto("/commands/expense.report.create")
    await expect(page.locator("[name='/title']")).to_have_value("")


@pytest.mark.requirement("CMD-22")
async def test_an_administrator_asks_why_a_command_is_hidden(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    for theme, lang, width in LOOKS:
        page = await opened(doors, quiet, theme, lang, width, OWNER)
        await page.goto("/commands/expense.line.add")
        await page.locator("details.who > summary").click()
        await is_sound(page, axe)
        await page.locator("details.who a[href$='/why']").click()
        await page.locator("select[name=user]").select_option(index=1)
        await page.locator("form[role=search] button").click()
        await expect(page.locator("#verdict-title")).to_be_visible()
        await is_sound(page, axe)
        await page.close()
