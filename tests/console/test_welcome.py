"""Where a session begins: the steps that are still to take."""

import html
import re

import pytest

from app.identity import delegations
from app.identity.principal import Scope
from app.kernel import db
from tests.console import run_stage
from tests.people import World

FOUND = re.compile(r'<a class="button try" href="([^"]*)">(?:<svg.*?</svg>)?([^<]*)</a>')


@pytest.mark.requirement("UI-31")
async def test_the_start_page_offers_what_the_viewer_may_do(world: World) -> None:
    async with world.client(world.acme["olga"]) as owner:
        start = await owner.get("/")
        page = await owner.get("/welcome")
        assert (start.status_code, start.headers["location"]) == (303, "/welcome")
        assert 'href="/settings/passkeys/new"' in page.text
        assert "Invite people" in page.text
        assert 'href="/settings/delegations#offered"' in page.text
    async with world.client(world.acme["alice"]) as member:
        page = await member.get("/welcome")
        assert "Invite people" not in page.text
        assert "Connect an agent" in page.text


@pytest.mark.requirement("UI-31")
@pytest.mark.parametrize(
    ("language", "sample"),
    [("en", "Submit my October travel report"), ("zh-CN", "提交我十月的出差报销")],
)
async def test_a_sample_request_stands_ready_in_the_conversation_with_the_agent(
    world: World, language: str, sample: str
) -> None:
    alice = world.person(world.acme["alice"])
    wide = [Scope.COMMANDS_READ, Scope.COMMANDS_INVOKE]
    given = world.acme.delegations["alice"]
    await db.transaction(delegations.set_scopes, alice, given, wide)
    async with world.client(world.acme["alice"]) as member:
        member.cookies.set("lang", language)
        found = FOUND.findall((await member.get("/welcome")).text)
        links = {html.unescape(text): html.unescape(href) for href, text in found}
        [link] = [href for text, href in links.items() if sample in text]
        assert not any("wait for me" in text for text in links), "she decides nothing"

        blank = await member.get(link)
        assert f"{sample}</textarea>" in blank.text
        stage = await run_stage.opened(world, member)
        known = await member.get(link, follow_redirects=True)
        assert known.url.path == stage.path
        assert f"{sample}</textarea>" in known.text
        assert known.text.count(sample) == 1, "nothing was sent"
        assert (await member.get(f"{stage.path}?text={'x' * 1_001}")).status_code == 422


async def test_nobody_is_welcomed_unseen(world: World) -> None:
    async with world.anonymous() as browser:
        assert (await browser.get("/welcome")).headers["location"] == "/sign-in?next=%2Fwelcome"
        assert (await browser.get("/")).headers["location"] == "/sign-in"
