"""Many at once: one effect for each assent, one decision for each approval, no update lost."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlmodel import func, select

from app.audit.models import AuditEntry
from app.commands import deciding, pipeline
from app.commands.approval_errors import ApprovalClosed
from app.commands.approval_models import Approval, ApprovalState
from app.commands.call import Call
from app.commands.deciding import Browser, Decision
from app.commands.outcome import Done
from app.commands.refused import Refused
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.packs.expenses.models import Report
from tests.commands.test_refusals import at
from tests.people import World

APPROVALS, CONSUMERS = 200, 8
ROUNDS = 500
DUPLICATES = 100


def danger(person: Principal, target: str, amount: int, **more: Any) -> Call:
    wanted = at(target, amountMinor=amount)
    return Call(code="sample.report.danger", input=wanted, principal=person, **more)


async def asked(call: Call) -> str:
    with pytest.raises(Refused) as refused:
        await pipeline.execute(call)
    return str(refused.value.facts["approvalId"])


def decided(work: Work, person: Principal, approval_id: str, verdict: Any) -> ApprovalState:
    row = work.session.get_one(Approval, (person.tenant_id, approval_id), populate_existing=True)
    decision = Decision(
        verdict=verdict,
        digest=row.digest,
        nonce=deciding.nonce_for(row, person.session_id or ""),
    )
    made = deciding.decide(work, person, approval_id, decision, Browser(is_fresh=True))
    return ApprovalState(made.state)


async def tried(call: Call) -> Done | Refused:
    try:
        return await pipeline.execute(call)
    except Refused as refused:
        return refused


def done_of(tenant_id: str, command: str) -> int:
    query = select(func.count()).where(
        AuditEntry.tenant_id == tenant_id,
        AuditEntry.command == command,
        AuditEntry.outcome == "done",
    )
    return db.read_now(lambda session: session.exec(query).one())


@pytest.mark.requirement("CMD-14", "CMD-F13")
async def test_each_of_two_hundred_approvals_has_one_effect_though_eight_race_for_it(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    person, target = samples.person(alice), report(alice)
    effects: list[str] = []
    for amount in range(1_000, 1_000 + APPROVALS):
        approval = await asked(danger(person, target, amount))
        await db.transaction(decided, person, approval, "approve")
        call = danger(person, target, amount, approval_id=approval)
        racing = [
            Call(**{**fields_of(call), "call_id": f"{approval}-{n}"}) for n in range(CONSUMERS)
        ]

        ends = await asyncio.gather(*map(tried, racing))

        effects += [end.call_id for end in ends if isinstance(end, Done)]
        reasons = {end.reason for end in ends if isinstance(end, Refused)}
        assert reasons == {"approval_consumed"}

    assert len(effects) == APPROVALS
    assert done_of(samples.acme.id, "sample.report.danger") == APPROVALS
    stored = db.read_now(lambda session: session.get_one(Report, (samples.acme.id, target)))
    assert stored.version == 1 + APPROVALS


@pytest.mark.requirement("CMD-13")
async def test_of_approve_against_deny_one_counts_and_never_changes(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    person, target = samples.person(alice), report(alice)
    ends: Counter[str] = Counter()
    for amount in range(2_000, 2_000 + ROUNDS):
        approval = await asked(danger(person, target, amount))

        answers = await asyncio.gather(
            *(
                db.transaction(decided, person, approval, verdict)
                for verdict in ("approve", "deny")
            ),
            return_exceptions=True,
        )

        won = [each for each in answers if isinstance(each, ApprovalState)]
        lost = [each for each in answers if isinstance(each, ApprovalClosed)]
        assert (len(won), len(lost)) == (1, 1), answers
        row = db.read_now(lambda session: session.get_one(Approval, (samples.acme.id, approval)))  # noqa: B023
        assert row.state == won[0]
        ends[won[0]] += 1

    decisions = db.read_now(
        lambda session: session.exec(
            select(func.count()).where(col_outcome().in_(["approved", "denied"]))
        ).one()
    )
    assert decisions == sum(ends.values()) == ROUNDS


@pytest.mark.requirement("CMD-9", "CMD-F27")
async def test_a_hundred_duplicates_of_a_keyed_call_have_one_effect_and_one_answer(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    person, target = samples.person(alice), report(alice)
    wanted = at(target, title="once")

    ends = await asyncio.gather(
        *(
            tried(
                Call(
                    code="sample.report.touch",
                    input=wanted,
                    principal=person,
                    idempotency_key="the same",
                )
            )
            for _ in range(DUPLICATES)
        )
    )

    outcomes = Counter(end.outcome if isinstance(end, Done) else end.reason for end in ends)
    assert outcomes == {"done": 1, "replayed": DUPLICATES - 1}
    assert len({end.call_id for end in ends if isinstance(end, Done)}) == 1
    stored = db.read_now(lambda session: session.get_one(Report, (samples.acme.id, target)))
    assert stored.version == 2


@pytest.mark.requirement("CMD-3", "CMD-F10")
async def test_of_two_calls_at_one_version_one_wins_and_on_two_records_both_do(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    person, one, other = samples.person(alice), report(alice), report(alice)

    def touch(target: str, title: str) -> Call:
        return Call(
            code="sample.report.touch",
            input=at(target, title=title),
            principal=person,
            expected_version=1,
        )

    same = await asyncio.gather(tried(touch(one, "a")), tried(touch(one, "b")))
    apart = await asyncio.gather(tried(touch(other, "a")), tried(touch(report(alice), "b")))

    assert sorted(type(end).__name__ for end in same) == ["Done", "Refused"]
    assert [end.reason for end in same if isinstance(end, Refused)] == ["version_conflict"]
    assert all(isinstance(end, Done) for end in apart)


def fields_of(call: Call) -> dict[str, Any]:
    return {name: getattr(call, name) for name in call.__dataclass_fields__}


def col_outcome() -> Any:
    return AuditEntry.outcome
