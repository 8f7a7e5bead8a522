"""The components every page is made of, in a real browser, on the sample pages."""

import json
import shutil
from itertools import product

import pytest
from playwright.async_api import Page, Route, expect

from e2e.conftest import Axe, PageFor, Watch, executable
from e2e.styleguide import PAGES

LOOKS = list(product(["light", "dark"], ["en", "zh-CN"], [1280, 320]))


async def has_sideways_scroll(page: Page) -> bool:
    width: bool = await page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    return width


@pytest.mark.requirement("UI-91", "UI-101", "UI-107")
@pytest.mark.parametrize(("theme", "lang", "width"), LOOKS)
async def test_no_component_has_a_fault_of_access(
    samples: str, page_for: PageFor, axe: Axe, theme: str, lang: str, width: int
) -> None:
    page = await page_for(samples, theme=theme, lang=lang, width=width)
    found: dict[str, list[str]] = {}

    for path in [*PAGES, "/refused/404", "/refused/429"]:
        await page.goto(f"/styleguide{path}")
        await expect(page.locator("h1")).to_have_count(1)
        if faults := await axe(page):
            found[path] = faults
        assert not await has_sideways_scroll(page), path

    assert found == {}
    assert await page.locator("html").get_attribute("lang") == lang


@pytest.mark.requirement("UI-107")
@pytest.mark.parametrize(("theme", "width"), list(product(["light", "dark"], [1280, 320])))
async def test_what_opens_is_free_of_faults_too(
    samples: str, page_for: PageFor, axe: Axe, theme: str, width: int
) -> None:
    page = await page_for(samples, theme=theme, width=width)
    await page.goto("/styleguide")

    await page.locator(".menu summary").click()
    assert await axe(page) == []
    await page.keyboard.press("Escape")
    await expect(page.locator(".menu summary")).to_be_focused()

    await page.get_by_role("link", name="Deactivate…").click()
    dialog = page.get_by_role("dialog", name="Deactivate Alice Wang?")
    await expect(dialog).to_be_visible()
    await expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    assert await axe(page) == []
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_be_hidden()

    if width == 320:
        await page.locator(".rail-more summary").click()
        await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        assert await axe(page) == []


@pytest.mark.requirement("UI-27")
async def test_one_navigation_serves_desk_and_phone(samples: str, page_for: PageFor) -> None:
    desk = await page_for(samples)
    await desk.goto("/styleguide")
    phone = await page_for(samples, width=320)
    await phone.goto("/styleguide")

    for page in (desk, phone):
        await expect(page.get_by_role("navigation", name="Main")).to_have_count(1)
    on_desk = await desk.get_by_role("navigation", name="Main").bounding_box()
    on_phone = await phone.get_by_role("navigation", name="Main").bounding_box()

    assert on_desk is not None
    assert on_phone is not None
    assert (on_desk["width"], on_desk["height"]) == (264, 860)
    assert on_phone["y"] + on_phone["height"] == 740, "at the bottom"
    await expect(phone.get_by_role("button", name="Sign out")).to_be_hidden()


@pytest.mark.requirement("UI-90")
async def test_the_keyboard_reaches_the_content_first_and_sees_where_it_is(
    samples: str, page_for: PageFor
) -> None:
    page = await page_for(samples)
    await page.goto("/styleguide")

    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    await expect(skip).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("main")).to_be_focused()

    await page.keyboard.press("Tab")
    outline = await page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "3px"


@pytest.mark.requirement("UI-90")
@pytest.mark.parametrize("javascript", [True, False])
async def test_what_is_wrong_is_summed_up_and_leads_to_its_field(
    samples: str, page_for: PageFor, javascript: bool
) -> None:
    page = await page_for(samples, javascript=javascript)
    await page.goto("/styleguide")

    await page.get_by_label("Name", exact=False).first.fill("A name that is far too long")
    await page.get_by_role("button", name="Save").click()

    summary = page.get_by_role("group", name="2 things need another look")
    await expect(summary).to_be_focused()
    await expect(page.locator("#field-name")).to_have_value("A name that is far too long")
    await summary.get_by_role("link", name="Name").click()
    await expect(page.locator("#field-name")).to_be_focused()
    await expect(page.locator("#field-name")).to_have_accessible_description(
        "As others see it. Error: Too long: at most 20 characters."
    )


@pytest.mark.requirement("UI-25")
async def test_everything_is_reached_without_script(samples: str, page_for: PageFor) -> None:
    page = await page_for(samples, javascript=False, width=320)
    await page.goto("/styleguide")

    await expect(page.locator("[data-reveal], [data-copy]").first).to_be_hidden()
    await page.locator("#field-name").fill("Alice")
    await page.locator("#field-password").fill("a long enough one")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("status").first).to_contain_text("Choose yes or no.")

    await page.get_by_role("link", name="Deactivate…").click()
    await expect(page.get_by_role("heading", name="Deactivate Alice Wang?")).to_be_visible()

    await page.locator(".rail-more summary").click()
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()


async def test_a_password_can_be_looked_at_and_is_hidden_before_it_is_sent(
    samples: str, page_for: PageFor
) -> None:
    page = await page_for(samples)
    await page.goto("/styleguide/entry")
    password = page.locator("#field-password")

    await page.get_by_role("button", name="Show what is typed").click()
    await expect(password).to_have_attribute("type", "text")
    await page.get_by_role("button", name="Show what is typed").click()
    await expect(password).to_have_attribute("type", "password")


@pytest.mark.requirement("UI-97")
async def test_the_browser_s_zone_goes_along_at_sign_in(samples: str, page_for: PageFor) -> None:
    page = await page_for(samples, zone="America/Lima")
    await page.goto("/styleguide/entry")

    await expect(page.locator("[data-time-zone]")).to_have_value("America/Lima")


@pytest.mark.requirement("UI-96")
async def test_the_language_is_changed_before_sign_in(samples: str, page_for: PageFor) -> None:
    page = await page_for(samples, javascript=False)
    await page.goto("/styleguide/entry")

    await page.get_by_role("button", name="简体中文").click()

    await expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    await expect(page.get_by_role("button", name="登录", exact=True)).to_be_visible()


@pytest.mark.requirement("SEC-35")
async def test_each_request_of_htmx_carries_the_token_and_a_refusal_is_shown(
    samples: str, page_for: PageFor
) -> None:
    page = await page_for(samples)
    await page.goto("/styleguide")
    sent: list[str | None] = []
    page.on("request", lambda request: sent.append(request.headers.get("x-csrf-token")))

    await page.evaluate("htmx.ajax('POST', '/styleguide/refused/409', {target: '#main'})")

    await expect(page.locator("#alerts #refusal")).to_contain_text("It has changed meanwhile")
    await expect(page.locator("#refusal")).to_be_focused()
    assert sent[0] == "token-of-the-session"


async def test_a_fault_of_the_server_is_said_and_the_page_stays(
    samples: str, page_for: PageFor, quiet: Watch
) -> None:
    quiet.tolerate("/styleguide/failing", "500 (Internal Server Error)", "ERR_FAILED", "htmx")
    page = await page_for(samples)
    await page.goto("/styleguide")

    await page.evaluate("htmx.ajax('GET', '/styleguide/failing', {target: '#main'})")
    await expect(page.locator("#alerts")).to_contain_text("The server could not answer.")
    await expect(page.get_by_role("heading", level=1)).to_have_text("People 1,284")

    async def cut(route: Route) -> None:
        await route.abort()

    await page.route("**/styleguide/gone", cut)
    await page.evaluate("htmx.ajax('GET', '/styleguide/gone', {target: '#main'})")
    await expect(page.locator("#alerts")).to_contain_text("The server cannot be reached.")


async def test_an_id_is_copied_or_selected_and_the_page_says_which(
    samples: str, page_for: PageFor
) -> None:
    page = await page_for(samples)
    await page.goto("/styleguide")

    await page.get_by_role("button", name="Copy").click()

    await expect(page.locator("#status")).to_have_text("Press Ctrl+C")
    assert await page.evaluate("String(getSelection())") == "01J8Z0K4M3QW5E7R9T1Y2U4I6P"

    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.get_by_role("button", name="Copy").click()
    await expect(page.locator("#status")).to_have_text("Copied")


@pytest.mark.requirement("UI-85")
@pytest.mark.parametrize("width", [1280, 320])
async def test_every_target_is_large_enough(samples: str, page_for: PageFor, width: int) -> None:
    page = await page_for(samples, width=width)
    await page.goto("/styleguide")
    controls = "button, .button, input:not([type=hidden]), select, .rail-list a, .tabs a, summary"

    small = await page.evaluate(
        """([selector, least]) => [...document.querySelectorAll(selector)]
        .filter(e => e.checkVisibility() && !e.closest('.copyable'))
        .filter(e => !/radio|checkbox/.test(e.type))
        .map(e => [e.outerHTML.slice(0, 90), Math.round(e.getBoundingClientRect().height)])
        .filter(([, height]) => height < least)""",
        [controls, 44 if width == 320 else 36],
    )

    assert small == []


@pytest.mark.requirement("UI-91")
async def test_text_twice_as_large_loses_nothing(samples: str, page_for: PageFor) -> None:
    page = await page_for(samples, width=720)
    for path in PAGES:
        await page.goto(f"/styleguide{path}")
        await page.evaluate(
            """() => { const sheet = new CSSStyleSheet();
            sheet.replaceSync("html { font-size: 200% }");
            document.adoptedStyleSheets.push(sheet); }"""
        )

        assert not await has_sideways_scroll(page), path


@pytest.mark.requirement("UI-31")
async def test_an_empty_list_offers_the_next_act(samples: str, page_for: PageFor) -> None:
    page = await page_for(samples)
    await page.goto("/styleguide/empty")

    await expect(page.get_by_text("No agent yet")).to_be_visible()
    await expect(page.get_by_role("link", name="Define an agent")).to_be_visible()


@pytest.mark.requirement("UI-105")
def test_the_browser_is_the_named_one_else_that_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ASSENT_E2E_BROWSER", raising=False)
    monkeypatch.setattr(
        shutil, "which", lambda name: f"/usr/bin/{name}" if name == "chromium" else None
    )
    assert executable() == "/usr/bin/chromium"

    monkeypatch.setenv("ASSENT_E2E_BROWSER", "/opt/browser")
    assert executable() == "/opt/browser"


async def test_the_watch_notices_a_violated_policy(
    samples: str, page_for: PageFor, quiet: Watch
) -> None:
    page = await page_for(samples)
    await page.goto("/styleguide")

    await page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color:red\">')")
    await page.goto("/styleguide/failing")

    noticed = "\n".join(quiet.faults)
    quiet.faults.clear()
    assert "Content Security Policy" in noticed
    assert "500 of" in noticed


async def authenticator(page: Page) -> None:
    """Plug a passkey device into this page's browser."""
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("WebAuthn.enable")
    await devtools.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
        },
    )


async def test_a_passkey_is_made_and_then_used(samples: str, page_for: PageFor) -> None:
    page = await page_for(samples)
    await authenticator(page)

    await page.goto("/styleguide/entry-new")
    await page.get_by_role("button", name="Use a passkey").click()
    await page.wait_for_url("**/styleguide/passkey")
    made = json.loads(await page.locator("body").inner_text())
    await page.goto("/styleguide/entry")
    await page.get_by_role("button", name="Use a passkey").click()
    await page.wait_for_url("**/styleguide/passkey")
    used = json.loads(await page.locator("body").inner_text())

    assert {"clientDataJSON", "attestationObject"} <= made["response"].keys()
    assert {"clientDataJSON", "authenticatorData", "signature"} <= used["response"].keys()
    assert used["id"] == made["id"]
    assert used["type"] == "public-key"


async def test_a_passkey_that_is_not_given_is_said_and_may_be_tried_again(
    samples: str, page_for: PageFor
) -> None:
    page = await page_for(samples)
    await page.goto("/styleguide/entry")

    async def refuse(route: Route) -> None:
        await route.fulfill(status=409)

    await page.route("**/passkey-options", refuse)
    await page.get_by_role("button", name="Use a passkey").click()

    await expect(page.get_by_role("alert")).to_contain_text("The passkey was not used.")
    await expect(page.get_by_role("button", name="Use a passkey")).to_be_enabled()


async def test_passkeys_are_not_offered_where_there_is_no_script(
    samples: str, page_for: PageFor
) -> None:
    page = await page_for(samples, javascript=False)
    await page.goto("/styleguide/entry")

    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    await expect(page.get_by_role("button", name="Use a passkey")).to_be_hidden()
