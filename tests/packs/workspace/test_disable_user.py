"""`workspace.user.disable`: somebody stops at once, but never the last owner."""

import pytest

from app.identity import sessions, users
from app.kernel import db
from tests.packs.workspace.office import Office

DISABLE = "workspace.user.disable"


@pytest.mark.requirement("CMD-25", "CMD-11")
async def test_somebody_is_stopped_once_it_was_confirmed(office: Office) -> None:
    alice = office.acme["alice"]
    office.person("alice")

    asked = await office.refused(DISABLE, userId=alice.id)
    live = db.read_now(sessions.of_user, office.acme.id, alice.id)
    assert (asked.stage, asked.reason) == ("approval_check", "approval_required")
    assert live, "asking ends nothing"
    await office.agreed(DISABLE, userId=alice.id)
    again = await office.refused(DISABLE, userId=alice.id)
    her_own = await office.refused("expense.report.list", "alice")

    assert db.read_now(users.one, office.acme.id, alice.id).status == "disabled"
    assert db.read_now(sessions.of_user, office.acme.id, alice.id) == []
    assert (again.reason, again.status) == ("illegal_state", 409)
    assert (her_own.stage, her_own.reason, her_own.status) == (
        "authorize",
        "sign_in_required",
        401,
    )


@pytest.mark.requirement("CMD-25", "CMD-F18")
async def test_the_last_owner_and_people_of_others_stay(office: Office) -> None:
    last = await office.refused(DISABLE, userId=office.acme["olga"].id)
    foreign = await office.refused(DISABLE, userId=office.world.globex["gus"].id)
    nobody = await office.refused(DISABLE, userId="0" * 26)
    denied = await office.refused(DISABLE, "bob", userId=office.acme["alice"].id)

    assert (last.stage, last.reason, last.status) == ("handler", "last_owner", 409)
    assert last.words("zh-CN") != last.words("en")
    assert (foreign.reason, foreign.status) == (nobody.reason, nobody.status)
    assert foreign.reason == "record_not_found"
    assert denied.reason == "permission_denied"
    assert db.read_now(users.one, office.acme.id, office.acme["olga"].id).status == "active"
