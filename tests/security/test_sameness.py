"""What exists and what does not cost the same work and say the same thing; no clock is asked."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event

from app.identity import passwords
from app.kernel import rates
from tests.identity.oauth.flow import Flow
from tests.people import World
from tests.signing_in import give_password, hidden, sign_in

REQUEST_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}|[\w-]{40,}")


class Work:
    """What was done for one answer: statements in order, by table and verb, and digests."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.digests = 0


@pytest.mark.requirement("SEC-T35", "SEC-41")
async def test_a_login_that_exists_costs_what_an_unknown_one_costs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for login in ("alice", "dora", "olga"):
        give_password(world.acme[login])
    tries = {
        "known": ("alice", "acme"),
        "unknown": ("nobody", "acme"),
        "disabled": ("dora", "acme"),
        "invited": ("ines", "acme"),
        "owner": ("olga", "acme"),
        "of the other tenant": ("gina", "acme"),
    }
    await sign_in(world.anonymous(), "warm-up", "x")

    done = {
        name: await watched(world, login, tenant, monkeypatch)
        for name, (login, tenant) in tries.items()
    }

    told, work = done["unknown"]
    assert work.digests == 1
    for name, (other_told, other_work) in done.items():
        assert other_told == told, name
        assert other_work.digests == work.digests, name
        assert other_work.statements == work.statements, name


@pytest.mark.requirement("SEC-T35", "SEC-41")
async def test_a_tenant_that_exists_looks_like_an_unknown_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_password(world.acme["alice"])
    await sign_in(world.anonymous(), "warm-up", "x")

    told, work = await watched(world, "alice", "acme", monkeypatch)
    nowhere, same = await watched(world, "alice", "nowhere", monkeypatch)

    assert nowhere == told.replace("acme", "nowhere")
    assert same.digests == work.digests == 1


@pytest.mark.requirement("SEC-T35", "SEC-12")
@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/introspect", "/oauth/revoke"])
async def test_a_wrong_secret_looks_like_an_unknown_client(flow: Flow, path: str) -> None:
    client_id, secret = flow.register(secret=True)
    assert secret is not None
    form = {"grant_type": "refresh_token", "refresh_token": "x", "token": "x"}

    async def ask(who: str, what: str) -> tuple[Any, list[str]]:
        rates.of_process.cache_clear()
        with statements() as seen:
            answer = await flow.http.post(path, data=form, auth=(who, what))
        return (answer.status_code, answer.headers.get("www-authenticate"), answer.text), seen

    await ask(client_id, "warm-up")
    wrong, work = await ask(client_id, secret[:-1] + "x")
    unknown, other = await ask("01ARZ3NDEKTSV4RRFFQ69G5FAV", secret)

    assert wrong == unknown
    assert wrong[0] == 401
    assert work == other


async def watched(
    world: World, login: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Work]:
    """One failed sign-in: what it said, and what it took."""
    rates.of_process.cache_clear()
    work = Work()
    genuine = passwords._hasher.verify

    def verify(*args: Any) -> Any:
        work.digests += 1
        return genuine(*args)

    async with world.anonymous() as browser:
        token = hidden(await browser.get("/sign-in"), "_csrf")
        form = {"_csrf": token, "tenant": tenant, "login": login, "password": "wrong password"}
        with monkeypatch.context() as patched, statements() as seen:
            patched.setattr(passwords, "_hasher", Hasher(verify, passwords._hasher))
            answer = await browser.post("/sign-in", data=form)
    assert answer.status_code == 422
    work.statements = seen
    return REQUEST_ID.sub("·", answer.text).replace(f'value="{login}"', 'value="·"'), work


class Hasher:
    """The product's, counting."""

    def __init__(self, verify: Callable[..., Any], genuine: Any) -> None:
        self.verify, self._genuine = verify, genuine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._genuine, name)


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement while the block lasts, without its values."""
    seen: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        verb, *_ = statement.split(None, 1)
        if verb in {"SELECT", "INSERT", "UPDATE", "DELETE"}:
            table = re.search(r'(?:FROM|INTO|UPDATE)\s+"?(\w+)', statement)
            seen.append(f"{verb} {table[1] if table else ''}")

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)
