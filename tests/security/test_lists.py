"""Filters, orders and places in lists: whatever stands in them is a value, and opens nothing."""

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest

from app.identity import agents, delegations, orgs, paging, users
from app.identity.principal import Scope
from app.kernel import db, rates
from app.kernel.db import Work
from tests.people import Company, World

LISTS = {
    "/admin/users": ("q", "status", "org", "role", "sort", "after"),
    "/admin/agents": ("q", "kind", "status", "sort", "after"),
    "/admin/delegations": ("q", "state", "user", "agent", "after"),
    "/admin/clients": ("q",),
    "/settings/delegations": ("after",),
    "/audit": ("from", "user", "agent", "release", "command", "tag", "risk", "target", "after"),
}
INJECTIONS = (
    "'", '"', "' OR '1'='1", "') OR 1=1 --", "1;DROP TABLE user", "/*", "\\'", "%_%", "[]", "{}",
    "pg_sleep(9)", "randomblob(900000000)", "name desc", "authz_epoch", "user.login", "\x00",
    "\ud800", "\uffff", "NULL", "-1", "NaN", "x" * 501, "x" * 3_000, "\r\nSet-Cookie: a=b",
)  # fmt: skip
A_PAGE = 5  # rows: what a page shows is drawn for every place that is tried
SAYS = ["n", "b", "N", "", "x", "'", None, 1]
VALUES: tuple[Any, ...] = (
    "", "a", "'; --", "\x00", "x" * 1_000, "\uffff", None, 1, True, 1.5, [], {}, ["a"],
    "2026-03-02T09:30:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59", "2026-03-02",
    "2026-W10-1T09:30:00+00:00", "infinity", "-infinity",
)  # fmt: skip


@pytest.mark.requirement("SEC-T34")
@pytest.mark.parametrize("path", LISTS)
async def test_no_filter_is_a_language(world: World, path: str) -> None:
    gina = world.client(world.globex["gina"])  # the smaller company: short pages
    told = of(world.acme, "olga", "ada")
    wrong = []

    for name in (*LISTS[path], "tenant_id", "filter[tenant_id]"):
        for text in INJECTIONS:
            rates.of_process.cache_clear()
            sent = text.encode("utf-8", "surrogatepass")
            answer = await gina.get(path, params={name: sent.decode("utf-8", "replace")})
            if answer.status_code not in {200, 404, 422}:
                wrong.append(f"{name}={text[:40]!r}: {answer.status_code}")
            wrong += [f"{name}={text[:40]!r}: {each}" for each in told if each in answer.text]

    assert wrong == []


@pytest.mark.requirement("SEC-T34")
@pytest.mark.parametrize("path", ["/admin/users", "/admin/agents", "/admin/delegations"])
async def test_no_place_in_a_list_opens_anything(
    world: World, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging.page, "__kwdefaults__", {"size": A_PAGE})
    db.transact_now(fill, world.acme)
    db.transact_now(fill, world.globex)
    olga, gina = world.client(world.acme["olga"]), world.client(world.globex["gina"])
    sorts = {"/admin/users": ("since", "-login"), "/admin/agents": ("name",)}.get(path, ("",))
    theirs = places((await gina.get(path)).text)
    own = places((await olga.get(path)).text)
    told = [*of(world.globex, "gina"), "globex-"]
    wrong = []

    for sort in sorts:
        for place in (*theirs, *own, *forged()):
            rates.of_process.cache_clear()
            answer = await olga.get(path, params={"after": place, "sort": sort})
            if answer.status_code not in {200, 422}:
                wrong.append(f"{sort} {place[:60]}: {answer.status_code}")
            wrong += [f"{sort} {place[:60]}: {each}" for each in told if each in answer.text]

    assert theirs, "their list has a second page"
    assert own, "and so has ours"
    assert wrong == []


def forged() -> Iterator[str]:
    """Places nobody was given."""
    for value in VALUES:
        yield cursor(["n", value, "01ARZ3NDEKTSV4RRFFQ69G5FAV"])
        yield cursor(["b", "2026-03-02T09:30:00Z", value])
    for direction in SAYS:
        yield cursor([direction, "a", "b"])
    shapes: tuple[Any, ...] = (
        [],
        {},
        ["n"],
        ["n", "a"],
        ["n", "a", "b", "c"],
        "n",
        None,
        [["n"], ["a"], ["b"]],
    )
    for odd in shapes:
        yield cursor(odd)
    yield from ("x", "=", "====", "a" * 1_999, "a" * 2_001, "\u00e9", "..", "%00", "W10", "bnVsbA")
    yield base64.urlsafe_b64encode(b'["n","\\ud800","x"]').decode()
    yield base64.urlsafe_b64encode(b"[" * 900).decode()
    yield base64.urlsafe_b64encode(b'["n",1e999,"x"]').decode()
    yield base64.urlsafe_b64encode(b"\xff\xfe").decode()


def cursor(value: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


def places(html: str) -> list[str]:
    """The places a page leads on to."""
    found = []
    for part in html.split('href="')[1:]:
        address = part.partition('"')[0].replace("&amp;", "&")
        found += parse_qs(urlsplit(address).query).get("after", [])
    return found


def of(company: Company, *logins: str) -> list[str]:
    """What a page of the other tenant must not tell: names and ids of a company."""
    ids = [company.id, *(company[login].id for login in logins)]
    return [*ids, company.tenant.name.split()[0]]


def fill(work: Work, company: Company) -> None:
    """More of everything than one page holds."""
    root = orgs.root(work.session, company.id)
    admin = next(iter(company.people.values()))
    for number in range(2 * A_PAGE):
        name = f"{company.tenant.slug}-{number}"
        person = users.create(work, None, root, login=name, display_name=name)
        content = {"instructions": name}
        agent = agents.create(work, None, admin, code=f"a{number}", name=name, content=content)
        agents.publish(work, None, agent)
        delegations.make_for(work, person, agent, [Scope.COMMANDS_READ])
