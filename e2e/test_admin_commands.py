"""An administrator makes a command stricter, sees what that changes, and takes it back."""

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser, Page, expect

from e2e.conftest import Axe, Watch
from e2e.doors import Doors, demo_in
from e2e.every_page import OWNER, Demo

PATH = "/admin/commands/expense.report.submit"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo_in(tmp_path_factory.mktemp("commands")) as running:
        yield running


@pytest.fixture
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    yield made
    await made.close()


async def looks_right(page: Page, axe: Axe) -> None:
    """Nothing for axe to say, and nothing beyond the edge of the screen."""
    assert await axe(page) == []
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")


@pytest.mark.requirement("CMD-2", "UI-25")
async def test_a_command_is_made_stricter_and_an_error_stands_at_its_field(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    page = await doors.page(OWNER, "light", "en", 1280)
    quiet.over(page.context)
    await page.goto("/admin/commands?q=submit")
    await page.get_by_role("link", name="Submit expense report").click()
    await page.get_by_role("link", name="Edit", exact=True).click()
    await page.get_by_label("Expression").first.fill("record.total_minor <=")
    await page.get_by_label("Message in English").first.fill("At most 5,000.")
    await page.get_by_label("Message in Chinese").first.fill("最多 5,000。")
    await page.get_by_role("button", name="Save draft").click()
    await expect(page.get_by_role("heading", name="Readiness")).to_be_visible()
    await expect(page.get_by_text("This expression does not compile").first).to_be_visible()

    await page.get_by_role("link", name="Edit draft").click()
    await expect(page.get_by_label("Expression").first).to_have_attribute("aria-invalid", "true")
    await looks_right(page, axe)
    await page.get_by_label("Expression").first.fill("record.total_minor <= 500000")
    await page.get_by_role("button", name="Save draft").click()
    await page.get_by_role("link", name="Publish…").click()
    await looks_right(page, axe)
    await page.get_by_role("button", name="Publish").click()
    await expect(page.get_by_role("link", name="Version 2")).to_be_visible()
    await looks_right(page, axe)


async def test_the_same_in_chinese_on_a_small_dark_screen(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    page = await doors.page(OWNER, "dark", "zh-CN", 320)
    quiet.over(page.context)
    await page.goto(f"{PATH}/draft")
    await page.get_by_label("中文名称").fill("提交报销单（复核）")
    await page.get_by_role("button", name="保存草稿").click()
    await page.get_by_role("link", name="发布…").click()
    await looks_right(page, axe)
    await page.get_by_role("button", name="发布").click()
    await page.goto(PATH)
    await page.get_by_role("table").get_by_role("link").first.click()
    await page.get_by_label("对比版本").select_option("1")
    await page.get_by_role("button", name="对比").click()
    await expect(page.get_by_text("提交报销单（复核）").first).to_be_visible()
    await looks_right(page, axe)
    await page.goto(f"{PATH}/retirement")
    await page.get_by_role("button", name="停用命令").click()
    await page.get_by_role("link", name="恢复…").click()
    await page.get_by_role("button", name="恢复命令").click()
    await expect(page.get_by_role("link", name="停用…")).to_be_visible()
