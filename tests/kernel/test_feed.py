"""A feed: what one stream makes of an event costs no other stream anything."""

import asyncio

from structlog.testing import capture_logs

from app.identity.models import Tenant
from app.kernel import clock, db, event_log, feed, ids
from app.kernel.db import Work
from app.kernel.feed import Item, News


def _tenant(work: Work) -> str:
    id_ = ids.ulid()
    work.session.add(Tenant(id=id_, slug=id_.lower(), name="Acme", created_at=clock.now()))
    return id_


async def test_a_follower_that_fails_keeps_an_event_from_no_other(opened: str) -> None:
    tenant_id = db.transact_now(_tenant)
    heard: asyncio.Queue[Item] = asyncio.Queue()

    def fails(_item: Item) -> None:
        raise RuntimeError("no")

    with capture_logs() as logs:
        await feed.follow(tenant_id, fails)
        await feed.follow(tenant_id, heard.put_nowait)
        for subject in "one", "two":
            await db.transaction(event_log.append, tenant_id, "test", subject, {})
        told = [await asyncio.wait_for(heard.get(), 20) for _ in range(2)]
        feed.leave(tenant_id, fails)
        feed.leave(tenant_id, heard.put_nowait)

    assert [item.event.subject for item in told if isinstance(item, News)] == ["one", "two"]
    assert [line["event"] for line in logs].count("follower_failed") == 2
