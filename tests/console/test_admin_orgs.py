"""The organisation tree is seen, grown, renamed, moved and closed."""

import re

from sqlmodel import Session, select

from app.identity.models import Org
from app.kernel import db
from tests.people import World


def by_name(session: Session, tenant_id: str, name: str) -> Org:
    return session.exec(select(Org).where(Org.tenant_id == tenant_id, Org.name == name)).one()


def drawn(page: str) -> list[str]:
    return re.findall(r'<a href="/admin/orgs/\w+" dir="auto">([^<]+)</a>', page)


async def test_the_tree_shows_parents_before_children_and_counts(world: World) -> None:
    page = await world.client(world.acme["ada"]).get("/admin/orgs")

    assert drawn(page.text) == ["Acme 贸易", "Beijing 北京", "Shanghai 上海", "Sales"]
    assert "2 people" in page.text
    assert "Globex" not in page.text


async def test_whoever_reaches_a_part_sees_a_part(world: World) -> None:
    world.give(
        world.acme["bob"],
        "lead",
        world.acme.orgs["shanghai"],
        grants={"identity.org.read": "org_and_below", "identity.org.manage": "org_and_below"},
    )
    bob = world.client(world.acme["bob"])

    page = await bob.get("/admin/orgs")
    beyond = await bob.get(f"/admin/orgs/{world.acme.orgs['beijing'].id}")
    made = await bob.post("/admin/orgs", data={"name": "Too high", "parent_id": world.acme.root.id})

    assert drawn(page.text) == ["Shanghai 上海", "Sales"]
    assert (beyond.status_code, made.status_code) == (404, 404)


async def test_a_tree_grows_and_moves_and_nothing_loops(world: World) -> None:
    ada = world.client(world.acme["ada"])
    orgs = world.acme.orgs

    made = await ada.post("/admin/orgs", data={"name": "Team A", "parent_id": orgs["sales"].id})
    twice = await ada.post("/admin/orgs", data={"name": "Team A", "parent_id": orgs["sales"].id})
    team = db.read_now(by_name, world.acme.id, "Team A")
    loop = await ada.post(f"/admin/orgs/{orgs['shanghai'].id}/parent", data={"parent_id": team.id})
    moved = await ada.post(
        f"/admin/orgs/{orgs['sales'].id}/parent", data={"parent_id": orgs["beijing"].id}
    )

    assert (made.status_code, moved.status_code) == (303, 303)
    assert twice.status_code == 422
    assert 'id="field-name-error"' in twice.text
    assert 'value="Team A"' in twice.text
    assert loop.status_code == 422
    assert "cannot be moved below itself" in loop.text
    after = db.read_now(by_name, world.acme.id, "Team A")
    assert after.path == f"{orgs['beijing'].path}{orgs['sales'].id}/{team.id}/"


async def test_an_organisation_in_use_stays_open(world: World) -> None:
    ada = world.client(world.acme["ada"])
    sales = f"/admin/orgs/{world.acme.orgs['sales'].id}"

    refused = await ada.post(f"{sales}/closure")
    renamed = await ada.post(f"{sales}/name", data={"name": "Sales & more"})
    page = await ada.get(sales)

    assert refused.status_code == 409
    assert "people belong to it" in refused.text
    assert renamed.status_code == 303
    assert "Sales &amp; more" in page.text


async def test_a_closed_organisation_takes_nobody(world: World) -> None:
    ada = world.client(world.acme["ada"])
    await ada.post("/admin/orgs", data={"name": "Short", "parent_id": world.acme.root.id})
    short = db.read_now(by_name, world.acme.id, "Short")

    closed = await ada.post(f"/admin/orgs/{short.id}/closure")
    invited = await ada.post(
        "/admin/users", data={"display_name": "x", "login": "x", "org_id": short.id}
    )

    assert closed.status_code == 303
    assert invited.status_code == 422
    assert "This organisation is closed." in invited.text
