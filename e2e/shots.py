"""`bin/test shots`: every page, in each theme, language and width, as pictures in `shots/`."""

import asyncio
import itertools
import sys
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

from e2e import every_page
from e2e.conftest import FLAGS, executable
from e2e.doors import Doors, demo_in

SHOTS = Path(__file__).parent.parent / "shots"
LOOKS = tuple(itertools.product(("light", "dark"), ("en", "zh-CN"), (1280, 320)))


async def take(folder: Path, wanted: list[str]) -> int:
    """Take them; returns how many. `wanted` are names of walks, all of them where it is empty."""
    SHOTS.mkdir(exist_ok=True)
    taken = 0
    with demo_in(folder) as demo:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=executable(), args=FLAGS)
            doors = Doors(demo, browser)
            await doors.state_of(every_page.OWNER)  # who registers the application of the consent
            for walk in every_page.walks():
                if wanted and walk.name not in wanted:
                    continue
                address = walk.to(demo)
                for theme, lang, width in LOOKS:
                    page = await doors.page(walk.who, theme, lang, width)
                    await page.goto(address)
                    name = f"{walk.name}-{theme}-{lang}-{width}.png"
                    await page.screenshot(path=SHOTS / name, full_page=True)
                    await page.close()
                    taken += 1
            await doors.close()
            await browser.close()
    return taken


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        count = asyncio.run(take(Path(temporary), sys.argv[1:]))
    sys.stdout.write(f"{count} pictures in {SHOTS}\n")
