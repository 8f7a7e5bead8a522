"""`workspace.user.invite`: an account for somebody new, with no more than its giver has."""

import pytest
from sqlmodel import Session, select

from app.identity import roles, users
from app.identity.models import User, UserStatus
from app.kernel import db
from tests.packs.workspace.office import Office

INVITE = "workspace.user.invite"


@pytest.mark.requirement("CMD-25")
async def test_somebody_new_has_an_account_and_a_role_and_may_be_stopped_again(
    office: Office,
) -> None:
    shanghai, member = office.acme.orgs["shanghai"].id, office.role("member").id
    new = {"displayName": "Li Na", "login": "LiNa", "email": "lina@acme.example"}

    done = office.do(INVITE, "olga", **new, orgId=shanghai, roleId=member)

    user = db.read_now(users.one, office.acme.id, done.result["userId"])
    held = db.read_now(lambda session: roles.assignments_of(session, user))
    assert (user.login, user.display_name, user.status) == ("lina", "Li Na", "invited")
    assert [(role.code, org.id) for _, role, org in held] == [("member", shanghai)]
    assert "secret" not in str(done.data()), "its link is made on the page, and shown there once"
    assert len(office.trail("identity.user.create")) >= 1
    await office.undo(done, "olga")
    assert db.read_now(users.one, office.acme.id, user.id).status == UserStatus.DISABLED


@pytest.mark.requirement("CMD-25", "CMD-F18")
async def test_an_invitation_that_will_not_do_makes_no_account(office: Office) -> None:
    shanghai = office.acme.orgs["shanghai"].id
    new = {"displayName": "Li Na", "login": "lina", "orgId": shanghai}
    before = db.read_now(_logins)

    taken = await office.refused(INVITE, **{**new, "login": "ALICE"})
    spaced = await office.refused(INVITE, **{**new, "login": "li na"})
    foreign = await office.refused(INVITE, **{**new, "orgId": office.world.globex.root.id})
    owner = await office.refused(INVITE, **new, roleId=office.role("owner").id)
    denied = await office.refused(INVITE, "alice", **new)

    for refusal in (taken, spaced):
        assert (refusal.stage, refusal.reason, refusal.status) == ("handler", "invalid_input", 422)
        assert [each.pointer for each in refusal.errors] == ["login"]
    assert (foreign.reason, foreign.errors[0].pointer) == ("record_not_found", "orgId")
    assert (owner.stage, owner.reason, owner.status) == ("handler", "beyond_your_rights", 403)
    assert (denied.stage, denied.reason) == ("authorize", "permission_denied")
    assert db.read_now(_logins) == before


def _logins(session: Session) -> list[str]:
    return sorted(session.exec(select(User.login)))
