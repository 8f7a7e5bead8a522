"""Passkeys: one challenge of ours, one browser, one answer, and the person verified (SEC-39)."""

import json
from typing import Any

import pytest
from httpx2 import AsyncClient, Response
from sqlmodel import Session, select

from app.identity import cookies, sessions, ways_in
from app.identity.models import Credential, User
from app.kernel import db
from tests.authenticator import USER_PRESENT, Authenticator, raw
from tests.clock import Clock
from tests.people import World
from tests.signing_in import entries, give_password, hidden, sign_in


async def add(browser: AsyncClient, passkey: Authenticator, **changes: Any) -> Response:
    options = (await browser.post("/settings/passkeys/options")).json()
    return await browser.post(
        "/settings/passkeys",
        data={"label": "Laptop", "credential": passkey.create(options, **changes)},
    )


async def enter(browser: AsyncClient, passkey: Authenticator, **changes: Any) -> Response:
    browser.cookies.clear()
    token = hidden(await browser.get("/sign-in"), "_csrf")
    asked = await browser.post("/sign-in/passkey/options", headers={"X-CSRF-Token": token})
    answer = passkey.get(asked.json(), **changes)
    return await browser.post("/sign-in/passkey", data={"_csrf": token, "credential": answer})


def passkeys_of(user: User) -> list[Credential]:
    return db.read_now(ways_in.passkeys, user)


def who(browser: AsyncClient) -> str | None:
    secret = browser.cookies.get(cookies.session_name())
    signed = db.read_now(sessions.find, secret) if secret else None
    return signed.user.login if signed else None


@pytest.mark.requirement("SEC-39")
async def test_a_passkey_is_added_and_signs_its_person_in(world: World) -> None:
    alice, passkey = world.acme["alice"], Authenticator()
    async with world.client(alice) as browser, world.anonymous() as other:
        added = await add(browser, passkey)
        entered = await enter(other, passkey)

        assert (added.status_code, added.headers["location"]) == (303, "/settings/security")
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        assert who(other) == "alice"
    [row] = passkeys_of(alice)
    assert (row.label, row.sign_count, row.last_used_at is not None) == ("Laptop", 2, True)
    [entry] = entries(world.acme.id, "identity.passkey.add")
    assert entry.user_id == alice.id


@pytest.mark.requirement("SEC-39")
async def test_the_browser_is_asked_for_what_we_promise(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser, world.anonymous() as other:
        await add(browser, Authenticator())
        options = (await browser.post("/settings/passkeys/options")).json()
        token = hidden(await other.get("/sign-in"), "_csrf")
        asked = await other.post("/sign-in/passkey/options", headers={"X-CSRF-Token": token})

    assert options["rp"]["id"] == "localhost"
    assert raw(options["user"]["id"]).decode() == f"{alice.tenant_id}.{alice.id}"
    assert options["attestation"] == "none"
    assert options["authenticatorSelection"]["userVerification"] == "required"
    assert options["authenticatorSelection"]["residentKey"] == "preferred"
    assert len(options["excludeCredentials"]) == 1
    assert len(raw(options["challenge"])) == 32
    assert asked.json()["userVerification"] == "required"
    assert asked.json().get("allowCredentials", []) == [], "nobody learns who has a passkey"


FORGED: list[tuple[str, Any]] = [
    ("origin", "http://localhost:8001"),
    ("origin", "https://localhost:8000"),
    ("type", "webauthn.create"),
    ("challenge", "A" * 43),
    ("challenge", ""),
]


@pytest.mark.requirement("SEC-39")
async def test_a_forged_answer_signs_nobody_in(world: World) -> None:
    passkey = Authenticator()
    async with world.client(world.acme["alice"]) as browser:
        await add(browser, passkey)
    async with world.anonymous() as other:
        for name, value in FORGED:
            refused = await enter(other, passkey, **{name: value})
            assert refused.status_code == 422, name
        passkey.flags = USER_PRESENT
        assert (await enter(other, passkey)).status_code == 422
        passkey.flags, passkey.rp_id = 5, "evil.example"
        assert (await enter(other, passkey)).status_code == 422
        passkey.rp_id, own = "localhost", passkey.key
        passkey.key = Authenticator().key
        assert (await enter(other, passkey)).status_code == 422
        passkey.key, handle = own, passkey.handle
        for forged in (b"", b"x", f"{world.acme.id}.{world.acme['bob'].id}".encode()):
            passkey.handle = forged
            assert (await enter(other, passkey)).status_code == 422
        assert who(other) is None

        passkey.handle = handle
        assert (await enter(other, passkey)).status_code == 303
    assert {entry.reason for entry in entries(world.acme.id, "identity.session.refused")} == {
        "wrong_passkey"
    }


@pytest.mark.requirement("SEC-39")
async def test_a_challenge_is_answered_once_in_two_minutes_and_in_its_own_browser(
    clock: Clock, world: World
) -> None:
    passkey = Authenticator(counter=0, counts=False)  # so that no counter tells of a replay
    async with world.client(world.acme["alice"]) as browser:
        await add(browser, passkey)
    async with world.anonymous() as other, world.anonymous() as third:
        token = hidden(await other.get("/sign-in"), "_csrf")
        foreign = hidden(await third.get("/sign-in"), "_csrf")

        async def challenge() -> dict[str, Any]:
            asked = await other.post("/sign-in/passkey/options", headers={"X-CSRF-Token": token})
            return dict(asked.json())

        async def answer(client: AsyncClient, csrf: str, credential: str) -> int:
            data = {"_csrf": csrf, "credential": credential}
            return (await client.post("/sign-in/passkey", data=data)).status_code

        used = passkey.get(await challenge())
        assert await answer(third, foreign, used) == 422
        assert await answer(other, token, used) == 303
        assert await answer(other, token, used) == 422

        late = await challenge()
        clock.move(minutes=2)
        assert await answer(other, token, passkey.get(late)) == 422


@pytest.mark.requirement("SEC-39")
async def test_a_challenge_to_sign_in_adds_no_passkey_and_confirms_nothing(world: World) -> None:
    alice, passkey = world.acme["alice"], Authenticator()
    async with world.client(alice) as browser:
        await add(browser, passkey)
        confirming = (await browser.post("/step-up/passkey/options")).json()
        registering = (await browser.post("/settings/passkeys/options")).json()

        other = Authenticator(credential_id=b"another", key=passkey.key, handle=passkey.handle)
        added = await browser.post(
            "/settings/passkeys",
            data={
                "label": "x",
                "credential": other.create({**registering, "challenge": confirming["challenge"]}),
            },
        )
        confirmed = await browser.post(
            "/step-up/passkey", data={"credential": passkey.get(registering)}
        )

    assert (added.status_code, confirmed.status_code) == (422, 422)
    assert len(passkeys_of(alice)) == 1


@pytest.mark.requirement("SEC-39")
async def test_a_counter_that_goes_back_tells_of_a_copy(world: World) -> None:
    passkey = Authenticator(counter=41)
    async with world.client(world.acme["alice"]) as browser:
        await add(browser, passkey)
    async with world.anonymous() as other:
        for counter, status in ((41, 303), (41, 422), (9, 422), (60, 303)):
            passkey.counter = counter
            assert (await enter(other, passkey)).status_code == status


@pytest.mark.requirement("SEC-39")
async def test_a_counter_that_never_counts_is_no_copy(world: World) -> None:
    passkey = Authenticator(counter=0, counts=False)
    async with world.client(world.acme["alice"]) as browser:
        await add(browser, passkey)
    for _ in range(2):
        async with world.anonymous() as other:
            assert (await enter(other, passkey)).status_code == 303


@pytest.mark.requirement("SEC-T36", "SEC-41", "SEC-39")
async def test_an_owner_with_a_passkey_signs_in_while_others_guess_on_the_account(
    clock: Clock, world: World
) -> None:
    olga, passkey = world.acme["olga"], Authenticator()
    give_password(olga)
    async with world.client(olga) as session, world.anonymous() as attacker:
        await add(session, passkey)
        statuses = [
            (await sign_in(attacker, "olga", f"guess number {number}")).status_code
            for number in range(8)
        ]
        assert statuses[-1] == 429
        assert (await sign_in(attacker, "olga")).status_code == 429, "the right one has to wait too"

        async with world.anonymous() as owner:
            assert (await enter(owner, passkey)).status_code == 303
            assert who(owner) == "olga"
        assert (await session.get("/settings")).status_code == 200


@pytest.mark.requirement("SEC-39")
async def test_a_disabled_person_does_not_sign_in_with_a_passkey(world: World) -> None:
    from app.identity import users
    from app.kernel.db import Work

    alice, passkey = world.acme["alice"], Authenticator()
    async with world.client(alice) as browser:
        await add(browser, passkey)
    olga = world.person(world.acme["olga"])

    def disable(work: Work) -> None:
        users.disable(work, olga, users.one(work.session, alice.tenant_id, alice.id))

    db.transact_now(disable)
    async with world.anonymous() as other:
        assert (await enter(other, passkey)).status_code == 422
        assert who(other) is None


@pytest.mark.requirement("SEC-39")
@pytest.mark.parametrize(
    "answer",
    [
        "",
        "x",
        "{}",
        "[]",
        "null",
        '{"id": 1}',
        '{"id":"a","rawId":"a","type":"public-key","response":{}}',
        '{"id":"a","id":"b"}',
        json.dumps({"id": "a" * 19_990}),
        "[" * 10_000,
    ],
)
async def test_nonsense_is_refused_in_words(world: World, answer: str) -> None:
    async with world.anonymous() as browser:
        token = hidden(await browser.get("/sign-in"), "_csrf")
        refused = await browser.post(
            "/sign-in/passkey", data={"_csrf": token, "credential": answer}
        )

    assert refused.status_code == 422
    assert "notice-danger" in refused.text


@pytest.mark.requirement("SEC-39")
async def test_the_same_passkey_is_not_added_twice(world: World) -> None:
    alice, passkey = world.acme["alice"], Authenticator()
    async with world.client(alice) as browser:
        assert (await add(browser, passkey)).status_code == 303
        again = await add(browser, passkey)

    assert again.status_code == 422
    assert "This passkey is in use already." in again.text
    assert len(passkeys_of(alice)) == 1


@pytest.mark.requirement("SEC-39")
async def test_somebody_elses_passkey_does_not_exist(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as browser:
        await add(browser, Authenticator())
    [row] = passkeys_of(alice)
    for user in (world.acme["bob"], world.globex["gina"]):
        async with world.client(user) as other:
            statuses = [
                (await other.get(f"/settings/passkeys/{row.id}")).status_code,
                (await other.post(f"/settings/passkeys/{row.id}", data={"label": "x"})).status_code,
                (await other.post(f"/settings/passkeys/{row.id}/removal")).status_code,
            ]
        assert statuses == [404, 404, 404]

    assert [each.label for each in passkeys_of(alice)] == ["Laptop"]


@pytest.mark.requirement("SEC-39")
async def test_a_passkey_is_renamed_and_removed_and_the_last_way_in_stays(world: World) -> None:
    alice, passkey = world.acme["alice"], Authenticator()
    async with world.client(alice) as browser:
        await add(browser, passkey)
        [row] = passkeys_of(alice)
        renamed = await browser.post(f"/settings/passkeys/{row.id}", data={"label": "手机"})
        page = await browser.get("/settings/security")
        kept = await browser.post(f"/settings/passkeys/{row.id}/removal")

        assert (renamed.status_code, "手机" in page.text) == (303, True)
        assert (kept.status_code, "only way to sign in" in kept.text) == (409, True)

        give_password(alice)
        removed = await browser.post(f"/settings/passkeys/{row.id}/removal")
        assert removed.status_code == 303
    assert passkeys_of(alice) == []
    async with world.anonymous() as other:
        assert (await enter(other, passkey)).status_code == 422


@pytest.mark.requirement("SEC-5")
async def test_a_challenge_is_stored_as_a_digest(world: World) -> None:
    from app.identity.models import PasskeyChallenge

    async with world.client(world.acme["alice"]) as browser:
        challenge = (await browser.post("/settings/passkeys/options")).json()["challenge"]

    def stored(session: Session) -> str:
        return repr(session.exec(select(PasskeyChallenge)).all())

    assert challenge not in db.read_now(stored)
