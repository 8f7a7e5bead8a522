"""Versions of commands: what packs and administrators publish, and what nobody can change."""

from typing import Any

import pytest
from sqlmodel import Session, select
from structlog.testing import capture_logs

from app.audit.models import AuditEntry
from app.commands import published, publishing
from app.commands.definition import Approvers, Risk, Rule, Rules, SodRule, Text
from app.commands.models import CommandVersion
from app.commands.overrides import Overrides
from app.commands.publishing import DefinitionsChanged, NothingToPublish, NotReady, Standing
from app.identity import tenants
from app.kernel import db, events
from app.kernel.db import Work
from app.kernel.errors import Conflict, Invalid
from tests.commands.declaring import DECIDE, EXTRA, SEE, command, declared, installed, writing
from tests.people import World

CODE = "desk.ticket.note"
RULE = Rule(expr="size(input.subject) > 3", message=Text(en="Say more.", zh="请写得更详细。"))


def standing(tenant_id: str, code: str = CODE) -> Standing:
    return db.read_now(publishing.one, tenant_id, code)


def versions(tenant_id: str, code: str = CODE) -> list[tuple[int, str, bool]]:
    """Number, status and whether it is an administrator's, the oldest first."""
    found = standing(tenant_id, code).versions
    return [(row.version, row.status, row.is_override) for row in reversed(found)]


def in_force(work: Work, tenant_id: str, code: str = CODE) -> tuple[int, str] | None:
    found = published.current(work.connection, tenant_id, code)
    return (found.version, found.definition.display_name.en) if found else None


def sync(tenant_id: str) -> list[str]:
    return db.transact_now(publishing.sync, tenant_id)


def said(world: World, code: str = CODE, **changes: Any) -> Overrides:
    """What is in force, with some of it said otherwise."""
    now = Overrides.of(publishing.definition_of(standing(world.acme.id, code).newest))
    return now.model_copy(update=changes)


def publish(world: World, wanted: Overrides, code: str = CODE) -> int:
    """Save it as the draft, and publish that; the number of the version."""
    draft = standing(world.acme.id, code).draft
    expected = draft.content_hash if draft else None
    ada, acme = world.acme_admin, world.acme.id
    db.transact_now(publishing.save_draft, acme, code, wanted, ada, expected=expected)
    return db.transact_now(publishing.publish_draft, acme, code, ada).version


def entries(session: Session, tenant_id: str) -> list[AuditEntry]:
    query = select(AuditEntry).where(AuditEntry.tenant_id == tenant_id).order_by("seq")
    return [each for each in session.exec(query) if each.command.startswith("command.definition.")]


def test_what_packs_declare_is_published_once_and_again_only_when_it_changes(world: World) -> None:
    acme, globex = world.acme.id, world.globex.id

    with installed(command(), writing()):
        assert sync(acme) == [], "the same content is the same version"
    with installed(command(), writing(display_name=Text(en="Jot", zh="速记"))):
        assert versions(acme) == [(1, "published", False), (2, "published", False)]
        assert versions(globex, "desk.ticket.list") == [(1, "published", False)]
        assert db.transact_now(in_force, acme) == (2, "Jot")
        (told,) = [
            each for each in db.read_now(entries, acme) if each.changes and "2" in str(each.changes)
        ]
    assert {"field": CODE, "before": 1, "after": 2} in (told.changes or [])


def test_what_no_pack_declares_any_more_cannot_be_called_until_it_is_back(world: World) -> None:
    acme = world.acme.id
    with installed(command(), writing()):
        db.transact_now(publishing.retire, acme, "desk.ticket.list", world.acme_admin)

    with installed():
        assert db.transact_now(in_force, acme) is None
        with pytest.raises(publishing.NoPackDeclares):
            db.transact_now(publishing.restore, acme, CODE, world.acme_admin)
    with installed(command(), writing()):
        assert db.transact_now(in_force, acme) == (1, "Note")
        assert versions(acme, "desk.ticket.list") == [(1, "retired", False)], "as its administrator"


def test_a_new_tenant_has_its_commands_from_the_beginning(world: World) -> None:
    stop = publishing.listen()
    try:
        with installed(command(), writing()):
            made, _ = db.transact_now(tenants.create, slug="new", name="New")
            assert db.transact_now(in_force, made.id) == (1, "Note")
    finally:
        stop()


def test_an_administrator_says_more_on_top_of_a_pack_and_it_is_on_record(world: World) -> None:
    acme = world.acme.id
    heard: list[DefinitionsChanged] = []
    stop = events.subscribe(DefinitionsChanged, heard.append)
    with installed(writing()):
        heard.clear()
        wanted = said(
            world,
            display_name=Text(en="Keep a note", zh="保留记录"),
            risk=Risk.L3,
            approvers=Approvers(permission=DECIDE.code),
            approval_ttl_s=3_600,
            rules=Rules(asserts=(RULE,)),
            sod=(SodRule(conflicts_with=CODE),),
            feature=EXTRA.code,
            people_only=True,
            tags=("money",),
        )
        number = publish(world, wanted)
        again = db.transact_now(
            publishing.publish,
            acme,
            publishing.definition_of(standing(acme).newest),
            world.acme_admin,
        )
        (entry,) = [
            each
            for each in db.read_now(entries, acme)
            if each.command == "command.definition.publish"
        ]
        row = standing(acme).newest
    stop()

    assert number == 2
    assert again.version == 2, "the same content changes nothing"
    assert versions(acme) == [(1, "published", False), (2, "published", True)]
    assert Overrides.of(publishing.definition_of(row)) == wanted
    assert row.published_by == world.acme["ada"].id
    assert entry.user_id == world.acme["ada"].id
    assert entry.target_id == CODE
    assert {"field": "version", "before": 1, "after": 2} in (entry.changes or [])
    assert {"field": "risk", "before": "L1", "after": "L3"} in (entry.changes or [])
    assert [(each.tenant_id, each.code) for each in heard] == [(acme, CODE)]


def test_nothing_is_made_less_strict_than_its_pack(world: World) -> None:
    strict = writing(
        risk=Risk.L3,
        people_only=True,
        feature=EXTRA.code,
        approvers=Approvers(permission=DECIDE.code),
        rules=Rules(asserts=(RULE,)),
        sod=(SodRule(conflicts_with=CODE),),
        tags=("money",),
    )
    looser: dict[str, Any] = {
        "risk": Risk.L2,
        "idempotent": True,
        "reversible": True,
        "people_only": False,
        "feature": None,
        "approvers": None,
        "rules": Rules(),
        "sod": (SodRule(conflicts_with=CODE, mode="audit"),),
        "tags": (),
    }
    with installed(strict):
        for field, value in looser.items():
            with pytest.raises(Invalid) as refused:
                publish(world, said(world, **{field: value}))
            assert [each.pointer for each in refused.value.errors] == [field]
        base = publishing.definition_of(standing(world.acme.id).newest)
        parts: tuple[dict[str, Any], ...] = (
            {"operation": "external"},
            {"has_handler": True},
            {"example": {}},
        )
        for part in parts:
            with pytest.raises(Invalid):
                db.transact_now(
                    publishing.publish,
                    world.acme.id,
                    base.model_copy(update=part),
                    world.acme_admin,
                )

        assert versions(world.acme.id) == [(1, "published", False)]


@pytest.mark.requirement("CMD-1", "CMD-2")
def test_a_draft_with_errors_is_kept_and_not_published(world: World) -> None:
    acme = world.acme.id
    bad = Rules(asserts=(Rule(expr="input.subject ==", message=RULE.message),))
    with installed(writing()):
        with pytest.raises(NotReady) as refused:
            publish(world, said(world, rules=bad))

        assert [(each.pointer) for each in refused.value.errors] == ["rules"]
        assert versions(acme) == [(1, "published", False)]
        assert standing(acme).draft is not None
        db.transact_now(publishing.discard_draft, acme, CODE, world.acme_admin)
        assert standing(acme).draft is None


def test_two_administrators_never_publish_what_they_did_not_see(world: World) -> None:
    acme, ada = world.acme.id, world.acme_admin
    with installed(writing()):
        wanted = said(world, tags=("one",))
        db.transact_now(publishing.save_draft, acme, CODE, wanted, ada)
        with pytest.raises(NothingToPublish):
            db.transact_now(publishing.save_draft, acme, CODE, said(world, tags=("two",)), ada)
        seen = standing(acme).draft
        assert seen is not None
        db.transact_now(
            publishing.save_draft,
            acme,
            CODE,
            said(world, tags=("two",)),
            ada,
            expected=seen.content_hash,
        )
        with pytest.raises(NothingToPublish):
            db.transact_now(publishing.publish_draft, acme, CODE, ada, expected=seen.content_hash)
        assert versions(acme) == [(1, "published", False)]


def test_an_update_of_the_pack_keeps_what_the_administrator_said(world: World) -> None:
    acme = world.acme.id
    words = Text(en="Keep a note", zh="保留记录")
    with installed(writing(tags=("old",))):
        publish(
            world,
            said(
                world,
                display_name=words,
                risk=Risk.L2,
                rules=Rules(asserts=(RULE,)),
                tags=("old", "ours"),
            ),
        )

    theirs = Text(en="Will note it down.", zh="会记录下来。")
    with installed(writing(tags=("new",), risk=Risk.L3, description=theirs)):
        row = standing(acme).newest
        definition = publishing.definition_of(row)

    assert versions(acme)[2:] == [(3, "published", False), (4, "published", True)]
    assert definition.display_name == words
    assert definition.description == theirs
    assert definition.risk == Risk.L3, "the pack has become stricter"
    assert definition.rules.asserts == (RULE,)
    assert definition.tags == ("new", "ours")


@pytest.mark.requirement("CMD-F19")
def test_of_two_names_that_clash_only_the_first_is_published(world: World) -> None:
    acme = world.acme.id
    with installed(command("desk.ticket.list")):
        pass
    first, second = command("desk.ticket.list"), command("desk.ticket_list")
    with installed(first, second):
        codes = {each.code for each in db.read_now(publishing.all_of, acme)}
        assert codes & {first.code, second.code} == {first.code}
    with declared(second):
        assert {first.code, second.code} <= set(sync(acme)), "the name is free now"
        assert versions(acme, first.code) == [(1, "retired", False)]
    with declared(first, second):
        assert sync(acme) == [], "the name is taken"
        db.transact_now(publishing.retire, acme, second.code, world.acme_admin)
        assert sync(acme) == [first.code]
        with pytest.raises(NotReady):
            db.transact_now(publishing.restore, acme, second.code, world.acme_admin)


def test_a_retired_command_comes_back_as_it_was(world: World) -> None:
    acme, ada = world.acme.id, world.acme_admin
    with installed(writing()):
        db.transact_now(publishing.retire, acme, CODE, ada)
        assert db.transact_now(in_force, acme) is None
        with pytest.raises(Conflict):
            db.transact_now(publishing.retire, acme, CODE, ada)
        assert sync(acme) == [], "a start does not bring it back"
        db.transact_now(publishing.restore, acme, CODE, ada)
        assert db.transact_now(in_force, acme) == (1, "Note")
        said_so = [each.command for each in db.read_now(entries, acme)]

    assert said_so[-2:] == ["command.definition.retire", "command.definition.restore"]


def test_another_tenant_never_sees_a_version(world: World) -> None:
    with installed(writing()):
        publish(world, said(world, display_name=Text(en="Ours", zh="我们的")))

        assert db.transact_now(in_force, world.acme.id) == (2, "Ours")
        assert db.transact_now(in_force, world.globex.id) == (1, "Note")
        assert SEE.code != DECIDE.code


def test_what_says_the_packs_words_again_is_the_packs(world: World) -> None:
    acme = world.acme.id
    with installed(writing()):
        base = publishing.definition_of(standing(acme).newest)
        publish(world, said(world, tags=("ours",)))
        assert standing(acme).is_overridden
        back = db.transact_now(publishing.publish, acme, base, world.acme_admin)

        assert back.version == 3
        assert not standing(acme).is_overridden
    with installed(writing(tags=("theirs",))):
        assert versions(acme)[3:] == [(4, "published", False)]


def test_a_tenant_whose_definitions_cannot_be_read_keeps_no_other_from_its_commands(
    world: World,
) -> None:
    def spoil(work: Work) -> None:
        mine = select(CommandVersion).where(CommandVersion.tenant_id == world.acme.id)
        for row in work.session.exec(mine):
            row.definition, row.content_hash = 5, row.content_hash[::-1]  # type: ignore[assignment]
            work.session.add(row)

    with installed(command()):
        db.transact_now(spoil)
    with declared(command(), writing()), capture_logs() as logged:
        publishing.sync_everywhere()
        assert standing(world.globex.id).newest.version == 1

    failed = [each for each in logged if each["event"] == "due_failed"]
    assert [each["tenant_id"] for each in failed] == [world.acme.id]
