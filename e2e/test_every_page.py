"""Each page in both themes and both languages: nothing for axe to find, nothing on the console."""

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser

from e2e import every_page
from e2e.conftest import Axe, Watch
from e2e.doors import Doors, demo_in
from e2e.every_page import Demo, Walk

LOOKS = [
    ("light", "en", 1280),
    ("dark", "zh-CN", 1280),
    ("light", "zh-CN", 320),
    ("dark", "en", 320),
]
SHOWS = """() => [
    document.querySelectorAll("h1").length,
    document.documentElement.lang,
    document.documentElement.scrollWidth,
    [...document.querySelectorAll("[id]")].map(({id}) => id)
        .filter((id, at, all) => all.indexOf(id) < at),
]"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo workspace, one a process of the suite."""
    with demo_in(tmp_path_factory.mktemp("demo")) as running:
        yield running


@pytest.fixture(scope="module")
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    yield made
    await made.close()


def test_every_page_has_a_line_here() -> None:
    assert every_page.page_routes() == set(every_page.WALKS)


@pytest.mark.requirement("UI-25", "UI-30", "UI-90", "UI-91", "UI-96", "UI-101")
@pytest.mark.parametrize("walk", list(every_page.walks()), ids=lambda walk: walk.name)
async def test_a_page_is_for_everybody(
    walk: Walk, doors: Doors, axe: Axe, quiet: Watch, demo: Demo
) -> None:
    found: list[str] = []
    if walk.to is Demo.authorization:
        await doors.state_of(every_page.OWNER)  # who registers the application
    address = walk.to(demo)

    for theme, lang, width in LOOKS:
        page = await doors.same_page(walk.who, theme, lang, width)
        quiet.over(page.context)
        answer = await page.goto(address)
        assert answer is not None
        assert answer.status == walk.status
        assert ("/step-up" in page.url) == ("/step-up" in address), "the page itself"
        headings, said, wide, doubled = await page.evaluate(SHOWS)
        assert headings == 1
        assert said == lang
        found += [f"{theme} {lang} {width}: {each}" for each in await axe(page)]
        found += [f"the id {each} occurs twice" for each in doubled]
        if wide > width:
            found.append(f"{theme} {lang} {width}: scrolls sideways, {wide} px wide")

    assert found == []


def test_every_look_is_seen() -> None:
    seen = {(theme, lang) for theme, lang, _ in LOOKS}

    assert seen == set(itertools.product(("light", "dark"), ("en", "zh-CN")))
