"""Roles of one's own are made, copied, changed and removed; shipped ones stay."""

from app.identity import roles
from app.identity.models import Role
from app.kernel import db
from tests.people import World


def found(world: World, code: str) -> Role | None:
    return db.read_now(roles.by_code, world.acme.id, code)


def grants(role: Role) -> dict[str, str]:
    return db.read_now(roles.grants_of, role)


async def make(world: World, *given: str) -> Role:
    ada = world.client(world.acme["ada"])
    answer = await ada.post(
        "/admin/roles", data={"name": "Desk", "code": "desk", "grants": list(given)}
    )
    assert answer.status_code == 303
    role = found(world, "desk")
    assert role is not None
    return role


async def test_a_role_says_what_it_grants_and_how_far(world: World) -> None:
    role = await make(world, "identity.user.read=org", "", "identity.agent.read=all")

    page = await world.client(world.acme["axel"]).get(f"/admin/roles/{role.id}")

    assert grants(role) == {"identity.user.read": "org", "identity.agent.read": "all"}
    assert "identity.user.read" in page.text
    assert "/edit" not in page.text, "an auditor reads"


async def test_a_role_cannot_hold_more_than_its_maker(world: World) -> None:
    ada = world.client(world.acme["ada"])
    data = {"name": "Spy", "code": "spy", "grants": ["audit.read=all", "identity.org.read=all"]}

    answer = await ada.post("/admin/roles", data=data)

    assert answer.status_code == 422
    assert "permissions that you do not hold yourself" in answer.text
    assert 'value="Spy"' in answer.text
    assert '<option value="identity.org.read=all" selected>' in answer.text
    assert found(world, "spy") is None


async def test_what_does_not_exist_cannot_be_granted(world: World) -> None:
    olga = world.client(world.acme["olga"])

    for grant in ("identity.user.read=galaxy", "nothing.at.all=all", "identity.user.read"):
        answer = await olga.post(
            "/admin/roles", data={"name": "Odd", "code": "odd", "grants": [grant]}
        )
        assert answer.status_code == 422, grant

    assert found(world, "odd") is None


async def test_a_change_reaches_its_holders_at_the_next_click(world: World) -> None:
    role = await make(world, "identity.user.read=all")
    world.give(world.acme["bob"], "desk")
    bob, ada = world.client(world.acme["bob"]), world.client(world.acme["ada"])
    assert "Axel Berg" in (await bob.get("/admin/users")).text

    done = await ada.post(
        f"/admin/roles/{role.id}",
        data={"name": "Desk 2", "grants": ["identity.user.read=self"], "version": "1"},
    )

    assert done.status_code == 303
    assert "Axel Berg" not in (await bob.get("/admin/users")).text


async def test_two_who_change_a_role_at_once_lose_nothing(world: World) -> None:
    role = await make(world)
    ada = world.client(world.acme["ada"])
    path = f"/admin/roles/{role.id}"
    await ada.post(path, data={"name": "First", "grants": [], "version": "1"})

    second = await ada.post(path, data={"name": "Second", "grants": [], "version": "1"})

    assert second.status_code == 422
    assert "First" in second.text
    assert 'value="Second"' in second.text
    assert 'name="version" value="2"' in second.text


async def test_a_held_role_is_not_removed_and_a_free_one_is(world: World) -> None:
    role = await make(world)
    world.give(world.acme["bob"], "desk")
    olga = world.client(world.acme["olga"])

    refused = await olga.post(f"/admin/roles/{role.id}/removal")
    await olga.post(
        f"/admin/users/{world.acme['bob'].id}/roles/removal",
        data={"role_id": role.id, "org_id": world.acme["bob"].org_id},
    )
    removed = await olga.post(f"/admin/roles/{role.id}/removal")

    assert refused.status_code == 409
    assert "people hold this role" in refused.text
    assert removed.status_code == 303
    assert found(world, "desk") is None


async def test_shipped_roles_are_copied_not_changed(world: World) -> None:
    olga = world.client(world.acme["olga"])
    member = found(world, "member")
    assert member is not None

    edited = await olga.post(
        f"/admin/roles/{member.id}", data={"name": "Mine", "version": "1", "grants": []}
    )
    copied = await olga.get("/admin/roles/new", params={"copy": member.id})
    listed = await olga.get("/admin/roles")

    assert edited.status_code == 409
    assert '<option value="identity.agent.read=all" selected>' in copied.text
    assert listed.text.count("Ships with Assent") == 4
