"""Journeys of people who ask and decide: armed buttons, keys, two tabs, no script, a phone."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Browser, Page, expect

from app.kernel import clock
from e2e.conftest import Axe, Watch
from e2e.doors import Doors, demo_in
from e2e.every_page import EMPLOYEE, Demo

DISCARD, SEND = "expense.report.discard", "expense.payment.send"
PAYS, ALSO_PAYS = "fiona", "frank"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo_in(tmp_path_factory.mktemp("approvals")) as running:
        yield running


@pytest.fixture
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    yield made
    await made.close()


async def opened(
    doors: Doors,
    quiet: Watch,
    who: str = EMPLOYEE,
    theme: str = "light",
    lang: str = "en",
    width: int = 1280,
) -> Page:
    page = await doors.page(who, theme, lang, width)
    quiet.over(page.context)
    return page


async def is_sound(page: Page, axe: Axe) -> None:
    assert await axe(page) == []
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")


async def ask(page: Page, code: str) -> str:
    """Ask for a command on the first record that may be taken; the path of what waits."""
    if code == DISCARD:
        await write_a_draft(page)
    await page.goto(f"/commands/{code}")
    options = page.locator("select[name='/targetRecordId'] > option:not([value=''])")
    value = await options.first.get_attribute("value")
    await page.locator("select[name='/targetRecordId']").select_option(value)
    await page.locator("#call button:not([hidden])").last.click()
    await page.wait_for_url("**/approvals/*")
    return page.url.removeprefix(str(await page.evaluate("location.origin")))


async def write_a_draft(page: Page) -> None:
    """A report that can be discarded."""
    await page.goto("/commands/expense.report.create")
    await page.locator("[name='/title']").fill("Trip 出差")
    await page.locator("[name='/period']").fill("2026-10")
    await page.locator("#call button:not([hidden])").last.click()
    await page.wait_for_url("**/calls/*")


def change(demo: Demo, path: str, **values: str) -> None:
    """Change an approval as time would."""
    assigned = ", ".join(f"{name} = ?" for name in values)
    query = f"UPDATE approval SET {assigned} WHERE id = ?"  # noqa: S608 - ours
    with closing(sqlite3.connect(demo.server.data / "assent.db", timeout=10)) as connection:
        connection.execute(query, (*values.values(), path.rpartition("/")[2]))
        connection.commit()


def stored(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


@pytest.mark.requirement("UI-77", "UI-72", "UI-83", "UI-92")
async def test_a_person_reads_then_assents_and_sees_what_came_of_it(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    for theme, lang, width in (("light", "en", 1280), ("dark", "zh-CN", 320)):
        page = await opened(doors, quiet, EMPLOYEE, theme, lang, width)
        path = await ask(page, DISCARD)
        verb = page.locator("[data-arm]")
        await expect(page.locator(".countdown")).to_contain_text("9:")
        await is_sound(page, axe)

        for box in await page.locator("[data-read]").all():
            await box.evaluate("each => each.scrollTo(0, each.scrollHeight)")
        await expect(verb).to_have_attribute("aria-disabled", "false")
        await verb.click()
        await expect(page.locator("article .badge-ok")).to_be_visible()
        await expect(page.locator("[data-arm]")).to_have_count(0)
        await is_sound(page, axe)
        await page.goto("/approvals?state=decided")
        await expect(page.locator(f"a[href='{path}']")).to_be_visible()
        await is_sound(page, axe)
        await page.close()


@pytest.mark.requirement("UI-74", "UI-79", "UI-67")
async def test_keys_walk_open_and_deny_and_none_approves(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    page = await opened(doors, quiet)
    path = await ask(page, DISCARD)
    await page.goto("/approvals")
    await is_sound(page, axe)
    for key in "y", "a", "1", "Enter", "Control+Enter":
        await page.keyboard.press(key)
    await page.keyboard.press("j")
    await expect(page.locator(f"a[href='{path}']")).to_be_focused()
    await page.keyboard.press("k")
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**{path}")
    await page.keyboard.press("e")
    await page.wait_for_url(f"**{path}/replacement")
    await is_sound(page, axe)
    await page.goto(path)

    await page.keyboard.press("d")
    reason = page.locator("textarea[name=reason]")
    await expect(reason).to_be_focused()
    await page.keyboard.type("这是 d 和 e")
    await page.keyboard.press("Control+Enter")
    await expect(reason).to_have_value("这是 d 和 e")
    await is_sound(page, axe)
    await page.get_by_role("button", name="Deny", exact=True).click()

    await expect(page.get_by_text("Denied by")).to_be_visible()
    await expect(page.locator("blockquote")).to_have_text("这是 d 和 e")
    await is_sound(page, axe)


@pytest.mark.requirement("UI-71", "UI-77", "SEC-36")
async def test_a_payment_waits_for_a_colleague_who_types_its_number(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    fiona = await opened(doors, quiet, PAYS)
    path = await ask(fiona, SEND)
    await expect(fiona.get_by_text("Waiting for another person")).to_be_visible()
    await expect(fiona.locator("[data-arm]")).to_have_count(0)
    await is_sound(fiona, axe)

    frank = await opened(doors, quiet, ALSO_PAYS)
    await frank.goto("/approvals")
    await expect(frank.locator("#badge-approvals")).to_contain_text("1")
    await frank.locator(f"a[href='{path}']").click()
    number = await frank.locator("[data-type]").inner_text()
    typed, verb = frank.locator("input[name=typed]"), frank.locator("[data-arm]")
    for box in await frank.locator("[data-read]").all():
        await box.evaluate("each => each.scrollTo(0, each.scrollHeight)")
    await typed.fill(number[:-1])
    await expect(frank.locator("[data-missing]")).to_contain_text("Type the name")
    await verb.click(force=True)
    await expect(verb).to_have_attribute("aria-disabled", "true")
    await is_sound(frank, axe)
    await typed.fill(f" {number} ")
    await typed.press("Enter")  # presses nothing
    await expect(verb).to_have_attribute("aria-disabled", "false")
    await verb.click()

    await expect(frank.get_by_text("Done, approved by Frank Weber")).to_be_visible()
    await fiona.reload()
    await expect(fiona.get_by_text("Done, approved by Frank Weber")).to_be_visible()


@pytest.mark.requirement("UI-66", "UI-78")
async def test_of_two_tabs_one_decides_and_the_other_says_so(doors: Doors, quiet: Watch) -> None:
    first = await opened(doors, quiet)
    second = await opened(doors, quiet)
    quiet.tolerate("409")
    path = await ask(first, DISCARD)
    await second.goto(path)
    for page in (first, second):
        for box in await page.locator("[data-read]").all():
            await box.evaluate("each => each.scrollTo(0, each.scrollHeight)")
        await page.bring_to_front()
        await expect(page.locator("[data-arm]")).to_have_attribute("aria-disabled", "false")
    await second.locator("summary", has_text="Deny").click()
    await second.get_by_role("button", name="Deny", exact=True).click()
    await expect(second.get_by_text("Denied by")).to_be_visible()

    await first.bring_to_front()
    await expect(first.get_by_text("Denied by").first).to_be_visible()  # it came by the stream
    await expect(first.locator("[data-arm]")).to_have_count(0)


@pytest.mark.requirement("UI-80")
async def test_at_zero_the_buttons_go_at_once(doors: Doors, quiet: Watch, demo: Demo) -> None:
    page = await opened(doors, quiet)
    path = await ask(page, DISCARD)
    change(demo, path, expires_at=stored(clock.now() + timedelta(seconds=4)))
    await page.reload()
    await expect(page.locator(".countdown-soon")).to_contain_text("0:0")

    await expect(page.locator("[data-arm]")).to_be_hidden(timeout=10_000)
    await expect(page.get_by_text("Expired; it did not run").first).to_be_visible()


@pytest.mark.requirement("UI-25", "CMD-28", "UI-68")
async def test_everything_works_without_script(
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
    path = await ask_without_script(page)

    await page.get_by_role("link", name="Edit…").click()
    await page.get_by_role("button", name="Check and ask anew").click()
    await expect(page.get_by_text("took the place of the earlier one")).to_be_visible()
    assert not page.url.endswith(path)
    await page.get_by_role("button", name="Discard expense report").click()
    await expect(page.get_by_text("Done, approved by")).to_be_visible()

    await ask_without_script(page)
    await page.locator("summary", has_text="Deny").click()
    await page.get_by_label("Reason").fill("no")
    await page.get_by_role("button", name="Deny", exact=True).click()
    await expect(page.get_by_text("Denied. It did not run.")).to_be_visible()
    await context.close()


async def ask_without_script(page: Page) -> str:
    await write_a_draft(page)
    await page.goto(f"/commands/{DISCARD}")
    select = page.locator("select[name='/targetRecordId']")
    value = await select.locator("> option:not([value=''])").first.get_attribute("value")
    await select.select_option(value)
    await page.get_by_role("button", name="Discard expense report").click()
    return page.url[page.url.index("/approvals") :]
