"""`workspace.role.unassign`: a role is taken, and given back with the end it had."""

from datetime import timedelta

import pytest

from app.identity import roles
from app.kernel import clock, db
from tests.packs.workspace.office import Office

UNASSIGN = "workspace.role.unassign"


@pytest.mark.requirement("CMD-25")
async def test_a_role_is_taken_and_given_back_until_when_it_was(office: Office) -> None:
    alice, root = office.acme["alice"], office.acme.root.id
    reading = {"userId": alice.id, "roleId": office.role("auditor").id, "orgId": root}
    until = clock.rfc3339(clock.now() + timedelta(days=30))
    office.do("workspace.role.assign", "olga", **reading, endsAt=until)

    done = office.do(UNASSIGN, "olga", **reading)
    twice = await office.refused(UNASSIGN, "olga", **reading)
    await office.undo(done, "olga")

    held = db.read_now(lambda session: roles.assignments_of(session, alice))
    ends = {role.code: row.ends_at for row, role, _ in held}
    assert (twice.stage, twice.reason) == ("handler", "not_assigned")
    assert ends["auditor"] is not None
    assert clock.rfc3339(ends["auditor"]) == until


@pytest.mark.requirement("CMD-25")
async def test_the_last_owner_stays_one(office: Office) -> None:
    olga = {
        "userId": office.acme["olga"].id,
        "roleId": office.role("owner").id,
        "orgId": office.acme.root.id,
    }

    refusal = await office.refused(UNASSIGN, "olga", **olga)

    assert (refusal.stage, refusal.reason, refusal.status) == ("handler", "last_owner", 409)
