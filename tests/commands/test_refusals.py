"""Every stage and every reason, through HTTP: status, stage, advice, an entry, and nothing else."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import psycopg
import pytest
from sqlalchemy import func, make_url, text
from sqlalchemy.exc import OperationalError
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.commands import deciding, pipeline
from app.commands.approval_models import Approval
from app.commands.deciding import Browser, Decision
from app.commands.models import CommandNumber, CommandOutcome
from app.commands.outbox_models import OutboxEvent
from app.commands.stages import assert_, field_map
from app.identity import features
from app.identity.models import EntitlementStatus, User
from app.identity.principal import Scope
from app.kernel import clock, db
from app.kernel.db import Work
from app.packs.expenses.models import Budget, Line, Payment, Receipt, Report
from tests.commands.agents import program
from tests.people import World

WATCHED = (Report, Line, Receipt, Payment, Budget, CommandOutcome, CommandNumber, OutboxEvent)
UNKNOWN_ID = "01JDXP5Y8GZ0000000000000AB"


@dataclass(frozen=True)
class Case:
    """One call that is refused, and how."""

    code: str
    input: dict[str, Any]
    status: int
    stage: str
    reason: str
    advice: str
    key: str | None = None
    body: dict[str, Any] = field(default_factory=dict)  # besides the input
    told: dict[str, Any] = field(default_factory=dict)  # members of the problem


def at(target: str, operation: str = "UPDATE", **more: Any) -> dict[str, Any]:
    return {"targetRecordId": target, "operationType": operation, **more}


def touched(target: str, title: str, stage: str, reason: str, **more: Any) -> Case:
    """`sample.report.touch` with a title that makes a stage say no."""
    known = {"status": 422, "advice": "report_to_user", **more}
    extra = known.pop("input", {})
    return Case(
        "sample.report.touch", at(target, title=title, **extra), stage=stage, reason=reason, **known
    )


def state_of(session: Session) -> dict[str, Any]:
    """Everything a refused call must leave as it was."""
    found = {
        model.__tablename__: [row.model_dump() for row in session.exec(select(model)).all()]
        for model in WATCHED
    }
    return {name: sorted(map(repr, rows)) for name, rows in found.items()}


async def faults(client: httpx2.AsyncClient, case: Case) -> list[str]:
    """What is not as it should be about one refused call."""
    before = db.read_now(state_of)
    seen = db.read_now(lambda session: session.exec(select(func.count(col(AuditEntry.seq)))).one())
    headers = {"Idempotency-Key": case.key} if case.key else {}
    answer = await client.post(
        f"/v1/commands/{case.code}/calls", json={"input": case.input, **case.body}, headers=headers
    )
    problem = answer.json()
    told = {name: problem.get(name) for name in ("status", "stage", "reason", "advice")}
    wanted = {
        "status": case.status,
        "stage": case.stage,
        "reason": case.reason,
        "advice": case.advice,
    }
    found = []
    if told != wanted or answer.status_code != case.status:
        found.append(f"{case.stage}/{case.reason}: {answer.status_code} {problem}")
    for name, value in case.told.items():
        if problem.get(name) != value:
            found.append(f"{case.stage}/{case.reason}: {name} is {problem.get(name)!r}")
    if db.read_now(state_of) != before:
        found.append(f"{case.stage}/{case.reason}: something was written")
    found += entry_faults(case, problem, seen)
    return found


def entry_faults(case: Case, problem: dict[str, Any], seen: int) -> list[str]:
    query = select(AuditEntry).order_by(AuditEntry.seq.desc())  # type: ignore[attr-defined]
    rows = [
        row
        for row in db.read_now(lambda session: session.exec(query).all())
        if row.call_id == problem.get("callId")
    ]
    count = db.read_now(lambda session: session.exec(select(func.count(col(AuditEntry.seq)))).one())
    said = [(row.outcome, row.stage, row.reason) for row in rows]
    if said != [("refused", case.stage, case.reason)] or count != seen + 1:
        return [f"{case.stage}/{case.reason}: entries {said}, {count - seen} more"]
    return []


@pytest.fixture
def featured(samples: World) -> Callable[[bool], None]:
    """Entitles Acme to payments, or no longer."""

    def change(work: Work, entitled: bool) -> None:
        status = EntitlementStatus.ACTIVE if entitled else EntitlementStatus.EXPIRED
        features.entitle(
            work, None, tenant_id=samples.acme.id, feature="expense.payments", status=status
        )

    return lambda entitled: db.transact_now(change, entitled)


@pytest.mark.requirement("CMD-4", "CMD-5", "CMD-8", "CMD-10", "CMD-F5", "CMD-F6", "CMD-F7")
async def test_each_guard_says_no_in_its_own_way(
    samples: World, report: Callable[..., str], featured: Callable[[bool], None]
) -> None:
    alice, bob, axel = (samples.acme[name] for name in ("alice", "bob", "axel"))
    own, bobs, guarded = report(alice), report(bob), report(alice)
    foreign = report(samples.globex["gus"])
    reread = {"advice": "reread_state"}
    found: list[str] = []
    async with samples.client(alice) as person:
        await person.post(
            "/v1/commands/sample.report.guard/calls", json={"input": at(guarded, word="x")}
        )
        keyed = await person.post(
            "/v1/commands/sample.report.touch/calls",
            json={"input": at(own, title="once")},
            headers={"Idempotency-Key": "k-1"},
        )
        assert keyed.status_code == 200, keyed.text
        for case in (
            Case("sample.no.such", {}, 404, "load", "unknown_command", "do_not_retry"),
            touched(bobs, "x", "authorize", "record_not_found", status=404, advice="do_not_retry"),
            touched(
                foreign, "x", "authorize", "record_not_found", status=404, advice="do_not_retry"
            ),
            touched(
                UNKNOWN_ID, "x", "authorize", "record_not_found", status=404, advice="do_not_retry"
            ),
            Case(
                "sample.report.touch",
                {"title": "x"},
                422,
                "schema_validate",
                "invalid_input",
                "fix_arguments",
            ),
            touched(
                own,
                "x",
                "schema_validate",
                "invalid_input",
                advice="fix_arguments",
                input={"tenantId": "y"},
            ),
            touched(own, 7, "schema_validate", "invalid_input", advice="fix_arguments"),  # type: ignore[arg-type]
            touched(own, "x" * 201, "schema_validate", "invalid_input", advice="fix_arguments"),
            Case(
                "sample.report.touch",
                {"targetRecordId": own, "title": "x"},
                422,
                "schema_validate",
                "invalid_input",
                "fix_arguments",
            ),
            Case(
                "expense.report.discard",
                {"targetRecordId": own},
                422,
                "schema_validate",
                "invalid_input",
                "fix_arguments",
            ),
            touched(
                own, "twice", "idempotency_check", "key_reused", advice="fix_arguments", key="k-1"
            ),
            Case(
                "sample.report.move",
                at(own),
                403,
                "entitlement_check",
                "feature_not_entitled",
                "do_not_retry",
                told={"feature": "expense.payments"},
            ),
            touched(
                guarded,
                "x",
                "sod_check",
                "sod_conflict",
                status=403,
                advice="escalate_to_other_user",
                told={"conflictsWith": "sample.report.guard", "scope": "same_record"},
            ),
            touched(
                own,
                "x",
                "state_check",
                "version_conflict",
                status=409,
                **reread,
                body={"expectedVersion": 99},
                told={"currentVersion": 2, "expectedVersion": 99},
            ),
            touched(
                own,
                "assert",
                "assert",
                "assertion_failed",
                told={"expression": "input.title != 'assert'", "detail": "No assert."},
            ),
            touched(own, "pre", "pre_invariant", "invariant_failed"),
            touched(
                own,
                "cross",
                "cross_field_validation",
                "cross_field_failed",
                told={"pointers": ["/note", "/title"]},
            ),
        ):
            found += await faults(person, case)

        featured(True)
        moved = await person.post("/v1/commands/sample.report.move/calls", json={"input": at(own)})
        assert moved.status_code == 200, moved.text
        found += await faults(
            person,
            Case(
                "sample.report.move",
                at(own),
                409,
                "state_check",
                "illegal_state",
                "reread_state",
                told={"currentState": "submitted", "allowedFrom": ["draft"]},
            ),
        )

    async with samples.client(axel) as auditor:
        for case in (
            touched(own, "x", "authorize", "permission_denied", status=403, advice="do_not_retry"),
            Case(
                "sample.form.write",
                {"title": "x"},
                403,
                "authorize",
                "permission_denied",
                "do_not_retry",
            ),
        ):
            found += await faults(auditor, case)

    async with program(samples, samples.acme, alice) as agent:
        for case in (
            Case(
                "sample.report.person",
                at(own),
                403,
                "authorize",
                "human_session_required",
                "ask_user",
            ),
            touched(own, "x", "idempotency_check", "key_required", advice="fix_arguments"),
        ):
            found += await faults(agent, case)

    async with program(samples, samples.acme, bob, (Scope.COMMANDS_READ,)) as reader:
        found += await faults(
            reader,
            touched(
                bobs,
                "x",
                "authorize",
                "permission_denied",
                status=403,
                advice="do_not_retry",
                told={"scope": "commands.invoke"},
            ),
        )

    assert found == []


@pytest.mark.requirement("CMD-4", "CMD-5", "CMD-8", "CMD-F2", "CMD-F9")
async def test_each_stage_that_changes_something_takes_it_back_when_it_says_no(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    own, orphan = report(alice), report(alice)
    db.transact_now(lose_budget, orphan)
    found: list[str] = []
    async with samples.client(alice) as person:
        for case in (
            touched(
                own, "computed", "computed_fields", "computation_failed", told={"column": "reason"}
            ),
            touched(own, "handler rejects", "handler", "not_today", told={"detail": "Not today."}),
            touched(
                own,
                "handler breaks",
                "handler",
                "handler_failed",
                status=500,
                advice="reread_state",
            ),
            touched(
                own, "handler sql", "handler", "handler_failed", status=500, advice="reread_state"
            ),
            touched(
                own,
                "side",
                "side_effect",
                "record_not_found",
                status=404,
                advice="do_not_retry",
                input={"otherId": UNKNOWN_ID},
            ),
            touched(
                orphan,
                "x",
                "roll_up",
                "roll_up_failed",
                told={"into": "expense.budget.approved_minor"},
            ),
            touched(
                own,
                "follow",
                "post_action",
                "assertion_failed",
                input={"note": "no"},
                told={"innerStage": "assert", "innerCommand": "sample.report.guard"},
            ),
            touched(own, "post", "post_invariant", "invariant_failed"),
        ):
            found += await faults(person, case)

    assert found == []


@pytest.mark.requirement("CMD-1", "CMD-5", "CMD-8")
async def test_a_formula_that_cannot_be_computed_refuses_wherever_it_stands(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    own = report(alice)
    found: list[str] = []
    async with samples.client(alice) as person:
        for title, note, stage in (
            ("computed", "", "computed_fields"),
            ("side breaks", "", "side_effect"),
            ("follow breaks", "", "post_action"),
            ("follow", "word breaks", "post_action"),
            ("undo breaks", "", "effect"),
            ("told breaks", "", "effect"),
        ):
            case = touched(own, title, stage, "computation_failed", input={"note": note})
            found += await faults(person, case)
        named = await person.post(
            "/v1/commands/sample.report.touch/calls",
            json={"input": at(own, title="told breaks"), "preview": True},
        )

    assert found == []
    problem = named.json()
    assert (named.status_code, problem["stage"]) == (422, "effect")
    assert problem["expression"].startswith("input.title == 'told breaks'")


@pytest.mark.requirement("CMD-8", "CMD-11", "CMD-14", "CMD-16", "CMD-F13", "CMD-F14")
async def test_an_approval_is_good_for_one_call_as_it_was_shown(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    own, other = report(alice), report(alice)
    found: list[str] = []
    async with program(samples, samples.acme, alice) as agent:

        async def ask(target: str, **input: Any) -> tuple[dict[str, Any], str]:
            wanted = at(target, **input)
            answer = await agent.post(
                "/v1/commands/sample.report.danger/calls",
                json={"input": wanted},
                headers={"Idempotency-Key": f"ask-{len(input)}-{clock.now().timestamp()}"},
            )
            problem = answer.json()
            assert (answer.status_code, problem["stage"]) == (428, "approval_check"), problem
            assert problem["advice"] == "ask_user"
            assert problem["approvalUrl"].endswith(problem["approvalId"])
            assert problem["expiresAt"].endswith("Z")
            return wanted, problem["approvalId"]

        def with_(
            wanted: dict[str, Any], approval: str, stage: str, reason: str, **more: Any
        ) -> Case:
            known = {"status": 409, "stage": stage, "reason": reason, "advice": "ask_user", **more}
            return Case("sample.report.danger", wanted, body={"approvalId": approval}, **known)

        wanted, approval = await ask(own, amountMinor=1)
        found += await faults(
            agent, with_(wanted, approval, "approval_check", "approval_required", status=428)
        )
        decide(samples, alice, approval, "deny")
        found += await faults(
            agent,
            with_(wanted, approval, "approval_check", "approval_denied", advice="report_to_user"),
        )

        wanted, approval = await ask(own, amountMinor=2)
        decide(samples, alice, approval, "approve")
        elsewhere = {**wanted, "targetRecordId": other}
        found += await faults(
            agent, with_(elsewhere, approval, "approval_check", "approval_required", status=428)
        )
        done = await agent.post(
            "/v1/commands/sample.report.danger/calls", json={"approvalId": approval}
        )
        assert done.status_code == 200, done.text
        found += await faults(
            agent,
            with_(wanted, approval, "approval_check", "approval_consumed", advice="reread_state"),
        )

        wanted, approval = await ask(own, amountMinor=3)
        decide(samples, alice, approval, "approve")
        async with samples.client(alice) as person:
            await person.post(
                "/v1/commands/sample.report.touch/calls",
                json={"input": at(own, title="changed meanwhile")},
            )
        found += await faults(agent, with_(wanted, approval, "approval_check", "approval_stale"))

        wanted, approval = await ask(own, amountMinor=4)
        decide(samples, alice, approval, "approve")
        db.transact_now(age, approval)
        found += await faults(agent, with_(wanted, approval, "approval_check", "approval_expired"))

        wanted, approval = await ask(own, amountMinor=13)
        decide(samples, alice, approval, "approve")
        found += await faults(
            agent,
            with_(wanted, approval, "handler", "unlucky", status=422, advice="report_to_user"),
        )
        assert state(samples, approval) == ("failed", "handler")

        wanted, approval = await ask(own, amountMinor=5, otherId=other)
        decide(samples, alice, approval, "approve")
        async with samples.client(alice) as person:
            await person.post(
                "/v1/commands/sample.report.touch/calls",
                json={"input": at(other, title="another effect")},
            )
        found += await faults(agent, with_(wanted, approval, "effect", "approval_stale"))
        assert state(samples, approval) == ("failed", "effect")

    assert found == []


@pytest.mark.requirement("CMD-9", "CMD-20", "CMD-27")
async def test_the_repeat_of_an_effect_that_is_still_to_come_waits(samples: World) -> None:
    alice = samples.acme["alice"]
    path, wanted = "/v1/commands/sample.outside.ping/calls", {"word": "hello", "card": "6222 0212"}
    async with program(samples, samples.acme, alice) as agent:
        asked = await agent.post(path, json={"input": wanted})
        approval = asked.json()["approvalId"]
        shown = await agent.get(f"/v1/approvals/{approval}")
        decide(samples, alice, approval, "approve")
        body, key = {"approvalId": approval}, "outside-1"
        sent = await agent.post(
            path, json={"input": wanted, **body}, headers={"Idempotency-Key": key}
        )
        became = await agent.get(sent.headers["location"])
        found = await faults(
            agent,
            Case(
                "sample.outside.ping",
                wanted,
                409,
                "idempotency_check",
                "in_flight",
                "wait_and_reread",
                key=key,
                body=body,
                told={"firstCallId": sent.json()["callId"]},
            ),
        )

    assert (sent.status_code, sent.json()["outcome"]) == (202, "dispatched")
    assert became.json()["outcome"] == "dispatched"
    assert "hello" in shown.text
    assert "6222" not in shown.text
    assert found == []


@pytest.mark.requirement("CMD-5", "CMD-8")
async def test_a_fault_in_any_stage_refuses_and_leaves_nothing(
    samples: World, report: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = samples.acme["alice"]
    own = report(alice)
    found: list[str] = []
    async with samples.client(alice) as person:
        for stage in pipeline.MAY_IT_RUN + pipeline.CHANGE_IT:
            name = pipeline.name_of(stage)
            with monkeypatch.context() as patched:
                patched.setattr(stage, "run", broken)
                case = touched(own, "x", name, f"{name}_failed", status=500, advice="reread_state")
                found += await faults(person, case)

    assert found == []


@pytest.mark.requirement("CMD-3", "CMD-5", "CMD-8", "CMD-F10")
async def test_of_two_who_saw_one_version_one_is_told_that_it_lost(
    samples: World, report: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = samples.acme["alice"]
    own, other = report(alice), report(alice)
    path = "/v1/commands/sample.report.touch/calls"
    async with samples.client(alice) as person:
        both = await asyncio.gather(
            *(
                person.post(path, json={"input": at(own, title=title), "expectedVersion": 1})
                for title in ("first", "second")
            )
        )
        monkeypatch.setattr(assert_, "run", overtaken)
        found = await faults(
            person,
            Case(
                "expense.report.update",
                at(other, title="late"),
                409,
                "field_map",
                "version_conflict",
                "reread_state",
            ),
        )

    won, lost = sorted(both, key=lambda answer: answer.status_code)
    problem = lost.json()
    assert (won.status_code, won.json()["record"]["version"]) == (200, 2)
    assert (lost.status_code, problem["reason"], problem["currentVersion"]) == (
        409,
        "version_conflict",
        2,
    )
    assert found == []


@pytest.mark.requirement("CMD-4", "CMD-8")
async def test_a_database_without_a_place_makes_the_call_busy_and_leaves_nothing(
    opened: str, samples: World, report: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = samples.acme["alice"]
    own = report(alice)
    path, body = "/v1/commands/sample.report.touch/calls", {"input": at(own, title="x")}

    async with samples.client(alice) as person:
        before, entries = db.read_now(state_of), db.read_now(entry_count)
        with no_place(opened, monkeypatch):
            answer = await person.post(path, json=body)
        left = db.read_now(state_of), db.read_now(entry_count)
        again = await person.post(path, json=body)

    problem = answer.json()
    told = (answer.status_code, problem["reason"], problem["advice"])
    assert told == (503, "busy", "retry_later")
    assert int(answer.headers["retry-after"]) >= 1
    assert left == (before, entries), "no entry either: nothing was answered"
    assert again.status_code == 200


@contextmanager
def no_place(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Others hold what a call needs: the only lock of the file, or rows, each time."""
    if db.is_sqlite():
        db.transact_now(lambda work: work.connection.exec_driver_sql("PRAGMA busy_timeout=50"))
        with closing(sqlite3.connect(make_url(url).database or "")) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
        return
    tries: list[int] = []

    def deadlocked(_ctx: Any) -> None:
        tries.append(1)
        raise OperationalError("UPDATE", None, psycopg.errors.DeadlockDetected())

    with monkeypatch.context() as patched:
        patched.setattr(field_map, "run", deadlocked)
        yield
    assert len(tries) == 5


def overtaken(ctx: Any) -> None:
    """Somebody else writes the record after it was found and before it is written."""
    ctx.work.connection.execute(
        text("UPDATE expense_report SET version = version + 1 WHERE id = :id"),
        {"id": ctx.record.id},
    )


def entry_count(session: Session) -> int:
    return session.exec(select(func.count(col(AuditEntry.seq)))).one()


def broken(_ctx: Any) -> None:
    raise RuntimeError("SELECT secret FROM nowhere")


def lose_budget(work: Work, report_id: str) -> None:
    work.session.execute(
        text("UPDATE expense_report SET budget_id = :gone WHERE id = :id"),
        {"gone": UNKNOWN_ID, "id": report_id},
    )


def decide(world: World, user: User, approval_id: str, verdict: Any) -> None:
    person = world.person(user)

    def decided(work: Work) -> None:
        row = work.session.get_one(Approval, (user.tenant_id, approval_id))
        nonce = deciding.nonce_for(row, person.session_id or "")
        decision = Decision(verdict=verdict, digest=row.digest, nonce=nonce)
        deciding.decide(work, person, approval_id, decision, Browser(is_fresh=True))

    db.transact_now(decided)


def age(work: Work, approval_id: str) -> None:
    work.session.execute(
        text("UPDATE approval SET expires_at = opened_at WHERE id = :id"), {"id": approval_id}
    )


def state(world: World, approval_id: str) -> tuple[str, str | None]:
    row = db.read_now(lambda session: session.get_one(Approval, (world.acme.id, approval_id)))
    return row.state, row.failed_stage
