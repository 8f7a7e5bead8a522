"""What a person chooses for themselves (UI-96)."""

import pytest

from tests.people import World

PROFILE = {
    "display_name": " 王 Alice ",
    "locale": "zh-CN",
    "theme": "dark",
    "time_zone": "Asia/Tokyo",
}


@pytest.mark.requirement("UI-96", "UI-25")
async def test_choices_are_kept_with_the_person_and_in_the_browser(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser:
        saved = await browser.post("/settings", data=PROFILE)
        page = await browser.get("/settings")

        assert saved.status_code == 303
        assert '<html lang="zh-CN" data-theme="dark"' in page.text
        assert "<dd>acme</dd>" in page.text, "what one has to know to sign in elsewhere"
        assert (browser.cookies["lang"], browser.cookies["theme"]) == ("zh-CN", "dark")
        signed_out = await browser.get("/settings", headers={"Accept-Language": "en"})
        assert 'lang="zh-CN"' in signed_out.text
    kept = world.user(alice)
    assert (kept.display_name, kept.time_zone) == ("王 Alice", "Asia/Tokyo")


@pytest.mark.parametrize(
    "wrong",
    [
        {"display_name": ""},
        {"display_name": "x" * 201},
        {"locale": "tlh"},
        {"theme": "pink"},
        {"time_zone": "Mars/Olympus"},
        {"login": "owner"},
        {"status": "disabled"},
    ],
)
async def test_a_wrong_value_is_told_at_its_field_and_changes_nothing(
    world: World, wrong: dict[str, str]
) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser:
        refused = await browser.post("/settings", data=PROFILE | wrong)

    assert refused.status_code == 422
    assert "Asia/Tokyo" in refused.text
    assert world.user(alice).display_name == alice.display_name
    assert world.user(alice).status == "active"
