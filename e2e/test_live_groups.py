"""A group that one is put out of: gone from the list, said on its page, silent from then on."""

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import expect

from app.access import standing
from app.console.live import drawing
from app.console.live.rendering import Hearer
from app.identity.models import User
from app.kernel import db, event_log, feed
from app.kernel.event_log import Position
from app.kernel.feed import News
from e2e.board import House, house
from e2e.conftest import PageFor

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        house(tmp_path_factory.mktemp("groups"), monkeypatch) as made,
    ):
        yield made


@pytest.mark.requirement("CON-114", "UI-40")
async def test_whoever_is_put_out_of_a_group_sees_nothing_of_it_any_more(
    lived: House, page_for: PageFor
) -> None:
    alice, bob = lived.world.acme["alice"], lived.world.acme["bob"]
    before = await db.read(event_log.newest, alice.tenant_id)
    his_aid = (await db.read(lambda s: s.get_one(User, (bob.tenant_id, bob.id)))).aid
    async with lived.world.client(alice) as hers:
        form = {"name": "Secrets", "description": "", "members": [his_aid]}
        made = await hers.post("/conversations/groups", data=form)
        assert made.status_code == 303, made.text
        path = made.headers["location"]
        row = f"#conversation-{path.rpartition('/')[2]}-row"
        await hers.post(f"{path}/messages", data={"text": "still his", "client_id": "c1"})

        page = await lived.page(page_for, bob)
        await page.goto(path)
        await expect(page.locator("html[data-live=up]")).to_be_attached()
        await expect(page.locator("#messages .message .md")).to_have_text(["still his"])
        await expect(page.locator(row)).to_be_attached()

        gone = await hers.post(f"{path}/members/removal", data={"aid": his_aid})
        assert gone.status_code == 303
        await expect(page.locator(row)).not_to_be_attached(timeout=5_000)
        await expect(page.locator("main")).to_contain_text(
            "You do not take part in this conversation any more."
        )
        await hers.post(f"{path}/messages", data={"text": "not for him", "client_id": "c2"})
    marker = '<span id="badge-approvals" data-count="7">7</span>'
    lived.emit([("#badge-approvals", "outerHTML", marker)], bob)
    await expect(page).to_have_title(re.compile(r"^\(7\) "))
    assert "not for him" not in await page.content()

    replayed = await _replay(lived, bob, before)
    assert "still his" not in replayed
    assert "not for him" not in replayed
    assert "Secrets" not in replayed


async def _replay(lived: House, user: User, since: Position) -> str:
    """What the stream of a browser that comes back at an old place draws."""
    person = lived.world.person(user)
    rights = await db.read(standing.rights, person)
    assert rights is not None
    found = await db.read(feed.read, user.tenant_id, since.epoch, since.seq)
    assert isinstance(found, list)
    hearer = Hearer(person, "en", "UTC", rights.aid)
    news = [News(Position(since.epoch, event.seq), event) for event in found if rights.allow(event)]
    return b"".join([await drawing.of_news(each, hearer) for each in news]).decode()
