"""`workspace.role.assign`: nobody gives what they do not hold."""

from datetime import timedelta

import pytest

from app.identity import roles
from app.kernel import clock, db
from tests.packs.workspace.office import Office

ASSIGN = "workspace.role.assign"


@pytest.mark.requirement("CMD-25", "CMD-F17")
async def test_a_role_counts_at_once_and_is_taken_away_by_its_undo(office: Office) -> None:
    alice, root = office.acme["alice"], office.acme.root.id
    reading = {"userId": alice.id, "roleId": office.role("auditor").id, "orgId": root}
    stock = "inventory.stock.list"
    assert (await office.refused(stock, "alice")).reason == "permission_denied"

    done = office.do(ASSIGN, "olga", **reading)
    assert office.do(stock, "alice").result["rows"] == []
    twice = await office.refused(ASSIGN, "olga", **reading)
    await office.undo(done, "olga")
    gone = await office.refused(stock, "alice")

    assert (twice.stage, twice.reason) == ("handler", "already_assigned")
    assert twice.words("zh-CN") == "该人员在此组织已被分配过这个角色。"
    assert gone.reason == "permission_denied"


@pytest.mark.requirement("CMD-25", "CMD-F18")
async def test_nobody_gives_what_they_do_not_hold_or_what_is_not_theirs(office: Office) -> None:
    alice, root = office.acme["alice"].id, office.acme.root.id
    owner, member = office.role("owner").id, office.role("member").id
    wanted = {"userId": alice, "roleId": member, "orgId": root}

    more = await office.refused(ASSIGN, **{**wanted, "roleId": owner})
    own = await office.refused(ASSIGN, "alice", **{**wanted, "roleId": owner})
    foreign = [
        await office.refused(ASSIGN, "olga", **{**wanted, field: id})
        for field, id in (
            ("userId", office.world.globex["gus"].id),
            ("orgId", office.world.globex.root.id),
            ("roleId", "0" * 26),
        )
    ]
    over = clock.rfc3339(clock.now() - timedelta(days=1))
    past = await office.refused(ASSIGN, "olga", **wanted, endsAt=over)

    held = db.read_now(lambda session: roles.assignments_of(session, office.acme["alice"]))
    assert (more.stage, more.reason, more.status) == ("handler", "beyond_your_rights", 403)
    assert own.reason == "permission_denied"
    assert [(each.reason, each.errors[0].pointer) for each in foreign] == [
        ("record_not_found", field) for field in ("userId", "orgId", "roleId")
    ]
    assert (past.reason, [each.pointer for each in past.errors]) == ("invalid_input", ["endsAt"])
    assert [role.code for _, role, _ in held] == ["member"]
