"""The tree: paths follow a move whole, and whoever stands below gets a new epoch."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.identity import orgs
from app.identity.errors import NotUsableNow, StillInUse, WouldLoop
from app.identity.models import Org
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import Invalid
from tests.people import World


def one(world: World, name: str) -> Org:
    org = world.acme.orgs[name] if name else world.acme.root
    return db.read_now(orgs.one, world.acme.id, org.id)


def move(work: Work, world: World, name: str, to: str) -> None:
    source = orgs.one(work.session, world.acme.id, one_id(world, name))
    orgs.move(
        work, world.acme_admin, source, orgs.one(work.session, world.acme.id, one_id(world, to))
    )


def one_id(world: World, name: str) -> str:
    return world.acme.orgs[name].id if name else world.acme.root.id


def grow(work: Work, world: World, below: str, name: str) -> Org:
    return orgs.create(
        work, world.acme_admin, orgs.one(work.session, world.acme.id, one_id(world, below)), name
    )


def close(work: Work, world: World, name: str) -> None:
    orgs.close(work, world.acme_admin, orgs.one(work.session, world.acme.id, one_id(world, name)))


@pytest.mark.requirement("SEC-10", "SEC-9")
def test_a_move_takes_the_whole_subtree_and_its_people(world: World) -> None:
    world.acme.orgs["team"] = db.transact_now(grow, world, "sales", "Team")
    before = {login: world.user(world.acme[login]).authz_epoch for login in ("alice", "bob")}

    db.transact_now(move, world, "sales", "beijing")

    beijing, sales, team = (one(world, name) for name in ("beijing", "sales", "team"))
    assert sales.path == f"{beijing.path}{sales.id}/"
    assert team.path == f"{sales.path}{team.id}/"
    assert sales.parent_id == beijing.id
    after = {login: world.user(world.acme[login]).authz_epoch for login in ("alice", "bob")}
    assert after == {"alice": before["alice"], "bob": before["bob"] + 1}


@pytest.mark.parametrize(("name", "to"), [("shanghai", "sales"), ("shanghai", "shanghai")])
def test_nothing_moves_below_itself(world: World, name: str, to: str) -> None:
    with pytest.raises(WouldLoop):
        db.transact_now(move, world, name, to)


def test_two_moves_at_once_close_no_loop(world: World) -> None:
    has_moved, has_looked, go_on = threading.Event(), threading.Event(), threading.Event()

    def move_and_wait(work: Work) -> None:
        move(work, world, "sales", "beijing")
        has_moved.set()
        if not db.is_sqlite():  # which has one writer: the other's turn comes afterwards
            assert has_looked.wait(20)
        assert go_on.wait(20)

    def move_what_was_seen(work: Work) -> None:
        beijing, sales = (
            orgs.one(work.session, world.acme.id, one_id(world, name))
            for name in ("beijing", "sales")
        )
        has_looked.set()
        orgs.move(work, world.acme_admin, beijing, sales)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(db.transact_now, move_and_wait)
        assert has_moved.wait(20)
        second = pool.submit(db.transact_now, move_what_was_seen)
        go_on.set()
        first.result(20)
        with pytest.raises(WouldLoop):
            second.result(20)


def test_the_root_neither_moves_nor_closes(world: World) -> None:
    with pytest.raises(NotUsableNow):
        db.transact_now(move, world, "", "beijing")
    with pytest.raises(NotUsableNow):
        db.transact_now(close, world, "")


def test_what_is_in_use_stays_open(world: World) -> None:
    with pytest.raises(StillInUse):
        db.transact_now(close, world, "shanghai")


def test_siblings_have_names_of_their_own_and_cousins_need_not(world: World) -> None:
    with pytest.raises(Invalid):
        db.transact_now(grow, world, "", "Shanghai 上海")

    db.transact_now(grow, world, "beijing", "Sales")


def test_a_tree_has_an_end(world: World) -> None:
    with pytest.raises(Invalid) as refused:
        dig(world)

    assert refused.value.errors[0].pointer == "parent_id"


def dig(world: World) -> None:
    below = "sales"
    for depth in range(40):
        world.acme.orgs[f"d{depth}"] = db.transact_now(grow, world, below, f"D{depth}")
        below = f"d{depth}"
