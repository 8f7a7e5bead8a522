"""What a person found out about a call nobody knew the outcome of."""

import pytest
from sqlmodel import select

from app.audit.models import AuditEntry
from app.kernel import clock as kernel_clock
from app.kernel import db, ids
from app.kernel.errors import NotFound
from app.runs import inputs, opening, resolving
from app.runs.run_models import Run, ToolCall
from app.runs.states import CallKind, CallState, RunState
from tests.runs.agents import Office


async def _unknown(office: Office) -> ToolCall:
    """A call of alice's run of which nobody knows."""
    office.say("alice")
    run = await office.begun()
    await inputs.admit_first(run)
    call = ToolCall(
        tenant_id=office.tenant_id,
        id=ids.ulid(),
        run_id=run.claim.run_id,
        turn=1,
        ordinal=0,
        provider_call_id="p",
        tool="payment-send",
        kind=CallKind.COMMAND,
        arguments_sha256="",
        state=CallState.UNKNOWN,
        started_at=kernel_clock.now(),
    )
    db.transact_now(lambda work: work.session.add(call))
    office.end(run.claim, RunState.OUTCOME_UNKNOWN)
    return call


def _news(run: Run) -> list[str]:
    return [note["text"] for note in db.read_now(resolving.news, run)]


@pytest.mark.requirement("RUN-113", "RUN-51")
@pytest.mark.parametrize(("finding", "word"), [("happened", "did take"), ("did_not", "did not")])
async def test_a_finding_stands_beside_the_call_is_on_record_and_told_once(
    office: Office, finding: str, word: str
) -> None:
    call = await _unknown(office)

    resolved = db.transact_now(
        resolving.resolve,
        office.person("alice"),
        call.id,
        finding,  # type: ignore[arg-type]
    )

    assert (resolved.state, resolved.resolved_as) == ("unknown", finding)
    assert resolved.resolved_by == office.world.acme["alice"].id
    entry = db.read_now(
        lambda session: session.exec(
            select(AuditEntry).where(AuditEntry.command == resolving.ACTION)
        ).one()
    )
    assert (entry.target_id, entry.user_id) == (call.id, resolved.resolved_by)
    told = []
    for _ in range(2):
        office.say("alice")
        await office.hear()
        await opening.open_due()
        (claim,) = office.claim()
        told.append(_news(office.run(claim.run_id)))
        run = office.session(claim)
        await inputs.admit_first(run)
        office.end(claim)
    assert [len(each) for each in told] == [1, 0]
    assert word in told[0][0]


@pytest.mark.requirement("RUN-113")
async def test_only_one_finding_counts_and_only_of_who_may_say(office: Office) -> None:
    call = await _unknown(office)
    with pytest.raises(NotFound):
        db.transact_now(resolving.resolve, office.person("bob"), call.id, "happened")
    with pytest.raises(NotFound):
        db.transact_now(resolving.resolve, office.person("alice"), "nothing", "happened")
    db.transact_now(resolving.resolve, office.person("alice"), call.id, "happened")

    with pytest.raises(resolving.ResolvedAlready):
        db.transact_now(resolving.resolve, office.person("alice"), call.id, "did_not")
