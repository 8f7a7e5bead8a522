"""`workspace.key.rotate`: an owner gets a new key for their workspace, once they typed it."""

import pytest

from app.audit import redaction
from app.kernel import db
from tests.packs.workspace.office import Office

ROTATE = "workspace.key.rotate"


@pytest.mark.requirement("CMD-25", "CMD-20")
async def test_secrets_are_marked_with_another_key_from_then_on(office: Office) -> None:
    def mark(tenant_id: str) -> str:
        kept = db.transact_now(redaction.redact, tenant_id, {"pin": "1234"}, ["pin"])
        return str(kept.stored["pin"]["hmac_sha256"])

    acme, globex = office.acme.id, office.world.globex.id
    before = mark(acme), mark(globex)
    assert (mark(acme), mark(globex)) == before

    denied = await office.refused(ROTATE, "ada", key="redaction")
    asked = await office.refused(ROTATE, "olga", key="redaction")
    assert mark(acme) == before[0], "asking rotates nothing"
    done = await office.agreed(ROTATE, "olga", key="redaction")

    assert (denied.stage, denied.reason) == ("authorize", "permission_denied")
    assert (asked.stage, asked.reason) == ("approval_check", "approval_required")
    assert done.undo is None
    assert mark(acme) != before[0]
    assert mark(globex) == before[1], "another tenant's is its own"
    (entry,) = [each for each in office.trail(ROTATE) if each.outcome == "done"]
    assert (entry.risk, entry.approved_by) == ("L4", office.acme["olga"].id)
