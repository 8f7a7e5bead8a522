"""What a principal sees is what they may call, all of it and nothing else."""

import itertools
import random
from typing import Any

import pytest
from sqlalchemy import event
from sqlmodel import Session, col, select, update

from app.commands import catalogue, publishing, why
from app.commands.catalogue import Catalogue
from app.commands.definition import Operation, Risk, Text
from app.commands.why import Layer
from app.identity import features, orgs, roles
from app.identity.models import EntitlementStatus, Feature, Grant, Permission, User
from app.identity.principal import Channel, Principal, Scope
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import NotFound, PermissionDenied
from tests.clock import Clock
from tests.commands.declaring import (
    DECIDE,
    EXTRA,
    SEE,
    WRITE,
    Ticket,
    command,
    declared,
    installed,
    reaching,
    writing,
)
from tests.people import Company, World

LIST, NOTE, DROP = "desk.ticket.list", "desk.ticket.note", "desk.ticket.drop"


def seen(principal: Principal) -> Catalogue:
    return db.read_now(catalogue.of, principal)


def codes(principal: Principal) -> list[str]:
    """What of the desk is in the principal's catalogue."""
    return [each.code for each in seen(principal).entries if each.code.startswith("desk.")]


def agent(world: World, *scopes: Scope) -> Principal:
    """The agent of alice's delegation, with these scopes."""
    made = world.acme
    delegation = made.delegations["alice"]
    return Principal(
        tenant_id=made.id,
        user_id=made["alice"].id,
        agent_release_id="R",
        delegation_id=delegation.id,
        session_id=None,
        channel=Channel.HTTP,
        actors=(delegation.agent_id,),
        scopes=frozenset(scopes),
        epoch=1,
    )


def take(work: Work, world: World, code: str) -> None:
    alice = work.session.get(User, (world.acme.id, world.acme["alice"].id))
    role = roles.by_code(work.session, world.acme.id, code)
    assert alice is not None
    assert role is not None
    org = orgs.one(work.session, world.acme.id, alice.org_id)
    roles.unassign(work, world.acme_admin, alice, role, org)


def entitle(work: Work, company: Company, status: EntitlementStatus) -> None:
    features.entitle(work, None, company.id, EXTRA.code, status=status)


@pytest.mark.requirement("CMD-22")
def test_a_command_is_seen_when_nothing_takes_it_out(world: World) -> None:
    with installed(command(), writing(), command(DROP, feature=EXTRA.code)):
        alice = world.person(world.acme["alice"])
        assert codes(alice) == [], "no permission"

        world.give(world.acme["alice"], "desk", grants=reaching(SEE.code, WRITE.code))
        assert codes(alice) == [LIST, NOTE], "no feature"

        db.transact_now(entitle, world.acme, EntitlementStatus.TRIAL)
        assert codes(alice) == [DROP, LIST, NOTE]

        db.transact_now(publishing.retire, world.acme.id, NOTE, world.acme_admin)
        assert codes(alice) == [DROP, LIST], "retired"

        db.transact_now(entitle, world.acme, EntitlementStatus.EXPIRED)
        assert codes(alice) == [LIST]
        assert codes(world.person(world.acme["bob"])) == []
        assert codes(world.person(world.globex["gus"])) == []


@pytest.mark.requirement("CMD-F17")
def test_a_revoked_role_takes_its_commands_at_once_and_a_granted_one_brings_them(
    world: World,
) -> None:
    with installed(command(), writing()):
        alice = world.person(world.acme["alice"])
        assert codes(alice) == []

        world.give(world.acme["alice"], "desk", grants=reaching(SEE.code))
        assert codes(alice) == [LIST]
        db.transact_now(take, world, "desk")
        assert codes(alice) == []


@pytest.mark.requirement("CMD-22", "CMD-F17")
def test_what_ends_in_silence_is_gone_within_five_seconds(world: World, clock: Clock) -> None:
    with installed(command()):
        alice = world.person(world.acme["alice"])
        world.give(world.acme["alice"], "desk", grants=reaching(SEE.code))
        assert codes(alice) == [LIST]

        db.transact_now(_without_a_word)
        clock.move(seconds=5)

        assert codes(alice) == []


def _without_a_word(work: Work) -> None:
    work.session.execute(
        update(Grant).where(col(Grant.permission) == SEE.code).values(data_scope="")
    )


@pytest.mark.requirement("CMD-22")
def test_a_catalogue_is_asked_for_once_until_something_changes(world: World) -> None:
    with installed(command()):
        alice = world.person(world.acme["alice"])
        world.give(world.acme["alice"], "desk", grants=reaching(SEE.code))
        first = seen(alice)

        assert seen(alice) is first
        world.give(world.acme["bob"], "other", grants=reaching(WRITE.code))
        again = seen(alice)
        assert again is not first
        assert again.version == first.version, "the same is in it"


@pytest.mark.requirement("CMD-22")
def test_an_answer_that_was_overtaken_is_not_kept(world: World) -> None:
    with installed(command()):
        alice = world.person(world.acme["alice"])
        given: list[Any] = []

        def give(_c: Any, _u: Any, statement: str, *_: Any) -> None:
            if not given and statement != "BEGIN":
                given.append(world.give(world.acme["alice"], "desk", grants=reaching(SEE.code)))

        def overtaken(session: Session) -> list[str]:
            engine = session.get_bind()
            event.listen(engine, "after_cursor_execute", give)
            try:
                return [each.code for each in catalogue.of(session, alice).entries]
            finally:
                event.remove(engine, "after_cursor_execute", give)

        assert LIST not in db.read_now(overtaken), "as it was when it was asked"
        assert given
        assert codes(alice) == [LIST]


@pytest.mark.requirement("CMD-F24", "CMD-22")
def test_everything_permitted_is_there_however_much_is_not_and_few_queries_find_it(
    world: World,
) -> None:
    hidden = [writing(f"desk.a{number:03}.note") for number in range(475)]
    permitted = [command(f"desk.z{number:03}.list") for number in range(25)]
    with installed(*hidden, *permitted, only=world.acme.id):
        world.give(world.acme["alice"], "clerk", grants=reaching(SEE.code))
        alice = world.person(world.acme["alice"])
        catalogue._descriptors.clear()
        first = db.read_now(counted, alice)
        catalogue.forget()
        second = db.read_now(counted, alice)
        third = db.read_now(counted, alice)
        found = seen(alice)
        pages, cursor = [], None
        while True:
            page = catalogue.page(found.searched("desk."), cursor, size=10)
            pages.append([each.code for each in page.entries])
            if (cursor := page.next) is None:
                break
        back = catalogue.page(found.searched("desk."), page.previous, size=10)

    assert (first, second, third) == (2, 1, 0), "what was never read is read in bulk"
    assert list(itertools.chain(*pages)) == [each.code for each in permitted]
    assert page.total == 25
    assert [each.code for each in back.entries] == pages[-2]
    for forged in ("x", "bmRlc2s.00", page.previous and page.previous[:-1] + "x"):
        again = catalogue.page(found.searched("desk."), forged, size=10)
        assert [each.code for each in again.entries] == pages[0]


def counted(session: Session, principal: Principal) -> int:
    """How many statements it takes."""
    asked: list[str] = []

    def note(_c: Any, _u: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    engine = session.get_bind()
    event.listen(engine, "before_cursor_execute", note)
    try:
        catalogue.of(session, principal)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    return len([each for each in asked if each != "BEGIN"])


@pytest.mark.requirement("CMD-22")
def test_an_agent_sees_what_its_delegation_leaves_of_its_users_commands(world: World) -> None:
    apart = writing(DROP, people_only=True)
    with installed(command(), writing(), apart):
        world.give(world.acme["alice"], "desk", grants=reaching(SEE.code, WRITE.code))

        assert codes(world.person(world.acme["alice"])) == [DROP, LIST, NOTE]
        assert codes(agent(world, Scope.COMMANDS_INVOKE)) == [LIST, NOTE]
        assert codes(agent(world, Scope.COMMANDS_READ)) == [LIST]
        assert codes(agent(world, Scope.CATALOG_READ)) == [LIST]
        assert codes(agent(world, Scope.AUN_MESSAGE)) == []


@pytest.mark.requirement("CMD-23")
def test_a_descriptor_says_what_a_caller_needs_and_nothing_of_the_insides(world: World) -> None:
    told = writing(
        record=Ticket,
        operation=Operation.UPDATE,
        map={"subject": "subject"},
        computed={"urgency": "7 * 6"},
        handler=_handler,
    )
    with installed(told):
        world.give(world.acme["alice"], "desk", grants=reaching(WRITE.code))
        found = seen(world.person(world.acme["alice"]))
        en, zh = found.one(NOTE).data("en"), found.one(NOTE).data("zh-CN")

    assert set(en) == {
        *("cmdCode", "displayName", "description", "agentHint", "riskLevel", "idempotent"),
        *("reversible", "undoCommand", "inputSchema", "exampleInput", "requiredFeature"),
        *("record", "version", "tags", "needsApproval", "approvers", "outputSchema", "operation"),
        "peopleOnly",
    }
    assert (en["cmdCode"], en["riskLevel"], en["needsApproval"]) == (NOTE, "L1", True)
    assert (en["displayName"], zh["displayName"]) == ("Note", "工单 note")
    assert {"targetRecordId", "operationType"} <= set(en["inputSchema"]["required"])
    for inside in ("_handler", "handler", "7 * 6", "SELECT", "computed", "rules", "pack"):
        assert inside not in str(en)
    with pytest.raises(NotFound):
        found.one(LIST)


def _handler(_ctx: Any) -> dict[str, Any]:
    return {}


@pytest.mark.requirement("CMD-22")
def test_a_search_finds_words_of_both_languages_and_as_chosen(world: World) -> None:
    pay = writing("desk.bill.pay", risk=Risk.L3, display_name=Text(en="Pay a bill", zh="支付账单"))
    with installed(command(), writing(), pay):
        world.give(world.acme["alice"], "desk", grants=reaching(SEE.code, WRITE.code))
        found = seen(world.person(world.acme["alice"]))

        def search(q: str = "", **chosen: Any) -> list[str]:
            return [
                each.code for each in found.searched(q, **chosen) if each.code.startswith("desk.")
            ]

        assert search("支付") == ["desk.bill.pay"]
        assert search("BILL pay") == ["desk.bill.pay"]
        assert search("desk list") == [LIST]
        assert search("nothing of this") == []
        assert search(risk="L3") == ["desk.bill.pay"]
        assert search(risk="L9") == []
        assert search(needs_approval=False) == [LIST]
        assert search(record="desk.ticket") == []


@pytest.mark.requirement("CMD-22")
def test_why_hidden_names_every_layer_that_takes_it_out(world: World) -> None:
    ada, bob = world.acme_admin, world.acme["bob"]
    with installed(writing(feature=EXTRA.code)):
        world.give(bob, "odd", grants=reaching(WRITE.code))
        db.transact_now(_without_reach)
        db.transact_now(publishing.retire, world.acme.id, NOTE, ada)
        told = db.read_now(why.why, ada, bob.id, NOTE)
        alices = db.read_now(why.why, ada, world.acme["alice"].id, NOTE)

        assert told.removed_by == (Layer.PUBLISHED, Layer.FEATURE, Layer.SCOPE)
        assert alices.removed_by == (Layer.PUBLISHED, Layer.FEATURE, Layer.PERMISSION)
        with pytest.raises(PermissionDenied):
            db.read_now(why.why, world.person(bob), bob.id, NOTE)
        with pytest.raises(NotFound):
            db.read_now(why.why, ada, world.globex["gus"].id, NOTE)
        with pytest.raises(NotFound):
            db.read_now(why.why, ada, bob.id, "desk.ticket.never")


def _without_reach(work: Work) -> None:
    work.session.execute(
        update(Grant).where(col(Grant.permission) == WRITE.code).values(data_scope="galaxy")
    )


@pytest.mark.requirement("CMD-22", "CMD-F22")
def test_why_and_the_catalogue_agree_whatever_the_world_is_like(world: World) -> None:
    chosen = random.Random(7)  # noqa: S311 - a seed, not a secret
    told = [
        command(
            f"desk.t{number}.list",
            permission=chosen.choice([SEE, WRITE, DECIDE]).code,
            feature=chosen.choice([None, EXTRA.code]),
        )
        for number in range(9)
    ]
    differing, visible = [], 0
    with installed(*told, only=world.acme.id):
        people = [world.acme[login] for login in ("alice", "bob", "olga", "dora")]
        in_force = len(db.read_now(catalogue.published, world.acme.id))
        for round_ in range(5):
            db.transact_now(_shuffle, world, chosen, people, round_)
            for user in people:
                person = as_person(world, user)
                mine = set(codes(person))
                says = db.read_now(_visible, world, user, [each.code for each in told])
                if says != mine:
                    differing.append((round_, user.login, says ^ mine))
                visible += len(mine)
                hidden = db.read_now(why.hidden, person).total()
                assert hidden == in_force - len(seen(person).entries)

    assert differing == []
    assert visible > 8, "else this proves nothing"


def _visible(session: Session, world: World, user: User, told: list[str]) -> set[str]:
    ada = world.acme_admin
    return {code for code in told if why.why(session, ada, user.id, code).is_visible}


def as_person(world: World, user: User) -> Principal:
    """`user` as a person, signed in or not."""
    ada = world.acme_admin
    return Principal(
        user.tenant_id, user.id, None, None, ada.session_id, Channel.CONSOLE, (), frozenset(), 1
    )


def _shuffle(
    work: Work, world: World, chosen: random.Random, people: list[User], round_: int
) -> None:
    for each in (SEE, WRITE, DECIDE):
        assert work.session.get(Permission, each.code) is not None
    assert work.session.get(Feature, EXTRA.code) is not None
    entitle(work, world.acme, chosen.choice(list(EntitlementStatus)))
    user = chosen.choice(people)
    grants = {
        each.code: str(chosen.choice(["self", "org", "org_and_below", "all"]))
        for each in chosen.sample([SEE, WRITE, DECIDE], chosen.randint(0, 3))
    }
    role = roles.create(
        work, None, tenant_id=world.acme.id, code=f"r{round_}", name="R", grants=grants
    )
    if chosen.random() < 0.4:
        work.session.execute(
            update(Grant).where(col(Grant.role_id) == role.id).values(data_scope="galaxy")
        )
    row = work.session.exec(
        select(User).where(User.tenant_id == user.tenant_id, User.id == user.id)
    ).one()
    roles.assign(work, None, row, role, orgs.one(work.session, row.tenant_id, row.org_id))


@pytest.mark.requirement("CMD-22")
def test_definitions_of_one_tenant_are_nobody_elses(world: World) -> None:
    with installed(command()):
        world.give(world.globex["gus"], "desk", grants=reaching(SEE.code))
        db.transact_now(publishing.retire, world.acme.id, LIST, world.acme_admin)
        with declared(command()):
            assert codes(world.person(world.globex["gus"])) == [LIST]
