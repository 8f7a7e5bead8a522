"""Facts of identity become entries of the chain, in the transaction that makes them true."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session, col, select

from app.audit import identity_check, listening, queries, redaction, repeats, trail, verify
from app.audit.models import AuditEntry
from app.audit.queries import Filters, Sight
from app.identity import facts
from app.identity.models import Org, User, UserStatus
from app.identity.principal import Channel, Principal, Scope
from app.kernel import clock as clocks
from app.kernel import db, ids
from app.kernel.db import Work
from app.kernel.models import LoggedEvent
from tests.audit import trails
from tests.clock import Clock

USER = "01J0000000000000000000USER"


@pytest.fixture
def tenant_id(keys: str) -> Iterator[str]:
    end = listening.listen()
    try:
        made = trails.tenant()
        db.transact_now(_who_acts, made)
        yield made
    finally:
        end()


@pytest.mark.requirement("CMD-17", "SEC-75")
def test_a_fact_is_an_entry_with_who_what_and_through_which_door(tenant_id: str) -> None:
    _record(
        "identity.user.disable",
        _agent(tenant_id),
        target=("user", USER),
        changes={"status": ("active", "disabled"), "name": ("A", "A")},
        details={"why": "left", "count": 2},
    )

    (entry,) = _entries(tenant_id)
    assert (entry.command, entry.outcome, entry.channel) == ("identity.user.disable", "done", "mcp")
    assert (entry.user_id, entry.agent_id, entry.agent_release) == (USER, "A1", "R1")
    assert (entry.target_type, entry.target_id) == ("user", USER)
    assert entry.changes == [{"field": "status", "before": "active", "after": "disabled"}]
    assert entry.input_redacted == {"why": "left", "count": 2}


@pytest.mark.requirement("SEC-T32")
def test_a_fact_of_a_unit_that_fails_is_no_entry(tenant_id: str) -> None:
    def fail(work: Work) -> None:
        facts.record(work, "identity.user.disable", _person(tenant_id))
        raise RuntimeError("after the fact")

    with pytest.raises(RuntimeError):
        db.transact_now(fail)

    assert _entries(tenant_id) == []


@pytest.mark.requirement("SEC-T32")
def test_a_change_whose_entry_cannot_be_written_does_not_happen(
    tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(work: Work) -> None:
        work.session.add(
            LoggedEvent(
                tenant_id=tenant_id, seq=900, at=clocks.now(), kind="x", subject="x", data={}
            )
        )
        facts.record(work, "identity.user.disable", _person(tenant_id))

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(trail._INSERT, "run_with", full)
    with pytest.raises(OSError, match="no space"):
        db.transact_now(change)

    assert _events(tenant_id) == []


def test_a_fact_without_a_tenant_is_in_the_log_only(tenant_id: str) -> None:
    _record("identity.key.rotate", None)
    _record("identity.session.start", None, tenant_id=ids.ulid())

    assert _entries(tenant_id) == []


def test_an_entry_is_news_for_those_who_may_read_the_trail(tenant_id: str) -> None:
    _record("identity.user.disable", _person(tenant_id))

    (event,) = _events(tenant_id)
    assert (event.kind, event.subject, event.permission) == ("audit.appended", "1", "audit.read")
    assert event.data["command"] == "identity.user.disable"


@pytest.mark.requirement("SEC-74")
def test_refusals_that_repeat_are_counted_in_one_entry_a_minute(
    tenant_id: str, clock: Clock
) -> None:
    for number in range(100):
        db.transact_now(_forge, tenant_id, f"approval-{number}")

    entries = _entries(tenant_id)
    assert [entry.approval_id for entry in entries] == [f"approval-{n}" for n in range(repeats.OWN)]
    assert {entry.outcome for entry in entries} == {"refused"}

    clock.move(minutes=1)
    assert db.transact_now(repeats.close_windows) == 1
    assert db.transact_now(repeats.close_windows) == 0

    last = _entries(tenant_id)[-1]
    assert (last.command, last.agent_id, last.channel) == ("identity.approval.forged", "A1", "mcp")
    assert last.input_redacted == {"repeats": 100 - repeats.OWN, "within_s": 60}
    assert last.approval_id is None


@pytest.mark.requirement("SEC-74")
def test_the_next_minute_begins_with_entries_again(tenant_id: str, clock: Clock) -> None:
    for _ in range(repeats.OWN + 2):
        db.transact_now(_forge, tenant_id, "approval")
    clock.move(seconds=61)

    db.transact_now(_forge, tenant_id, "approval")

    entries = _entries(tenant_id)
    assert len(entries) == repeats.OWN + 2
    assert entries[-2].input_redacted == {"repeats": 2, "within_s": 60}
    assert entries[-1].input_redacted is None


@pytest.mark.requirement("SEC-74")
def test_a_few_refusals_need_no_entry_about_the_rest(tenant_id: str, clock: Clock) -> None:
    db.transact_now(_forge, tenant_id, "approval")
    clock.move(minutes=2)

    assert db.transact_now(repeats.close_windows) == 0
    assert len(_entries(tenant_id)) == 1


@pytest.mark.requirement("SEC-74")
def test_refusals_of_different_people_are_counted_apart(tenant_id: str, clock: Clock) -> None:
    for number in range(repeats.OWN + 1):
        db.transact_now(_forge, tenant_id, str(number))
        _record(
            "identity.approval.forged",
            _person(tenant_id),
            outcome="refused",
        )

    assert len(_entries(tenant_id)) == 2 * repeats.OWN


@pytest.mark.requirement("SEC-77", "CMD-20")
def test_a_secret_can_be_compared_and_not_read(tenant_id: str) -> None:
    value = {"user": {"pin": "1234", "name": "A"}, "tokens": [{"value": "1234"}, {"value": "9"}]}

    def redact(work: Work, tenant: str) -> redaction.Kept:
        return redaction.redact(work, tenant, value, ["user/pin", "tokens/*/value", "absent/x"])

    kept = db.transact_now(redact, tenant_id)
    again = db.transact_now(redact, tenant_id)
    foreign = db.transact_now(redact, trails.tenant("other"))

    pin, first, second = (
        kept.stored["user"]["pin"],
        kept.stored["tokens"][0]["value"],
        kept.stored["tokens"][1]["value"],
    )
    assert "1234" not in str(kept.stored)
    assert pin == first
    assert pin["length"] == 4
    assert pin["redacted"] is True
    assert first["hmac_sha256"] != second["hmac_sha256"]
    assert kept == again
    assert foreign.stored["user"]["pin"]["hmac_sha256"] != pin["hmac_sha256"]
    assert kept.stored["user"]["name"] == "A"


@pytest.mark.requirement("SEC-77")
def test_a_large_input_keeps_digest_size_and_its_head(tenant_id: str) -> None:
    small = db.transact_now(redaction.redact, tenant_id, {"text": "é" * 30_000})
    large = db.transact_now(redaction.redact, tenant_id, {"text": "é" * 40_000})

    assert small.stored == {"text": "é" * 30_000}
    assert large.stored["sha256"] == large.digest
    assert large.stored["size"] == 80_000 + len('{"text":""}')
    assert large.stored["head"].startswith('{"text":"éé')
    assert 4_090 <= len(large.stored["head"].encode()) <= redaction.HEAD


def test_a_key_made_in_a_unit_that_fails_is_not_kept(tenant_id: str) -> None:
    kept: list[redaction.Kept] = []

    def fail(work: Work) -> None:
        kept.append(redaction.redact(work, tenant_id, {"pin": "1"}, ["pin"]))
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        db.transact_now(fail)
    later = db.transact_now(redaction.redact, tenant_id, {"pin": "1"}, ["pin"])

    assert later.digest != kept[0].digest


@pytest.mark.requirement("SEC-78")
def test_rows_and_entries_of_identity_are_held_together(
    tenant_id: str, keys: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "_cross_checks", {"identity": identity_check.check})
    good, silent, gone, revived, former = (ids.ulid() for _ in range(5))
    for user_id in (good, silent, revived):
        db.transact_now(_add_user, tenant_id, user_id)
    db.transact_now(_add_user, tenant_id, former, UserStatus.DISABLED)
    for user_id in (good, gone, revived):
        _record("identity.user.create", _person(tenant_id), target=("user", user_id))
    _record("identity.user.disable", _person(tenant_id), target=("user", revived))

    _record(
        "identity.user.create",
        _person(tenant_id),
        target=("user", former),
        changes={"status": (None, "disabled")},
    )

    _record("identity.user.create", _person(tenant_id), target=("user", USER))

    problems = trails.checked(keys, tmp_path).problems

    assert [(problem.seq, problem.facts["id"]) for problem in problems] == [
        (None, silent),
        (2, gone),
        (4, revived),
    ]


def test_the_trail_is_read_by_filters(tenant_id: str) -> None:
    for number in range(7):
        _record(
            "identity.user.disable" if number % 2 else "identity.user.enable",
            _person(tenant_id),
            target=("user", str(number)),
        )
    _record("identity.users_other.x", _agent(tenant_id))

    def seqs(filters: Filters, **more: Any) -> list[int]:
        return [e.seq for e in db.read_now(queries.page, tenant_id, filters, **more).rows]

    assert seqs(Filters(command="identity.user.disable")) == [6, 4, 2]
    assert seqs(Filters(command="identity.user")) == [7, 6, 5, 4, 3, 2, 1]
    assert seqs(Filters(command="identity.")) == [8, 7, 6, 5, 4, 3, 2, 1]
    assert seqs(Filters(target_id="3", outcomes=("done",))) == [4]
    assert seqs(Filters(agent_id="A1")) == [8]
    assert seqs(Filters(), sight=Sight(where=col(AuditEntry.seq) < 3)) == [2, 1]
    head = db.read_now(queries.head, tenant_id)
    assert head is not None
    assert head.hash == db.read_now(queries.latest, tenant_id, 10)[0].hash
    assert db.read_now(queries.head, trails.tenant("empty")) is None
    third = db.read_now(queries.one, tenant_id, 3)
    assert third is not None
    assert third.target_id == "2"
    assert db.read_now(queries.one, tenant_id, 3, Sight(where=col(AuditEntry.seq) > 3)) is None


def _record(action: str, actor: Principal | None, **more: Any) -> None:
    db.transact_now(lambda work: facts.record(work, action, actor, **more))


def _who_acts(work: Work, tenant_id: str) -> None:
    work.session.add(Org(tenant_id=tenant_id, id="O1", path="/O1/", name="O"))
    work.session.flush()
    work.session.add(
        User(
            tenant_id=tenant_id,
            id=USER,
            login="actor",
            display_name="Actor",
            org_id="O1",
            status=UserStatus.ACTIVE,
            created_at=clocks.now(),
        )
    )


def _person(tenant_id: str) -> Principal:
    return Principal.person(
        tenant_id=tenant_id, user_id=USER, session_id="S1", epoch=1, channel=Channel.CONSOLE
    )


def _agent(tenant_id: str) -> Principal:
    return Principal(
        tenant_id=tenant_id,
        user_id=USER,
        agent_release_id="R1",
        delegation_id="D1",
        session_id=None,
        channel=Channel.MCP,
        actors=("A1",),
        scopes=frozenset({Scope.COMMANDS_INVOKE}),
        epoch=1,
    )


def _forge(work: Work, tenant_id: str, approval_id: str) -> None:
    facts.record(
        work,
        "identity.approval.forged",
        _agent(tenant_id),
        target=("approval", approval_id),
        outcome="refused",
        stage="authorize",
        reason="human_session_required",
    )


def _add_user(
    work: Work, tenant_id: str, user_id: str, status: UserStatus = UserStatus.ACTIVE
) -> None:
    if work.session.get(Org, (tenant_id, "O")) is None:
        work.session.add(Org(tenant_id=tenant_id, id="O", path="/O/", name="O"))
        work.session.flush()
    work.session.add(
        User(
            tenant_id=tenant_id,
            id=user_id,
            login=user_id,
            display_name="U",
            org_id="O",
            status=status,
            created_at=clocks.now(),
        )
    )


def _entries(tenant_id: str) -> list[AuditEntry]:
    def find(session: Session) -> list[AuditEntry]:
        query = select(AuditEntry).where(AuditEntry.tenant_id == tenant_id)
        return list(session.exec(query.order_by(col(AuditEntry.seq))))

    return db.read_now(find)


def _events(tenant_id: str) -> list[LoggedEvent]:
    def find(session: Session) -> list[LoggedEvent]:
        query = select(LoggedEvent).where(LoggedEvent.tenant_id == tenant_id)
        return list(session.exec(query.order_by(col(LoggedEvent.seq))))

    return db.read_now(find)
