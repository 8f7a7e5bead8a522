"""An administrator keeps receivers: added, told, paused, rotated, sent to again, removed."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.commands.dispatcher import Dispatcher
from app.kernel import db, ids
from tests.commands.telling import Telling
from tests.packs.expenses.desk import Desk
from tests.people import World
from tests.webhook_receiver import Receiver, listening


@pytest.fixture
def telling(world: World, spenders: None, monkeypatch: pytest.MonkeyPatch) -> Telling:
    return Telling(Desk(world), monkeypatch)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening() as made:
        yield made


def fields(receiver: Receiver, **changed: Any) -> dict[str, Any]:
    return {
        "url": receiver.url,
        "description": "The <b>bank</b>",
        "event_types": ["expense.*"],
        **changed,
    }


@pytest.mark.requirement("CMD-24")
async def test_a_receiver_is_added_told_and_removed(telling: Telling, receiver: Receiver) -> None:
    telling.let_out(receiver)
    ada = telling.desk.world.client(telling.acme["ada"])

    offered = await ada.get("/admin/webhooks/new")
    made = await ada.post("/admin/webhooks", data=fields(receiver))
    secret = re.search(r"whsec_[A-Za-z0-9+/=]{44}", made.text)
    listed = await ada.get("/admin/webhooks")
    path = re.search(r'href="(/admin/webhooks/[0-9A-Z]{26})"', listed.text)
    assert secret is not None
    assert path is not None
    tested = await ada.post(f"{path[1]}/test")
    await Dispatcher().drain()
    page = await ada.get(path[1])

    assert 'value="expense.report.submitted"' in offered.text
    assert made.status_code == 201
    assert tested.status_code == 303
    assert receiver.received[0].is_signed_with(secret[0])
    assert secret[0] not in page.text
    assert secret[0] not in listed.text
    assert "Delivered" in page.text
    assert "The &lt;b&gt;bank&lt;/b&gt;" in page.text

    asked = await ada.get(f"{path[1]}/removal")
    removed = await ada.post(f"{path[1]}/removal")
    gone = await ada.get(path[1])
    assert "go with it" in asked.text
    assert (removed.status_code, gone.status_code) == (303, 404)


async def test_what_does_not_do_is_said_at_its_field(telling: Telling, receiver: Receiver) -> None:
    ada = telling.desk.world.client(telling.acme["ada"])

    inside = await ada.post("/admin/webhooks", data=fields(receiver))
    nothing = await ada.post(
        "/admin/webhooks", data={"url": "https://hooks.example/x", "description": "x"}
    )
    unknown = await ada.post(
        "/admin/webhooks", data=fields(receiver, url="https://h.example/", event_types=["no.such"])
    )

    assert (inside.status_code, nothing.status_code, unknown.status_code) == (422, 422, 422)
    assert 'id="field-url-error"' in inside.text
    assert receiver.url in inside.text, "what was typed"
    assert "Choose what the receiver is told." in nothing.text
    assert "Choose one of the offered values." in unknown.text


async def test_a_receiver_is_changed_paused_and_gets_a_new_secret(
    telling: Telling, receiver: Receiver
) -> None:
    made, old = telling.subscribe(receiver)
    ada = telling.desk.world.client(telling.acme["ada"])
    path = f"/admin/webhooks/{made.id}"

    changed = await ada.post(path, data=fields(receiver, event_types=["expense.report.created"]))
    paused = await ada.post(f"{path}/pause")
    twice = await ada.post(f"{path}/pause")
    untested = await ada.post(f"{path}/test")
    resumed = await ada.post(f"{path}/resumption")
    rotated = await ada.post(f"{path}/secret")

    assert [each.status_code for each in (changed, paused, twice, untested, resumed)] == [
        *(303, 303, 409, 409, 303)
    ]
    new = re.search(r"whsec_[A-Za-z0-9+/=]{44}", rotated.text)
    assert new is not None
    assert new[0] != old
    now = telling.subscription(made.id)
    assert (now.state, now.event_types) == ("active", ["expense.report.created"])
    page = await ada.get(path)
    assert "The old secret is valid until" in page.text


@pytest.mark.requirement("CMD-24")
async def test_what_was_given_up_is_seen_and_sent_again(
    telling: Telling, receiver: Receiver
) -> None:
    receiver.answer = lambda _: 404
    made, _ = telling.subscribe(receiver)
    ada = telling.desk.world.client(telling.acme["ada"])
    path = f"/admin/webhooks/{made.id}"
    await telling.desk.draft("alice")
    await telling.tell()

    page = await ada.get(path, params={"state": "dead"})
    (dead,) = telling.deliveries()
    receiver.answer = lambda _: 204
    again = await ada.post(f"{path}/deliveries/{dead.id}/redelivery")
    await telling.tell()
    all_again = await ada.post(f"{path}/redelivery")
    unknown = await ada.post(f"{path}/deliveries/{ids.ulid()}/redelivery")

    assert "Given up" in page.text
    assert "404" in page.text
    assert again.status_code == all_again.status_code == 303
    assert unknown.status_code == 404
    assert len({got.id for got in receiver.received}) == 1
    assert len(receiver.received) == 2


async def test_receivers_are_for_administrators_of_the_whole_workspace(
    telling: Telling, receiver: Receiver
) -> None:
    made, _ = telling.subscribe(receiver)
    world = telling.desk.world
    world.give(telling.acme["bob"], "hooks", grants={"command.webhook.manage": "org"})

    for user, status in (("alice", 403), ("axel", 403), ("bob", 404), ("olga", 200)):
        browser = world.client(telling.acme[user])
        assert (await browser.get("/admin/webhooks")).status_code == status, user
        assert (await browser.get(f"/admin/webhooks/{made.id}")).status_code == status, user
    gina = world.client(world.globex["gina"])
    assert (await gina.get(f"/admin/webhooks/{made.id}")).status_code == 404
    assert (await gina.post(f"/admin/webhooks/{made.id}/removal")).status_code == 404
    assert db.read_now(lambda session: session.get(type(made), (made.tenant_id, made.id)))
