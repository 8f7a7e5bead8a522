"""`workspace.user.enable`: a disabled person may sign in again."""

import pytest

from app.identity import users
from app.kernel import db
from tests.packs.workspace.office import Office

ENABLE = "workspace.user.enable"


@pytest.mark.requirement("CMD-25")
async def test_a_disabled_person_is_let_in_and_stopped_again(office: Office) -> None:
    dora = office.acme["dora"]

    done = office.do(ENABLE, userId=dora.id)
    twice = await office.refused(ENABLE, userId=dora.id)
    assert db.read_now(users.one, office.acme.id, dora.id).status == "active"
    await office.undo(done)

    assert (twice.stage, twice.reason, twice.status) == ("handler", "illegal_state", 409)
    assert db.read_now(users.one, office.acme.id, dora.id).status == "disabled"
