"""A person sees which applications have tokens of theirs, and takes them back."""

import pytest
from sqlmodel import Session, select

from app.audit.models import AuditEntry
from app.identity.models import TokenFamily
from app.kernel import db
from tests.identity import family_rows
from tests.identity.oauth import flow as flows
from tests.identity.oauth.flow import Flow
from tests.people import World


@pytest.fixture
def flow(world: World) -> Flow:
    """The authorization server."""
    return Flow(world)


@pytest.mark.requirement("SEC-27", "SEC-58")
async def test_an_application_is_listed_and_loses_its_access_at_once(flow: Flow) -> None:
    client_id, _ = flow.register(name="Desk")
    tokens = await flow.tokens(client_id, resource=flow.resource("v1"), scope=flows.OFFLINE)
    (family,) = db.read_now(flows.families)
    path = f"/connect/applications/{family.id}/removal"
    async with flow.world.client(flow.alice) as browser:
        listed = await browser.get("/connect")
        assert path in listed.text
        assert "Desk" in (await browser.get(path)).text
        assert (await flow.me(tokens["access_token"])).status_code == 200

        assert (await browser.post(path, data={"x": "1"})).status_code == 422
        assert (await browser.post(path)).status_code == 303

        assert path not in (await browser.get("/connect")).text
        assert (await browser.post(path)).status_code == 404
    assert (await flow.me(tokens["access_token"])).status_code == 401
    assert (await flow.refresh(client_id, tokens["refresh_token"])).status_code == 400
    assert _who_ended_it(family) == flow.alice.id


@pytest.mark.requirement("SEC-27")
async def test_what_is_anothers_or_over_is_not_listed(world: World) -> None:
    alice, bob = world.person(world.acme["alice"]), world.person(world.acme["bob"])
    others = db.transact_now(family_rows.something, bob)
    own = db.transact_now(family_rows.something, alice)

    async with world.client(world.acme["alice"]) as browser:
        page = (await browser.get("/connect")).text
        theirs = await browser.post(f"/connect/applications/{others}/removal")

    assert own in page
    assert others not in page
    assert theirs.status_code == 404


@pytest.mark.parametrize("language", ["en", "zh-CN"])
async def test_the_page_says_how_applications_are_told_of_this_server(
    world: World, language: str
) -> None:
    async with world.client(world.acme["alice"]) as browser:
        page = (await browser.get("/connect", headers={"Accept-Language": language})).text

    assert "claude mcp add --transport http assent http" in page
    assert page.count("/mcp") >= 5
    assert ("没有应用拥有访问权限" in page) is (language == "zh-CN")


def _who_ended_it(family: TokenFamily) -> str | None:
    def found(session: Session) -> str | None:
        query = select(AuditEntry.user_id).where(
            AuditEntry.command == "identity.token.revoke", AuditEntry.target_id == family.id
        )
        return session.exec(query).one()

    return db.read_now(found)
