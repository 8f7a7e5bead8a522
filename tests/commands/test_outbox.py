"""What a call has to tell is in its own commit, and reaches those who may read its record."""

import pytest
from pydantic import ValidationError
from sqlmodel import select

from app.access import standing
from app.commands import outbox, pipeline, snapshots
from app.commands.definition import Told
from app.commands.outbox_models import GovernanceSnapshot, OutboxEvent
from app.identity.models import User
from app.kernel import db, ids
from app.kernel.models import LoggedEvent
from app.kernel.prepared import Prepared
from app.packs.expenses.models import Report
from tests.commands.asking import REMIND
from tests.commands.telling import Telling
from tests.packs.expenses.desk import Desk
from tests.people import World


@pytest.fixture
def telling(world: World, spenders: None, monkeypatch: pytest.MonkeyPatch) -> Telling:
    return Telling(Desk(world), monkeypatch)


def logged(kind: str) -> list[LoggedEvent]:
    query = select(LoggedEvent).where(LoggedEvent.kind == kind).order_by("seq")
    return list(db.read_now(lambda session: session.exec(query).all()))


@pytest.mark.requirement("CMD-24")
async def test_events_stand_in_the_order_of_commits_and_a_refusal_has_none(
    telling: Telling,
) -> None:
    report = await telling.desk.draft("alice")
    await telling.desk.run("alice", "expense.report.update", report, title="Other")
    before = telling.events()
    await telling.desk.refused("alice", "expense.report.submit", report)  # it has no line
    await telling.desk.run("alice", "expense.report.get", report)

    assert [each.name for each in before] == ["expense.report.created", "expense.report.updated"]
    assert before[0].seq < before[1].seq
    assert {each.line for each in before} == {report}
    assert telling.events() == before


@pytest.mark.requirement("CMD-F9")
async def test_a_fault_in_the_outbox_takes_the_call_back(
    telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_INSERT", Prepared("INSERT INTO no_such_table VALUES (1)"))

    refused = await telling.desk.refused(
        "alice", "expense.report.create", title="Trip", period="2026-10"
    )

    assert (refused.stage, refused.status) == ("effect", 500)
    assert db.read_now(lambda session: session.exec(select(Report)).all()) == []
    assert telling.events() == []


@pytest.mark.requirement("CMD-F11", "CMD-16")
async def test_a_preview_shows_what_would_leave_and_tells_nobody(telling: Telling) -> None:
    report = await telling.desk.submitted("alice", 2_000)
    before = telling.events()
    call = telling.desk.call("alice", REMIND, report, message="please")

    first, second = await pipeline.preview(call), await pipeline.preview(call)

    (outside,) = first.outside
    assert (outside["kind"], outside["name"]) == ("webhook", "expense.report.reminded")
    assert outside["data"]["reportId"] == report
    assert outside["data"]["message"] == "please"
    assert call.call_id not in str(first.outside)
    assert first.digest == second.digest
    assert telling.events() == before


@pytest.mark.requirement("CMD-24", "SEC-50")
async def test_an_event_is_for_those_whose_permission_reaches_its_record(
    telling: Telling,
) -> None:
    report = await telling.desk.draft("bob")
    await telling.tell()
    (event,) = logged("expense.report.created")
    assert event.subject == report

    def hears(user: User) -> bool:
        person = telling.desk.world.person(user)
        rights = db.read_now(standing.rights, person)
        return rights is not None and bool(rights.allow(event))

    acme = telling.acme
    heard = {
        login for login, user in acme.people.items() if user.status == "active" and hears(user)
    }
    assert {"bob", "mia"} <= heard, "whose it is, and who manages above"
    assert "alice" not in heard, "who stands above, and manages nobody"
    assert not hears(telling.desk.world.globex["gina"])


@pytest.mark.requirement("CMD-24")
async def test_the_longest_name_of_an_event_is_told_whole(telling: Telling) -> None:
    name = "desk." + "n" * 123
    with pytest.raises(ValidationError):
        Told(type=f"{name}n")
    await telling.desk.draft("alice")
    (event,) = telling.events()
    longer = {**event.model_dump(), "id": ids.ulid(), "place": 1, "name": Told(type=name).type}
    db.transact_now(lambda work: work.session.add(OutboxEvent(**longer)))

    await telling.tell()

    (heard,) = logged(name)
    assert heard.subject == event.line


@pytest.mark.requirement("CMD-4")
async def test_what_was_in_force_is_kept_for_each_call_that_wrote(telling: Telling) -> None:
    done = await telling.desk.run("alice", "expense.report.create", title="Trip", period="2026-10")
    report = str(done.result["reportId"])
    read = await telling.desk.run("alice", "expense.report.get", report)
    await telling.tell()
    await telling.tell()

    kept = db.read_now(snapshots.of_call, telling.acme.id, done.call_id)
    assert isinstance(kept, GovernanceSnapshot)
    assert (kept.command, kept.version, kept.seq) == (done.code, done.version, done.audit_seq)
    assert len(kept.content_hash) == 64
    assert kept.permission == "expense.report.manage"
    assert kept.grants
    assert {"role", "org", "scope"} == set(kept.grants[0])
    assert kept.as_of_seq >= kept.seq
    assert db.read_now(snapshots.of_call, telling.acme.id, read.call_id) is None


@pytest.mark.requirement("CMD-4")
async def test_many_that_only_read_do_not_keep_a_snapshot_waiting(
    telling: Telling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "BATCH", 2)
    first = await telling.desk.run("alice", "expense.report.create", title="A", period="2026-10")
    for _ in range(5):
        await telling.desk.run("alice", "expense.report.get", str(first.result["reportId"]))
    last = await telling.desk.run("alice", "expense.report.create", title="B", period="2026-10")

    await telling.tell()

    for done in (first, last):
        assert db.read_now(snapshots.of_call, telling.acme.id, done.call_id) is not None


async def test_a_command_that_tells_one_thing_costs_one_statement(telling: Telling) -> None:
    ran: list[str] = []
    run_with = Prepared.run_with

    def counting(self: Prepared, *args: object, **kwargs: object) -> object:
        if "outbox_event" in self._sqlite:
            ran.append(self._sqlite)
        return run_with(self, *args, **kwargs)  # type: ignore[arg-type]

    report = await telling.desk.draft("alice")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prepared, "run_with", counting)
        await telling.desk.run("alice", "expense.report.update", report, title="Other")
        assert len(ran) == 1
        await telling.desk.run("alice", "expense.report.get", report)
        assert len(ran) == 1
    assert OutboxEvent.__tablename__ in ran[0]
