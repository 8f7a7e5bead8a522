"""Journeys of an administrator: with script and without, with long names and with errors."""

import re
from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser, Page, expect

from e2e.conftest import Axe, PageFor, Watch
from e2e.doors import Doors, demo_in
from e2e.every_page import OWNER, Demo

LOOKS = [("light", "en", 1280), ("dark", "zh-CN", 320)]
LONG = "Wilhelmina Featherstonehaugh-Vandenberghe-de-la-Cruz-y-Montenegro-ohne-jede-Luecke" * 2


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo_in(tmp_path_factory.mktemp("admin")) as running:
        yield running


@pytest.fixture
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    yield made
    await made.close()


async def opened(
    doors: Doors, quiet: Watch, theme: str = "light", lang: str = "en", width: int = 1280
) -> Page:
    page = await doors.page(OWNER, theme, lang, width)
    quiet.over(page.context)
    return page


async def has_sideways_scroll(page: Page) -> bool:
    return bool(await page.evaluate("document.documentElement.scrollWidth > innerWidth"))


async def test_somebody_is_invited_comes_in_and_is_stopped(
    doors: Doors, quiet: Watch, page_for: PageFor, demo: Demo
) -> None:
    page = await opened(doors, quiet)
    await page.goto("/admin/users")
    await page.get_by_role("link", name="Invite person").click()
    await page.get_by_label("Name").fill("Nina 倪娜")
    await page.get_by_label("Login").fill("Nina")
    await page.get_by_label("Organisation", exact=False).first.select_option(index=2)
    await page.get_by_role("button", name="Invite").click()
    link = await page.locator("[data-copy-text]").inner_text()
    assert re.fullmatch(rf"{demo.server.base_url}/invite/\S+", link)

    nina = await page_for(demo.server.base_url)
    await nina.goto(link)
    await nina.locator("input[type=password]").first.fill("four plain words here")
    await nina.locator("input[type=password]").last.fill("four plain words here")
    await nina.locator("main form button.primary").click()
    await nina.wait_for_url("**/welcome")

    await page.goto("/admin/users?q=倪")
    await page.get_by_role("link", name="Nina 倪娜").click()
    await expect(page.get_by_text("Active", exact=True).first).to_be_visible()
    await page.get_by_role("link", name="Disable…").click()
    dialog = page.get_by_role("dialog", name="Disable Nina 倪娜?")
    await expect(dialog).to_contain_text("One open session ends.")
    await dialog.get_by_role("button", name="Disable").click()
    await expect(page.get_by_role("status").first).to_contain_text("was disabled")
    await nina.goto("/settings")
    await expect(nina).to_have_url(re.compile("/sign-in"))


@pytest.mark.requirement("UI-25")
async def test_roles_are_given_and_taken_without_script(
    doors: Doors, browser: Browser, quiet: Watch, demo: Demo
) -> None:
    context = await browser.new_context(
        base_url=demo.server.base_url,
        java_script_enabled=False,
        storage_state=await doors.state_of(OWNER),
        locale="en",
    )
    quiet.over(context)
    page = await context.new_page()
    await page.goto(f"/admin/users/{demo.user('bob')}")
    await page.get_by_role("link", name="Assign role").click()
    await page.get_by_label("Role", exact=False).first.select_option(label="Auditor")
    await page.get_by_role("button", name="Assign").click()
    await expect(page.get_by_role("status").first).to_contain_text("The role was assigned.")

    await page.get_by_role("row", name="Auditor").get_by_role("link", name="Take away").click()
    await page.get_by_role("button", name="Take away").click()
    await expect(page.get_by_role("status").first).to_contain_text("taken away")
    await expect(page.get_by_role("row", name="Auditor")).to_have_count(0)

    await page.get_by_role("link", name="Disable…").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Disable 陈博 Bob Chen?")
    await page.get_by_role("link", name="Cancel").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("陈博 Bob Chen")


@pytest.mark.requirement("UI-25", "UI-90")
async def test_a_search_is_typed_filtered_and_taken_back_by_keyboard(
    doors: Doors, quiet: Watch
) -> None:
    page = await opened(doors, quiet)
    await page.goto("/admin/users")
    await page.get_by_role("searchbox").focus()
    await page.keyboard.type("wang")
    await page.keyboard.press("Enter")
    await expect(page.locator("tbody tr")).to_have_count(2)
    chip = page.get_by_role("link", name="“wang”")
    await chip.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("tbody tr")).to_have_count(50)
    await page.get_by_role("link", name="Next").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name="Previous")).to_be_visible()


async def test_what_is_wrong_is_said_at_the_field_and_what_was_typed_stays(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    for theme, lang, width in LOOKS:
        page = await opened(doors, quiet, theme, lang, width)
        await page.goto("/admin/agents/new")
        await page.locator("[name=name]").fill(LONG)
        await page.locator("[name=code]").fill("stock")
        await page.locator("[name=instructions]").fill("One.\n\nTwo.")
        await page.locator("main form button.primary").click()

        await expect(page.locator(".form .notice-danger")).to_be_focused()
        await expect(page.locator("[name=code]")).to_have_attribute("aria-invalid", "true")
        assert await page.locator("[name=instructions]").input_value() == "One.\n\nTwo."
        assert await axe(page) == []
        assert not await has_sideways_scroll(page)
        await page.close()


async def test_two_tabs_that_edit_at_once_lose_nothing(
    doors: Doors, quiet: Watch, axe: Axe, demo: Demo
) -> None:
    path = f"/admin/users/{demo.user('fiona')}/edit"
    for number, (theme, lang, width) in enumerate(LOOKS):
        one, other = [await opened(doors, quiet, theme, lang, width) for _ in range(2)]
        for tab in (one, other):
            await tab.goto(path)
        await one.locator("[name=display_name]").fill(f"方宁 {number}")
        await one.locator("main form button.primary").click()
        await one.wait_for_url(re.compile(r"/admin/users/\w+$"))
        await other.locator("[name=display_name]").fill("Fiona")
        await other.locator("main form button.primary").click()

        await expect(other.locator(".notice-warn:not([data-when])")).to_contain_text(
            f"方宁 {number}"
        )
        await expect(other.locator("[name=display_name]")).to_have_value("Fiona")
        assert await axe(other) == []
        await one.close()
        await other.close()


async def test_a_secret_is_shown_once_and_renewed(
    doors: Doors, quiet: Watch, axe: Axe, demo: Demo
) -> None:
    page = await opened(doors, quiet)
    await page.goto("/admin/clients/new")
    await page.get_by_label("Name").fill("Nightly export")
    await page.get_by_label("Where answers go").fill("https://export.example/cb")
    await page.get_by_label("With a secret").check()
    await page.get_by_role("button", name="Register").click()
    secret = await page.locator("[data-copy-text]").first.inner_text()
    assert len(secret) == 43
    assert await axe(page) == []

    await page.get_by_role("link", name="Go to Nightly export").click()
    assert secret not in await page.content()
    address = page.url.removeprefix(demo.server.base_url)
    for theme, lang, width in LOOKS:
        asked = await opened(doors, quiet, theme, lang, width)
        await asked.goto(f"{address}/secret")
        assert await axe(asked) == []
        await asked.close()
    await page.get_by_role("link", name="New secret…").click()
    await page.get_by_role("button", name="Make a new secret").click()
    assert await page.locator("[data-copy-text]").first.inner_text() != secret


async def test_an_agent_is_made_published_stopped_and_started_again(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    page = await opened(doors, quiet)
    await page.goto("/admin/agents/new")
    await page.get_by_label("Name").fill(LONG)
    await page.get_by_label("Code").fill("travel")
    await page.get_by_label("Instructions").fill("Book trips. " * 200)
    await page.get_by_role("button", name="Make agent").click()
    await page.get_by_role("link", name="Publish…").click()
    await page.get_by_role("button", name="Publish").click()
    await expect(page.get_by_role("link", name="Release 1")).to_be_visible()
    await page.get_by_role("link", name="Disable…").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    assert await axe(page) == [], "the dialog"
    await dialog.get_by_role("button", name="Disable").click()
    await page.get_by_role("link", name="Enable…").click()
    for theme, lang, width in LOOKS:
        asked = await opened(doors, quiet, theme, lang, width)
        for address in (page.url, page.url.removesuffix("/activation"), "/admin/agents"):
            await asked.goto(address)
            assert await axe(asked) == []
            assert not await has_sideways_scroll(asked), address
        await asked.close()
    await page.get_by_role("button", name="Enable").click()
    await expect(page.get_by_role("status").first).to_contain_text("can work again")


@pytest.mark.requirement("RUN-101")
async def test_a_model_is_set_up_tried_changed_and_removed(
    doors: Doors, quiet: Watch, axe: Axe
) -> None:
    page = await opened(doors, quiet)
    await page.goto("/admin/models")
    await page.get_by_role("link", name="Add model").click()
    await page.get_by_label("Name").fill("quick")
    await page.get_by_label("Model", exact=False).last.fill("gpt-5-mini")
    await page.get_by_role("button", name="Add model").click()
    await page.get_by_role("button", name="Try it").click()
    await expect(page.get_by_text("It gave no answer.")).to_be_visible()
    await page.get_by_role("link", name="Edit").click()
    await page.get_by_label("Address").fill("http://10.0.0.1/v1")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#field-base_url-error")).to_be_visible()
    assert await axe(page) == []
    for theme, lang, width in LOOKS:
        asked = await opened(doors, quiet, theme, lang, width)
        for address in ("quick", "quick/edit", "quick/removal"):
            await asked.goto(f"/admin/models/{address}")
            assert await axe(asked) == []
            assert not await has_sideways_scroll(asked), address
        await asked.close()
    await page.goto("/admin/models/quick/removal")
    await page.get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("status").first).to_contain_text("The model was removed")
    await expect(page.locator("#model-quick")).to_have_count(0)


@pytest.mark.requirement("UI-31")
async def test_empty_lists_offer_the_next_act(doors: Doors, quiet: Watch, axe: Axe) -> None:
    for theme, lang, width in LOOKS:
        page = await opened(doors, quiet, theme, lang, width)
        for address in (
            "/admin/agents?q=zzzz",
            "/admin/delegations?state=paused",
            "/admin/permissions?q=zzzz",
            "/admin/clients?q=zzzz",
        ):
            await page.goto(address)
            await expect(page.locator(".empty")).to_be_visible()
            assert await axe(page) == []
        await page.close()
