"""What takes a person is refused to every token, on every route; and both at once are neither."""

import httpx2
import pytest
from sqlmodel import Session, col, func, select

from app.audit.models import AuditEntry, AuditRepeat
from app.kernel import db, rates
from tests.identity.oauth.flow import Flow
from tests.security import every_route
from tests.security.every_route import NOT_OF_PEOPLE, Ask


def test_every_route_asks_for_a_person_or_says_why_not() -> None:
    found = every_route.routes()
    others = {route.path for route in found if not every_route.wants_a_person(route)}

    assert len(found) - len(others) > 80, "else this proves nothing"
    assert others == set(NOT_OF_PEOPLE)


@pytest.mark.requirement("SEC-1", "SEC-2", "SEC-T3", "SEC-T39", "SEC-P63")
async def test_a_token_gets_nowhere_on_routes_of_people(flow: Flow) -> None:
    world, olga = flow.world, flow.world.acme["olga"]
    things = every_route.make(world, olga)
    token = await flow.access_token("v1", user=olga)  # the owner's own agent
    agent = bearer(flow, token)
    before, noted = db.read_now(every_route.rows), db.read_now(refusals)
    wrong = []
    tried = 0

    for ask in (*every_route.asks(world, things, of_people=True), Ask("POST", "", "/sign-out")):
        rates.of_process.cache_clear()
        answer = await send(agent, ask)
        tried += 1
        if (answer.status_code, "takes a person" in answer.text) != (403, True):
            wrong.append(f"{ask}: {answer.status_code}")

    assert tried > 100, "else this proves nothing"
    assert wrong == []
    assert db.read_now(every_route.rows) == before
    assert db.read_now(refusals) == noted + tried, "each of them is counted in the trail"
    assert (await flow.me(token)).status_code == 200, "the token itself was good all the time"


@pytest.mark.requirement("SEC-1", "SEC-T4", "SEC-P45", "SEC-34")
@pytest.mark.parametrize("scheme", ["Bearer {}", "Basic b2xnYTp4", "x"])
async def test_both_credentials_at_once_read_and_change_nothing(flow: Flow, scheme: str) -> None:
    world, olga = flow.world, flow.world.acme["olga"]
    things = every_route.make(world, olga)
    token = await flow.access_token("v1", user=olga)
    browser = world.client(olga)
    browser.headers["Authorization"] = scheme.format(token)
    v1 = [Ask("GET", "/v1/me", "/v1/me"), Ask("GET", "/v1/events", "/v1/events")]
    out = [Ask("POST", "/sign-out", "/sign-out")]
    before = db.read_now(every_route.rows)
    wrong = []

    for ask in (*every_route.asks(world, things, of_people=True), *v1, *out):
        rates.of_process.cache_clear()
        answer = await send(browser, ask)
        if answer.status_code != 400 or "Alice" in answer.text:
            wrong.append(f"{ask}: {answer.status_code}")

    assert wrong == []
    assert db.read_now(every_route.rows) == before


def bearer(flow: Flow, token: str) -> httpx2.AsyncClient:
    """An agent that says of itself whatever a browser would."""
    made = flow.world.anonymous()
    made.headers["Authorization"] = f"Bearer {token}"
    return made


async def send(client: httpx2.AsyncClient, ask: Ask) -> httpx2.Response:
    """The request as a page of ours would make it."""
    data = ask.form if ask.method == "POST" else None
    return await client.request(ask.method, ask.path, data=data)


def refusals(session: Session) -> int:
    """How often the trail was told that an agent tried."""
    said = ("identity.person.required", "identity.approval.forged")
    entries = session.exec(select(func.count()).where(col(AuditEntry.command).in_(said))).one()
    counted = [row.seen for row in session.exec(select(AuditRepeat)).all()]
    more = sum(max(0, seen - 5) for seen in counted)
    return entries + more
