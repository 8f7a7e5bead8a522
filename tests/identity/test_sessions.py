"""Browser sessions: found by a secret, rotated when rights change, ended on the server (SEC-37)."""

import pytest
from httpx2 import Response
from sqlmodel import Session, select

from app.identity import cookies, epochs, sessions, tenants, users
from app.identity.models import BrowserSession, Tenant, User
from app.identity.principal import Principal
from app.identity.sessions import Browser
from app.kernel import db, ids
from app.kernel.db import Work
from app.kernel.errors import NotFound
from tests.clock import Clock
from tests.people import AGENT, World
from tests.signing_in import entries, give_password, sign_in

HERE = Browser("192.0.2.0/24", AGENT)


def begin(user: User) -> str:
    def run(work: Work) -> str:
        return sessions.start(work, users.one(work.session, user.tenant_id, user.id), ["pwd"], HERE)

    return db.transact_now(run)


def person_of(secret: str) -> Principal:
    signed = db.read_now(sessions.find, secret)
    assert signed is not None
    return sessions.person(signed)


def session_cookies(response: Response) -> list[str]:
    lines = response.headers.get_list("set-cookie")
    return [line for line in lines if line.startswith("__Host-sid=")]


@pytest.mark.requirement("SEC-5", "SEC-37")
def test_a_secret_names_its_tenant_and_is_stored_as_a_digest(world: World) -> None:
    secret = begin(world.acme["alice"])

    assert secret.startswith(f"{world.acme.id}.")

    def stored(session: Session) -> str:
        return repr(session.exec(select(BrowserSession)).all())

    assert secret.partition(".")[2] not in db.read_now(stored)
    assert ids.sha256(secret) in db.read_now(stored)


@pytest.mark.requirement("SEC-37")
@pytest.mark.parametrize(
    "secret",
    ["", ".", "x", "x.y", f"{'0' * 26}.{'A' * 43}", "é" * 70, f"{'0' * 26}.{'A' * 42}\x00"],
)
def test_what_the_server_did_not_issue_opens_nothing(world: World, secret: str) -> None:
    assert db.read_now(sessions.find, secret) is None


@pytest.mark.requirement("SEC-37")
def test_a_secret_under_another_tenants_name_opens_nothing(world: World) -> None:
    secret = begin(world.acme["alice"])
    moved = f"{world.globex.id}.{secret.partition('.')[2]}"

    assert db.read_now(sessions.find, secret) is not None
    assert db.read_now(sessions.find, moved) is None


@pytest.mark.requirement("SEC-37")
def test_a_session_ends_after_eight_idle_hours_and_after_seven_days(
    clock: Clock, world: World
) -> None:
    idle, busy = begin(world.acme["alice"]), begin(world.acme["alice"])
    session_id = person_of(busy).session_id or ""

    for _ in range(23):
        clock.move(hours=7)
        db.transact_now(sessions.seen, world.acme.id, session_id)
    assert db.read_now(sessions.find, idle) is None
    assert db.read_now(sessions.find, busy) is not None

    clock.move(hours=7)
    db.transact_now(sessions.seen, world.acme.id, session_id)

    assert db.read_now(sessions.find, busy) is None


@pytest.mark.requirement("SEC-37")
async def test_being_there_is_written_once_a_minute(clock: Clock, world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser:
        began = clock.now
        clock.move(seconds=59)
        await browser.get("/settings")
        assert [row.last_seen_at for row in of(alice)] == [began]

        clock.move(seconds=2)
        await browser.get("/settings")

    assert [row.last_seen_at for row in of(alice)] == [clock.now]


def of(user: User) -> list[BrowserSession]:
    return list(db.read_now(sessions.of_user, user.tenant_id, user.id))


@pytest.mark.requirement("SEC-37")
async def test_the_cookie_has_exactly_the_attributes_that_keep_it_safe(world: World) -> None:
    give_password(world.acme["alice"])
    async with world.anonymous() as browser:
        [cookie] = session_cookies(await sign_in(browser, "alice"))

    name, _, rest = cookie.partition(";")
    assert name.startswith("__Host-sid=01")
    assert {part.strip() for part in rest.split(";")} == {
        "HttpOnly",
        "Max-Age=604800",
        "Path=/",
        "SameSite=Lax",
        "Secure",
    }


@pytest.mark.requirement("SEC-T22", "SEC-37")
async def test_a_cookie_set_before_sign_in_is_never_adopted(world: World) -> None:
    alice = world.acme["alice"]
    give_password(alice)
    planted = ids.secret(world.acme.id)
    attackers = begin(world.acme["bob"])
    for fixed in (planted, attackers):
        async with world.anonymous() as browser:
            browser.cookies.set(cookies.session_name(), fixed, domain="localhost.local")
            browser.headers["X-Test"] = "fixation"
            answer = await sign_in_with_cookie(browser)
            [cookie] = session_cookies(answer)

        assert fixed not in cookie
        signed = db.read_now(sessions.find, cookie.partition("=")[2].partition(";")[0])
        assert signed is not None
        assert signed.user.id == alice.id
        assert db.read_now(sessions.find, fixed) is None


async def sign_in_with_cookie(browser: object) -> Response:
    """The page leads somebody who is signed in away, so its form comes from a clean browser."""
    from httpx2 import AsyncClient

    from app.identity import csrf

    assert isinstance(browser, AsyncClient)
    mark = "M" * 43
    browser.cookies.set(cookies.pre_name(), mark, domain="localhost.local")
    form = {
        "_csrf": csrf.of_pre_session(mark),
        "tenant": "acme",
        "login": "alice",
        "password": "correct horse battery staple",
    }
    return await browser.post("/sign-in", data=form)


@pytest.mark.requirement("SEC-T22", "SEC-37", "SEC-9")
async def test_the_secret_rotates_at_the_first_request_under_a_new_epoch(
    clock: Clock, world: World
) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser:
        old = browser.cookies[cookies.session_name()]

        def promote(work: Work) -> None:
            epochs.raise_for(work, alice.tenant_id, [alice.id], "role_granted")

        db.transact_now(promote)
        answer = await browser.get("/settings")
        [cookie] = session_cookies(answer)
        fresh = cookie.partition("=")[2].partition(";")[0]

        assert answer.status_code == 200
        assert fresh != old
        assert db.read_now(sessions.find, old) is not None, "for requests on their way"
        clock.move(seconds=11)
        assert db.read_now(sessions.find, old) is None
        assert db.read_now(sessions.find, fresh) is not None
        assert session_cookies(await browser.get("/settings")) == []


@pytest.mark.requirement("SEC-T22", "SEC-38")
def test_a_step_up_kills_the_old_secret_at_once(world: World) -> None:
    old = begin(world.acme["alice"])

    def confirm(work: Work) -> str:
        signed = sessions.find(work.session, old)
        assert signed is not None
        return sessions.step_up(work, signed, ["passkey"])

    made = db.transact_now(confirm)

    assert db.read_now(sessions.find, old) is None
    signed = db.read_now(sessions.find, made)
    assert signed is not None
    assert signed.session.amr == ["passkey", "pwd"]


@pytest.mark.requirement("SEC-T22", "SEC-38")
def test_a_step_up_ends_the_grace_of_the_secret_before_as_well(world: World) -> None:
    alice = world.acme["alice"]
    first = begin(alice)

    def rotate(work: Work) -> str:
        epochs.raise_for(work, alice.tenant_id, [alice.id], "role_granted")
        work.session.expire_all()
        signed = sessions.find(work.session, first)
        assert signed is not None
        second = sessions.follow_epoch(work, signed, first)
        assert second is not None
        return second

    def confirm(work: Work, secret: str) -> str:
        signed = sessions.find(work.session, secret)
        assert signed is not None
        return sessions.step_up(work, signed, ["pwd"])

    second = db.transact_now(rotate)
    assert db.read_now(sessions.find, first) is not None
    db.transact_now(confirm, second)

    assert db.read_now(sessions.find, first) is None
    assert db.read_now(sessions.find, second) is None


@pytest.mark.requirement("SEC-P30", "SEC-37")
async def test_signing_out_ends_the_session_on_the_server_and_takes_the_cookie(
    world: World,
) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser:
        secret = browser.cookies[cookies.session_name()]
        answer = await browser.post("/sign-out")

    [cookie] = session_cookies(answer)
    assert db.read_now(sessions.find, secret) is None
    assert cookie.startswith(('__Host-sid=""', "__Host-sid=;"))
    for attribute in ("Max-Age=0", "Path=/", "Secure", "HttpOnly", "SameSite=Lax"):
        assert attribute in cookie
    [entry] = entries(world.acme.id, "identity.session.end")
    assert (entry.user_id, entry.reason) == (alice.id, "signed_out")


@pytest.mark.requirement("SEC-P29")
async def test_no_cookie_goes_to_other_sites_and_no_answer_allows_them(world: World) -> None:
    give_password(world.acme["alice"])
    async with world.anonymous() as browser:
        answer = await sign_in(browser, "alice")
        page = await browser.get("/settings", headers={"Origin": "https://evil.example"})

    set_by_us = answer.headers.get_list("set-cookie")
    assert set_by_us
    assert all("SameSite=Lax" in line for line in set_by_us if line.startswith("__Host-"))
    assert not any("SameSite=None" in line for line in set_by_us)
    assert not [name for name in page.headers if name.lower().startswith("access-control")]


@pytest.mark.requirement("SEC-37")
def test_somebody_elses_session_cannot_be_ended(world: World) -> None:
    theirs = begin(world.acme["bob"])
    alice, bob = person_of(begin(world.acme["alice"])), person_of(theirs)

    with pytest.raises(NotFound):
        db.transact_now(sessions.end, alice, str(bob.session_id), "ended_by_user")

    assert db.read_now(sessions.find, theirs) is not None


@pytest.mark.requirement("SEC-31")
def test_sessions_of_a_suspended_tenant_open_nothing_even_when_it_works_again(
    world: World,
) -> None:
    secret = begin(world.acme["alice"])

    def change(work: Work, act: str) -> None:
        tenant = work.session.get_one(Tenant, world.acme.id)
        getattr(tenants, act)(work, tenant)

    db.transact_now(change, "suspend")
    assert db.read_now(sessions.find, secret) is None
    db.transact_now(change, "resume")

    assert db.read_now(sessions.find, secret) is None


@pytest.mark.parametrize(
    ("agent", "device"),
    [
        (AGENT, "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/141.0 Safari/537.36 Edg/141.0",
         "Edge on Windows"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15) AppleWebKit/605.1 Version/18.0 Safari/605",
         "Safari on macOS"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) AppleWebKit/605 CriOS/141 Mobile Safari/604",
         "Chrome on iOS"),
        ("curl/8", "Browser"),
        ("", "Browser"),
    ],
)  # fmt: skip
def test_a_session_is_listed_by_the_browser_it_is_in(agent: str, device: str) -> None:
    assert sessions.device_of(agent) == device
