"""The first start: one link makes the first tenant and its owner (SEC-42)."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.identity import roles, setup, tenants
from app.identity.errors import LinkInvalid
from app.identity.models import SetupLink
from app.identity.setup import FirstOwner
from app.kernel import clock, db, ids
from app.kernel.db import Work
from app.kernel.errors import Invalid
from tests.clock import Clock
from tests.signing_in import DIGEST

OWNER = FirstOwner(
    tenant_name="Example Ltd",
    tenant_slug="example",
    login="alice",
    display_name="Alice Wang",
    locale="zh-CN",
    argon2id=DIGEST,
)


def new_link() -> str:
    db.transact_now(setup.declare)
    secret = db.transact_now(setup.make_link)
    assert secret is not None
    return secret


@pytest.mark.requirement("SEC-42")
def test_the_link_makes_a_tenant_and_an_active_owner(opened: str) -> None:
    tenant, user = db.transact_now(setup.complete, new_link(), OWNER)

    assert (tenant.slug, tenant.locale, user.login, user.status) == (
        "example",
        "zh-CN",
        "alice",
        "active",
    )
    held = db.read_now(roles.assignments_of, user)
    assert [role.code for _, role, _ in held] == ["owner"]
    assert db.transact_now(setup.make_link) is None


@pytest.mark.requirement("SEC-42")
def test_the_link_works_once_and_for_an_hour(clock: Clock, opened: str) -> None:
    secret = new_link()
    db.read_now(setup.check, secret)
    clock.move(minutes=60)
    with pytest.raises(LinkInvalid):
        db.read_now(setup.check, secret)
    with pytest.raises(LinkInvalid):
        db.transact_now(setup.complete, secret, OWNER)

    fresh = new_link()
    db.transact_now(setup.complete, fresh, OWNER)

    with pytest.raises(LinkInvalid):
        db.read_now(setup.check, fresh)


@pytest.mark.requirement("SEC-42")
def test_a_start_makes_a_new_link_and_ends_the_old_one(opened: str) -> None:
    old, new = new_link(), new_link()

    db.read_now(setup.check, new)
    with pytest.raises(LinkInvalid):
        db.read_now(setup.check, old)


@pytest.mark.requirement("SEC-42")
def test_what_cannot_be_stored_uses_nothing_up(opened: str) -> None:
    secret = new_link()
    bad = FirstOwner(**{**fields(), "tenant_slug": "No Slug!"})

    with pytest.raises(Invalid):
        db.transact_now(setup.complete, secret, bad)

    db.read_now(setup.check, secret)


@pytest.mark.requirement("SEC-42")
def test_of_two_at_once_one_becomes_the_owner(opened: str) -> None:
    secret = new_link()

    def become(login: str) -> bool:
        try:
            db.transact_now(setup.complete, secret, FirstOwner(**{**fields(), "login": login}))
        except LinkInvalid:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        became = list(pool.map(become, ["alice", "mallory"]))

    assert sorted(became) == [False, True]


def fields() -> dict[str, str]:
    return {name: getattr(OWNER, name) for name in FirstOwner.__dataclass_fields__}


@pytest.mark.requirement("SEC-42")
def test_of_two_links_of_servers_that_started_together_one_makes_an_owner(opened: str) -> None:
    links = [new_link(), "another-servers-link"]
    db.transact_now(remember, links[1])

    def become(link: str, slug: str) -> bool:
        try:
            db.transact_now(setup.complete, link, FirstOwner(**{**fields(), "tenant_slug": slug}))
        except LinkInvalid:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        became = list(pool.map(become, links, ["example", "other"]))

    assert sorted(became) == [False, True]
    assert db.read_now(tenants.count) == 1
    for link in links:
        with pytest.raises(LinkInvalid):
            db.read_now(setup.check, link)


def remember(work: Work, link: str) -> None:
    ends_at = clock.now() + setup.LIVES
    work.session.add(SetupLink(secret_sha256=ids.sha256(link), expires_at=ends_at))
