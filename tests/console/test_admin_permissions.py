"""Every permission is listed with the roles that grant it, and found in both languages."""

import pytest

from app.identity import permissions
from app.kernel import db
from tests.people import World


async def test_every_permission_stands_there_with_its_roles(world: World) -> None:
    page = await world.client(world.acme["axel"]).get("/admin/permissions")

    codes = db.read_now(permissions.all_codes)
    assert len(codes) > 10
    assert [code for code in codes if code not in page.text] == []
    assert "Auditor" in page.text


@pytest.mark.parametrize("typed", ["audit.read", "AUDIT", "审计", "trail"])
async def test_permissions_are_found_by_code_and_by_title(world: World, typed: str) -> None:
    page = await world.client(world.acme["axel"]).get("/admin/permissions", params={"q": typed})

    assert "audit.read" in page.text
    assert "identity.org.manage" not in page.text


@pytest.mark.requirement("UI-31")
async def test_no_match_offers_the_way_back(world: World) -> None:
    page = await world.client(world.acme["axel"]).get("/admin/permissions", params={"q": "zzz"})

    assert "No permission matches" in page.text
    assert 'href="/admin/permissions"' in page.text


async def test_whoever_may_not_read_roles_may_not_read_this(world: World) -> None:
    page = await world.client(world.acme["alice"]).get("/admin/permissions")

    assert page.status_code == 403
