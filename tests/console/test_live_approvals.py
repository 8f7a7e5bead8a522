"""An approval on every page that shows it, as it changes: badge, rows, leaves, a word."""

import re
from datetime import timedelta

import pytest

from app.access import standing
from app.commands import approval_warning
from app.commands.approval_events import CHANGED, ENDING
from app.console.live import drawing, regions
from app.console.live.rendering import Hearer
from app.console.viewer import Viewer
from app.kernel import clock, db, event_log
from app.kernel.event_log import Position
from app.kernel.feed import News
from tests.commands.asking import REMIND, SEND, Asking
from tests.packs.expenses.desk import Desk
from tests.people import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def asking(world: World, spenders: None) -> Asking:
    return Asking(Desk(world))


async def frames(asking: Asking, login: str, since: int, kind: str = CHANGED) -> list[str]:
    """What the stream of somebody gets of what was logged after `since`."""
    tenant_id = asking.acme.id
    person = asking.desk.person(login)
    rights = await db.read(standing.rights, person)
    assert rights is not None
    position = await db.read(event_log.newest, tenant_id)
    found = await db.read(event_log.since, tenant_id, position.epoch, since)
    assert isinstance(found, list)
    hearer = Hearer(person, "en", "UTC")
    told = [
        News(Position(position.epoch, event.seq), event)
        for event in found
        if event.kind == kind and rights.allow(event)
    ]
    return [(await drawing.of_news(news, hearer)).decode() for news in told]


async def now(asking: Asking) -> int:
    return (await db.read(event_log.newest, asking.acme.id)).seq


@pytest.mark.requirement("UI-34", "UI-82", "UI-64")
async def test_whoever_may_decide_and_whoever_asked_see_it_come_and_go(asking: Asking) -> None:
    report = await asking.desk.approved("alice", 2_000)
    start = await now(asking)
    row = await asking.ask(asking.call("fiona", SEND, report))

    [frank] = await frames(asking, "frank", start)
    *_, fiona = await frames(asking, "fiona", start)  # she holds the permission as well

    assert 'id="badge-approvals" data-count="1"' in frank
    assert 'hx-target="[data-region=&#39;approvals:open&#39;]"' in frank
    assert f'id="approval-{row.id}-row"' in frank
    assert re.search(r"Approval needed: Send payment, L4, expires [\w :]+\.", frank)
    assert 'data-count="0"' in fiona
    assert "approvals:open" not in fiona
    assert "approvals:requested" in fiona
    assert "Approval needed" not in fiona
    assert await frames(asking, "alice", start) == []
    for frame in (frank, fiona):
        assert "_csrf" not in frame
        assert 'name="nonce"' not in frame

    middle = await now(asking)
    await asking.decide("frank", row, "deny", reason="not now")
    for login in ("frank", "fiona"):
        last = (await frames(asking, login, middle))[-1]
        assert 'data-count="0"' in last
        assert f'hx-target="#approval-{row.id}-decision" hx-swap="outerHTML"' in last
        assert f'hx-target="#approval-{row.id}-row" hx-swap="outerMorph"' in last
        assert "Denied by Frank" in last
        assert re.search(rf'<p id="approval-{row.id}-decides" data-rev="2" hidden>\s*</p>', last)
        assert "may decide" not in last
        assert "_csrf" not in last


@pytest.mark.requirement("UI-82", "CON-30")
async def test_whoever_may_decide_is_told_once_that_a_minute_is_left(asking: Asking) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    start = await now(asking)
    for left_s, told in ((80, 0), (55, 1), (20, 0)):
        ends_at = clock.now() + timedelta(seconds=left_s)
        asking.set(row.id, opened_at=row.opened_at - timedelta(hours=1), expires_at=ends_at)
        assert db.transact_now(approval_warning.warn_due) == told, left_s

    [frank] = await frames(asking, "frank", start, ENDING)
    fiona = await frames(asking, "fiona", start, ENDING)

    assert f"One minute left to decide: Send payment {row.target_label}." in frank
    assert f'data-path="/approvals/{row.id}"' in frank
    assert "".join(fiona) == ""
    assert asking.row(row.id).rev == row.rev


@pytest.mark.requirement("UI-82")
async def test_nobody_is_warned_of_what_is_closed_or_was_never_longer_open(asking: Asking) -> None:
    for closed in True, False:
        report = await asking.desk.approved("alice", 2_000)
        row = await asking.ask(asking.call("fiona", SEND, report))
        if closed:
            await asking.decide("frank", row, "deny")
        began = clock.now() - timedelta(hours=1 if closed else 0)
        asking.set(row.id, opened_at=began, expires_at=clock.now() + timedelta(seconds=50))
        assert db.transact_now(approval_warning.warn_due) == 0


@pytest.mark.requirement("UI-46")
async def test_after_a_gap_lists_and_badges_are_as_the_page_draws_them(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call(asking.agent("alice"), REMIND, report))
    person = asking.desk.person("alice")
    reader = Viewer(user_id=person.user_id, tenant_id=person.tenant_id, is_person=True)
    wanted = regions.asked(
        person, ["approvals:open", "approvals:decided@5", "badges:approvals", "approvals:none"]
    )
    assert [each.oldest for each in wanted] == [None, 5, None, None]

    cursor, html = await db.read(regions.draw, reader, wanted)

    assert cursor == await db.read(event_log.newest, person.tenant_id)
    opened, decided, badge, nothing = html.split("</hx-partial>")[:-1]
    assert f'id="approval-{row.id}-row"' in opened
    assert "<li" not in decided + nothing
    assert 'data-count="1"' in badge
