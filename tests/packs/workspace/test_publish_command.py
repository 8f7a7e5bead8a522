"""`workspace.command.publish`: a draft comes into force, and the version before comes back."""

import pytest

from app.commands import publishing
from app.commands.definition import Text
from app.commands.overrides import Overrides
from app.kernel import db
from tests.packs.workspace.office import Office

PUBLISH, COUNT = "workspace.command.publish", "inventory.stock.list"


@pytest.mark.requirement("CMD-25", "CMD-1")
async def test_a_draft_comes_into_force_and_the_version_before_comes_back(office: Office) -> None:
    none = await office.refused(PUBLISH, code=COUNT)
    standing = db.read_now(publishing.one, office.acme.id, COUNT)
    wanted = Overrides.of(publishing.definition_of(standing.newest)).model_copy(
        update={"display_name": Text(en="Count stock", zh="清点库存")}
    )
    db.transact_now(publishing.save_draft, office.acme.id, COUNT, wanted, office.person("ada"))
    other = await office.refused(PUBLISH, code=COUNT, contentHash="0" * 64)

    done = office.do(PUBLISH, code=COUNT)
    assert (done.result["before"], done.result["version"]) == (1, 2)
    assert name(office) == "Count stock"
    await office.undo(done)

    assert name(office) == "List stock levels"
    assert (none.stage, none.reason, none.status) == ("handler", "no_such_draft", 409)
    assert other.reason == "no_such_draft"


@pytest.mark.requirement("CMD-25")
async def test_what_is_not_there_is_not_published_and_not_by_everybody(office: Office) -> None:
    unknown = await office.refused(PUBLISH, code="no.such.command")
    version = await office.refused(PUBLISH, code=COUNT, version=9)
    denied = await office.refused(PUBLISH, "alice", code=COUNT, version=1)

    assert unknown.reason == "record_not_found"
    assert (version.reason, version.errors[0].pointer) == ("record_not_found", "version")
    assert (denied.stage, denied.reason) == ("authorize", "permission_denied")


def name(office: Office) -> str:
    standing = db.read_now(publishing.one, office.acme.id, COUNT)
    return publishing.definition_of(standing.newest).display_name.en
