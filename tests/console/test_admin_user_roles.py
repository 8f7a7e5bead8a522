"""Roles are assigned and taken away within what one holds, and rights are explained."""

from datetime import timedelta

import pytest

from app.identity import roles
from app.identity.models import Role, User
from app.kernel import db
from tests.clock import Clock
from tests.people import World


def role(world: World, code: str) -> Role:
    found = db.read_now(roles.by_code, world.acme.id, code)
    assert found is not None
    return found


def held(user: User) -> set[tuple[str, str]]:
    return {(each.code, org.name) for _, each, org in db.read_now(roles.assignments_of, user)}


async def test_a_role_is_assigned_with_an_end_in_the_readers_zone(
    world: World, clock: Clock
) -> None:
    ada = world.client(world.acme["ada"])
    path = f"/admin/users/{world.acme['alice'].id}"

    done = await ada.post(
        f"{path}/roles",
        data={
            "role_id": role(world, "member").id,
            "org_id": world.acme.orgs["beijing"].id,
            "ends_at": "2026-03-03T10:00",
        },
    )

    assert done.status_code == 303
    assert ("member", "Beijing 北京") in held(world.acme["alice"])
    ends = {a.ends_at for a, _, o in db.read_now(roles.assignments_of, world.acme["alice"])}
    assert clock.now + timedelta(days=1, minutes=30) in ends


async def test_nobody_gives_what_they_do_not_hold(world: World) -> None:
    ada = world.client(world.acme["ada"])
    path = f"/admin/users/{world.acme['ada'].id}/roles"

    answer = await ada.post(
        path, data={"role_id": role(world, "owner").id, "org_id": world.acme.root.id}
    )

    assert answer.status_code == 422
    assert 'id="field-role_id-error"' in answer.text
    assert "permissions that you do not hold yourself" in answer.text
    assert held(world.acme["ada"]) == {("administrator", "Acme 贸易")}


async def test_an_end_that_has_passed_is_said_at_its_field(world: World) -> None:
    ada = world.client(world.acme["ada"])

    answer = await ada.post(
        f"/admin/users/{world.acme['alice'].id}/roles",
        data={
            "role_id": role(world, "member").id,
            "org_id": world.acme.root.id,
            "ends_at": "2020-01-01T00:00",
        },
    )

    assert answer.status_code == 422
    assert 'id="field-ends_at-error"' in answer.text
    assert 'value="2020-01-01T00:00"' in answer.text


@pytest.mark.requirement("SEC-10")
async def test_the_last_owner_keeps_the_role(world: World) -> None:
    olga = world.client(world.acme["olga"])
    path = f"/admin/users/{world.acme['olga'].id}/roles/removal"
    data = {"role_id": role(world, "owner").id, "org_id": world.acme.root.id}

    asked = await olga.get(path, params={"role": data["role_id"], "org": data["org_id"]})
    answer = await olga.post(path, data=data)

    assert asked.status_code == 200
    assert answer.status_code == 409
    assert "This is the last active owner." in answer.text
    assert ("owner", "Acme 贸易") in held(world.acme["olga"])


@pytest.mark.requirement("SEC-9")
async def test_a_role_taken_away_is_gone_at_the_next_click(world: World) -> None:
    olga, axel = world.client(world.acme["olga"]), world.client(world.acme["axel"])
    assert (await axel.get("/admin/users")).status_code == 200
    before = world.user(world.acme["axel"]).authz_epoch

    done = await olga.post(
        f"/admin/users/{world.acme['axel'].id}/roles/removal",
        data={"role_id": role(world, "auditor").id, "org_id": world.acme.root.id},
    )

    assert done.status_code == 303
    assert (await axel.get("/admin/users")).status_code == 403
    assert world.user(world.acme["axel"]).authz_epoch > before


@pytest.mark.parametrize(
    ("whose", "says", "stopped"),
    [("own", "Yes, they may.", "own records"), ("other", "No, they may not.", "Data scope")],
)
async def test_rights_are_explained_layer_by_layer(
    world: World, whose: str, says: str, stopped: str
) -> None:
    ada = world.client(world.acme["ada"])
    path = f"/admin/users/{world.acme['alice'].id}/explain"

    page = await ada.get(path, params={"permission": "identity.user.read", "whose": whose})
    empty = await ada.get(path)

    assert says in page.text
    assert "identity.user.read is given by: member." in page.text
    assert "Ask a question" in empty.text
