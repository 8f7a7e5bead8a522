"""Signing in with a password: one answer to everything that is wrong (SEC-41)."""

import re

import pytest
from httpx2 import AsyncClient, Response
from sqlmodel import Session, select

from app.identity import cookies, passwords, sessions, tenants, users
from app.identity.models import SignInFailure, Tenant, User
from app.kernel import db
from app.kernel.db import Work
from tests.clock import Clock
from tests.people import World
from tests.signing_in import PASSWORD, entries, give_password, hidden, send, sign_in


def who(browser: AsyncClient) -> str | None:
    secret = browser.cookies.get(cookies.session_name())
    signed = db.read_now(sessions.find, secret) if secret else None
    return signed.user.login if signed else None


@pytest.mark.requirement("SEC-41", "SEC-40")
async def test_the_right_words_begin_a_session(world: World) -> None:
    give_password(world.acme["alice"])
    async with world.anonymous() as browser:
        entered = await send(
            browser,
            "/sign-in?next=/settings",
            tenant=" ACME ",
            login=" Alice ",
            password=PASSWORD,
            next="/settings",
            time_zone="Asia/Shanghai",
        )

        assert (entered.status_code, entered.headers["location"]) == (303, "/settings")
        assert who(browser) == "alice"
        assert (await browser.get("/settings")).status_code == 200
        again = await browser.get("/sign-in?next=/settings/sessions")
        assert (again.status_code, again.headers["location"]) == (303, "/settings/sessions")
    assert world.user(world.acme["alice"]).time_zone == "Asia/Shanghai"
    alice = world.acme["alice"].id
    begun = entries(world.acme.id, "identity.session.start")
    assert [entry.user_id for entry in begun].count(alice) == 1


WRONG = {
    "unknown tenant": ("atlantis", "alice", PASSWORD),
    "no tenant": ("", "alice", PASSWORD),
    "another tenant": ("globex", "alice", PASSWORD),
    "unknown login": ("acme", "nobody", PASSWORD),
    "wrong password": ("acme", "alice", "not the password"),
    "no password is set": ("acme", "bob", PASSWORD),
    "invited": ("acme", "ines", PASSWORD),
    "disabled": ("acme", "dora", PASSWORD),
    "odd characters": ("acme", "alice\u202e' OR 1=1 --", PASSWORD),
}


async def test_a_character_nothing_can_hold_is_an_error_at_its_field(world: World) -> None:
    give_password(world.acme["alice"])
    async with world.anonymous() as browser:
        page = await sign_in(browser, "alice", f"{PASSWORD}\x00", "acme")

        assert who(browser) is None
    assert page.status_code == 422
    assert 'aria-invalid="true"' in page.text


@pytest.mark.requirement("SEC-41", "SEC-T35")
async def test_whatever_is_wrong_the_answer_is_the_same(world: World) -> None:
    for login in ("alice", "dora"):
        give_password(world.acme[login])
    async with world.anonymous() as browser:
        pages = {
            what: await sign_in(browser, login, password, tenant)
            for what, (tenant, login, password) in WRONG.items()
        }
        assert who(browser) is None

    assert {page.status_code for page in pages.values()} == {422}
    assert len({bare(page) for page in pages.values()}) == 1
    assert "Login or password is wrong." in pages["wrong password"].text
    assert PASSWORD not in "".join(page.text for page in pages.values())
    reasons = {entry.reason for entry in entries(world.acme.id, "identity.session.refused")}
    assert reasons == {
        "unknown_login",
        "wrong_password",
        "no_password",
        "user_invited",
        "user_disabled",
    }


def bare(page: Response) -> str:
    """The page without what was typed into it, and without its token."""
    kept = re.sub(r'name="(tenant|login)"([^>]*?) value="[^"]*"', r'name="\1"\2', page.text)
    kept = re.sub(r'name="_csrf" value="[^"]*"|name="csrf" content="[^"]*"', "", kept)
    return re.sub(r" autofocus", "", kept)


@pytest.mark.requirement("SEC-T35", "SEC-41")
async def test_an_unknown_login_costs_the_same_digest_and_the_same_writes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_password(world.acme["alice"])
    genuine_verify, genuine_submit = passwords._verify, db.transaction
    done: list[str] = []

    def verify(stored: str, password: str) -> bool:
        done.append("digest")
        return genuine_verify(stored, password)

    async def transaction(unit: object, *args: object, **kwargs: object) -> object:
        done.append("write")
        return await genuine_submit(unit, *args, **kwargs)  # type: ignore[arg-type]

    async with world.anonymous() as browser:
        await sign_in(browser, "warm-up", "the dummy digest is made once")
        monkeypatch.setattr(passwords, "_verify", verify)
        monkeypatch.setattr(db, "transaction", transaction)
        costs = []
        for tenant, login in (("acme", "alice"), ("acme", "nobody"), ("atlantis", "alice")):
            done.clear()
            await sign_in(browser, login, "not the password", tenant)
            costs.append(list(done))

    assert costs == [["digest", "write"]] * 3


@pytest.mark.requirement("SEC-41", "SEC-T36")
async def test_guessing_gets_slow_and_the_form_keeps_what_was_typed(
    clock: Clock, world: World
) -> None:
    give_password(world.acme["alice"])
    async with world.anonymous() as browser:
        statuses = [
            (await sign_in(browser, "alice", f"guess {number}")).status_code for number in range(5)
        ]
        slow = await sign_in(browser, "alice")

        assert statuses == [422] * 5
        assert slow.status_code == 429
        assert 'value="alice"' in slow.text
        assert "Too many tries." in slow.text
        clock.move(seconds=2)
        assert (await sign_in(browser, "alice")).status_code == 303
    assert db.read_now(failures) == 0


def failures(session: Session) -> int:
    return len(session.exec(select(SignInFailure)).all())


@pytest.mark.requirement("SEC-41", "SEC-51")
async def test_ten_tries_a_minute_are_looked_at_however_long_the_wait(
    clock: Clock, world: World
) -> None:
    give_password(world.acme["alice"])
    async with world.anonymous() as browser:
        tries = 0
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("app.identity.throttle.FREE", 1_000)
            while (await sign_in(browser, "alice", "guess")).status_code == 422:
                tries += 1
                assert tries < 50

        assert tries == 10
        assert (await sign_in(browser, "bob", "guess")).status_code == 422
        clock.move(seconds=61)
        assert (await sign_in(browser, "alice")).status_code == 303


@pytest.mark.requirement("SEC-41")
async def test_the_tenant_is_asked_for_only_where_there_are_several(world: World) -> None:
    async with world.anonymous() as browser:
        assert 'name="tenant"' in (await browser.get("/sign-in")).text

        def only(session: Session) -> Tenant | None:
            return session.get(Tenant, world.acme.id)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(tenants, "only", only)
            give_password(world.acme["alice"])
            page = await browser.get("/sign-in")
            assert 'name="tenant"' not in page.text
            form = {"_csrf": hidden(page, "_csrf"), "login": "alice", "password": PASSWORD}
            assert (await browser.post("/sign-in", data=form)).status_code == 303


@pytest.mark.requirement("SEC-40")
async def test_an_outdated_digest_is_made_anew_at_sign_in(world: World) -> None:
    from argon2 import PasswordHasher

    alice = world.acme["alice"]
    old = PasswordHasher(time_cost=1, memory_cost=8_192, parallelism=1).hash(PASSWORD)
    give_password(alice, old)
    async with world.anonymous() as browser:
        assert (await sign_in(browser, "alice")).status_code == 303

    kept = db.read_now(passwords.of_user, alice)
    assert kept is not None
    assert kept.argon2id is not None
    assert not passwords.is_outdated(kept.argon2id)
    async with world.anonymous() as browser:
        assert (await sign_in(browser, "alice")).status_code == 303


@pytest.mark.requirement("SEC-31", "SEC-41")
async def test_who_is_disabled_while_the_digest_is_computed_gets_no_session(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, olga = world.acme["alice"], world.person(world.acme["olga"])
    give_password(alice)
    genuine = passwords.is_right

    async def slow(stored: str | None, password: str) -> bool:
        right = await genuine(stored, password)
        await db.transaction(disable, alice)
        return right

    def disable(work: Work, user: User) -> None:
        users.disable(work, olga, users.one(work.session, user.tenant_id, user.id))

    monkeypatch.setattr(passwords, "is_right", slow)
    async with world.anonymous() as browser:
        refused = await sign_in(browser, "alice")

        assert refused.status_code == 422
        assert who(browser) is None
    assert list(db.read_now(sessions.of_user, alice.tenant_id, alice.id)) == []


@pytest.mark.requirement("SEC-T22")
async def test_signing_in_again_ends_the_session_the_browser_had(world: World) -> None:
    alice = world.acme["alice"]
    give_password(alice)
    async with world.anonymous() as browser:
        page = await browser.get("/sign-in")
        form = {
            "_csrf": hidden(page, "_csrf"),
            "tenant": "acme",
            "login": "alice",
            "password": PASSWORD,
        }
        await browser.post("/sign-in", data=form)
        first = browser.cookies[cookies.session_name()]
        await browser.post("/sign-in", data=form)

        assert browser.cookies[cookies.session_name()] != first
    assert db.read_now(sessions.find, first) is None
    assert len(db.read_now(sessions.of_user, alice.tenant_id, alice.id)) == 1


@pytest.mark.requirement("UI-25")
async def test_a_blank_form_says_what_is_missing_and_asks_no_database(world: World) -> None:
    async with world.anonymous() as browser:
        page = await send(browser, "/sign-in", tenant="acme", login="alice", password="")

    assert page.status_code == 422
    assert 'value="alice"' in page.text
    assert page.text.count("Fill this in.") >= 1
    assert entries(world.acme.id, "identity.session.refused") == []
