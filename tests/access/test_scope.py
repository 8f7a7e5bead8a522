"""Which records a permission reaches: held against an oracle that knows no SQL."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import delete, select
from sqlmodel import Session, col

from app.access import scope
from app.access.explain import Layer, explain
from app.identity.models import Grant, User
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import NotFound, PermissionDenied
from tests.access import worlds
from tests.access.worlds import DECLARED, RECORDS, UNDECLARED, World
from tests.clock import Clock
from tests.databases import Kind

PERMISSIONS = (*DECLARED, UNDECLARED)


@pytest.mark.requirement("SEC-6")
def test_two_hundred_thousand_questions_have_the_oracles_answers(
    opened: str, kind: Kind, clock: Clock
) -> None:
    users = 60 if kind == "sqlite" else 12  # the filter is one text for both
    world = worlds.make(11, users=users, records=360)

    asked = differences = allowed = 0
    for user in world.users:
        for permission in PERMISSIONS:
            reached = db.read_now(_reached, world.principal(user), permission)
            for record in world.records:
                expected = world.allows(user, permission, record)
                asked += 1
                allowed += expected
                differences += expected != (record["id"] in reached)

    assert differences == 0
    assert asked == users * len(PERMISSIONS) * len(world.records)
    assert asked >= 200_000 or kind != "sqlite"
    assert allowed > 20 * users  # the question is not answered by an empty list


@pytest.mark.requirement("SEC-6")
def test_taking_a_grant_away_never_adds_access(opened: str, clock: Clock) -> None:
    world = worlds.make(12, users=9, records=90)
    before = dict(_everything(world))
    chosen = random.Random(3)  # noqa: S311 - a seed, not a secret

    lost = 0
    held = {assignment.role_id for assignment in world.assignments if not assignment.ends_at}
    for grant in chosen.sample([one for one in world.grants if one.role_id in held], 9):
        db.transact_now(_remove, grant)
        after = dict(_everything(world))
        for question, reached in after.items():
            assert reached <= before[question]
            lost += len(before[question] - reached)
        before = after

    assert lost > 0


@pytest.mark.requirement("SEC-6")
def test_the_explanation_agrees_with_the_filter(opened: str, clock: Clock) -> None:
    world = worlds.make(13, users=24, records=60)
    chosen = random.Random(5)  # noqa: S311 - a seed, not a secret
    stopped: set[Layer | None] = set()

    for _ in range(400):
        user = chosen.choice(world.users)
        record = chosen.choice([r for r in world.records if r["tenant_id"] == user.tenant_id])
        permission = chosen.choice(PERMISSIONS)
        found = db.read_now(
            explain,
            world.principal(user),
            permission,
            record["owner_id"],
            record["org_id"],
        )
        assert found.is_allowed == world.allows(user, permission, record), found
        assert bool(found.roles) == found.is_allowed
        for step in found.steps:
            assert step.says % step.facts
        stopped.add(found.stopped_by)

    assert stopped == {None, *Layer}


@pytest.mark.requirement("SEC-6")
def test_what_is_held_is_what_reaches_anything(opened: str, clock: Clock) -> None:
    world = worlds.make(14, users=24, records=30)
    known = {"self", "org", "org_and_below", "all"}

    for user in world.users:
        person = world.principal(user)
        held = db.read_now(scope.permissions_of, person)
        everywhere = db.read_now(scope.tenant_wide_permissions, person)
        tenant = next(each for each in world.tenants if each.id == user.tenant_id)
        is_active = tenant.status == "active" and user.status == "active"
        live = {
            (grant.permission, grant.data_scope)
            for assignment in world.assignments
            for grant in world.grants
            if (assignment.tenant_id, assignment.user_id) == (user.tenant_id, user.id)
            and (grant.tenant_id, grant.role_id) == (assignment.tenant_id, assignment.role_id)
            and (assignment.ends_at is None or assignment.ends_at > clock.now)
            and grant.permission in DECLARED
            and is_active
        }
        assert held == {permission for permission, where in live if where in known}
        assert everywhere == {permission for permission, where in live if where == "all"}
        for permission in PERMISSIONS:
            assert db.read_now(scope.may, person, permission) == (permission in held)
            assert db.read_now(scope.tenant_wide, person, permission) == (permission in everywhere)


@pytest.mark.requirement("SEC-6", "UI-26")
def test_a_foreign_record_is_not_there_and_a_missing_permission_is_said(opened: str) -> None:
    world = worlds.make(15, users=30, records=30)
    person, permission, reached, foreign = db.read_now(_someone_with_some, world)
    nobody = next(user for user in world.users if not db.read_now(_holds, world.principal(user)))

    assert db.read_now(scope.one, person, permission, User, reached).id == reached
    for id_ in (foreign, "01JZZZZZZZZZZZZZZZZZZZZZZZ", "' OR 1=1 --"):
        with pytest.raises(NotFound):
            db.read_now(scope.one, person, permission, User, id_)
    with pytest.raises(PermissionDenied) as refused:
        db.read_now(scope.one, world.principal(nobody), permission, User, reached)
    assert refused.value.facts == {"permission": permission}


@pytest.mark.requirement("SEC-6", "SEC-T14")
def test_the_same_ids_in_another_tenant_are_another_tenants(opened: str) -> None:
    world = worlds.make(16, users=30, records=30)
    for user in world.users:
        for permission in DECLARED:
            found = db.read_now(_users_reached, world.principal(user), permission)
            assert {tenant_id for tenant_id, _ in found} <= {user.tenant_id}


@pytest.mark.requirement("SEC-7")
def test_an_agent_reaches_what_its_user_reaches(opened: str) -> None:
    world = worlds.make(17, users=30, records=60)
    person, permission, _, _ = db.read_now(_someone_with_some, world)
    agent = Principal(
        tenant_id=person.tenant_id,
        user_id=person.user_id,
        agent_release_id="R",
        delegation_id="D",
        session_id=None,
        channel=person.channel,
        actors=("A",),
        scopes=frozenset(),
        epoch=1,
    )

    assert db.read_now(_reached, agent, permission) == db.read_now(_reached, person, permission)


def test_a_filter_without_a_tenant_is_refused() -> None:
    person = World().principal(
        User(tenant_id="T", id="U", login="u", display_name="U", org_id="O", authz_epoch=1)  # type: ignore[call-arg]
    )
    with pytest.raises(ValueError, match="tenant"):
        scope.reaches(person, "thing.p1", owner=None, org=None)


def _reached(session: Session, person: Principal, permission: str) -> set[str]:
    condition = scope.reaches(person, permission, owner=RECORDS.c.owner_id, org=RECORDS.c.org_id)
    return set(session.scalars(select(RECORDS.c.id).where(condition)))


def _users_reached(session: Session, person: Principal, permission: str) -> list[Any]:
    query = select(col(User.tenant_id), col(User.id)).where(scope.within(person, permission, User))
    return list(session.execute(query).all())


def _everything(world: World) -> Iterator[tuple[tuple[str, str], set[str]]]:
    for user in world.users:
        for permission in DECLARED:
            yield (user.id, permission), db.read_now(_reached, world.principal(user), permission)


def _remove(work: Work, grant: Grant) -> None:
    work.session.execute(
        delete(Grant).where(
            col(Grant.tenant_id) == grant.tenant_id,
            col(Grant.role_id) == grant.role_id,
            col(Grant.permission) == grant.permission,
        )
    )


def _holds(session: Session, person: Principal) -> bool:
    return bool(scope.permissions_of(session, person))


def _someone_with_some(session: Session, world: World) -> tuple[Principal, str, str, str]:
    """Someone who reaches some users but not all, and one of each."""
    for user in world.users:
        person = world.principal(user)
        everyone = {other.id for other in world.users if other.tenant_id == user.tenant_id}
        for permission in scope.permissions_of(session, person):
            reached = {row[1] for row in _users_reached(session, person, permission)}
            if reached and reached != everyone:
                return person, permission, min(reached), min(everyone - reached)
    raise AssertionError("the world has nobody like that")
