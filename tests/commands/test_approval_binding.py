"""An approval is for the bytes, version and effect it was given for; secrets stay sealed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.commands import approval_execution, approvals, deciding, pipeline
from app.commands.approval_models import Approval
from app.commands.call import Call
from app.commands.deciding import Browser, Decision
from app.commands.models import CommandVersion
from app.commands.refused import Refused
from app.identity.principal import Principal
from app.kernel import db, ids, keyring
from app.kernel.db import Work
from tests.people import World

DANGER = "sample.report.danger"
SECRET = "6222 very secret 0000"


@pytest.fixture
def alice(samples: World) -> Principal:
    """The requester, who also decides."""
    return samples.person(samples.acme["alice"])


@pytest.fixture
def call(samples: World, alice: Principal, report: Callable[..., str]) -> Call:
    """A call that waits for a person."""
    target = report(samples.acme["alice"])
    given = {"targetRecordId": target, "operationType": "UPDATE", "amountMinor": 100}
    return Call(code=DANGER, input=given, principal=alice)


def given(call: Call, **changes: Any) -> Call:
    """The same call anew, with other arguments."""
    return replace(call, call_id=ids.ulid(), input={**call.input, **changes})


async def refused(call: Call) -> Refused:
    with pytest.raises(Refused) as caught:
        await pipeline.execute(call)
    return caught.value


async def approved(call: Call) -> Approval:
    """What a person assented to."""
    asked = await refused(call)
    assert asked.reason == "approval_required", (asked.stage, asked.reason)
    row = now(call, str(asked.facts["approvalId"]))
    session_id = call.principal.session_id or ""
    decision = Decision(
        verdict="approve", digest=row.digest, nonce=deciding.nonce_for(row, session_id)
    )
    return await deciding.attempt(call.principal, row.id, decision, Browser(is_fresh=True))


def now(call: Call, approval_id: str) -> Approval:
    key = (call.principal.tenant_id, approval_id)
    return db.read_now(lambda session: session.get_one(Approval, key))


def named(call: Call, row: Approval) -> Call:
    """The call that names its approval."""
    return replace(call, call_id=ids.ulid(), approval_id=row.id)


@pytest.mark.requirement("CMD-20", "SEC-53", "CMD-14")
async def test_a_secret_is_approved_sealed_and_run(call: Call) -> None:
    asked = given(call, account=SECRET)
    row = await approved(asked)

    assert SECRET not in repr(row)
    assert row.arguments["account"]["length"] == len(SECRET)
    assert row.sealed_input is not None
    assert SECRET.encode() not in row.sealed_input
    other = await refused(named(given(asked, account=SECRET[:-1] + "1"), row))
    assert other.reason == "approval_stale"
    db.transact_now(keyring.rotate, f"redaction:{row.tenant_id}")
    keyring.reload()

    alone = db.read_now(approvals.call_of, call.principal, row.id)
    assert alone.input["account"] == SECRET
    done = await pipeline.execute(alone)

    assert done.outcome == "done"
    entries = db.read_now(_entries, row.id)
    assert len(entries) == 4
    assert SECRET not in repr(entries)


@pytest.mark.requirement("SEC-T6", "CMD-14", "CMD-F12")
async def test_the_stored_arguments_run_however_the_same_bytes_were_written(call: Call) -> None:
    row = await approved(call)

    for swapped in ({"amountMinor": 101}, {"otherId": ""}):
        assert (await refused(named(given(call, **swapped), row))).reason == "approval_stale"
    for wrong in ({"amountMinor": "100"}, {"account": None}, {"approved_by": "x"}):
        assert (await refused(named(given(call, **wrong), row))).reason == "invalid_input"
    assert now(call, row.id).state == "approved"

    as_float = dict(reversed(list({**call.input, "amountMinor": 1e2}.items())))
    done = await pipeline.execute(named(replace(call, input=as_float), row))

    assert done.outcome == "done"
    ran = db.read_now(_entries, row.id)[-1]
    assert ran.input_redacted is not None
    assert type(ran.input_redacted["amountMinor"]) is int


@pytest.mark.requirement("SEC-T6", "CMD-F23")
async def test_another_version_of_the_command_is_another_call(call: Call) -> None:
    row = await approved(call)
    db.transact_now(_publish_again, call.principal.tenant_id)

    assert (await refused(named(call, row))).reason == "approval_stale"
    assert now(call, row.id).state == "approved"


@pytest.mark.requirement("CMD-14")
@pytest.mark.parametrize(("amount", "reason"), [(13, "unlucky"), (500, "handler_failed")])
async def test_a_call_that_fails_after_the_consumption_ends_its_approval(
    call: Call, amount: int, reason: str
) -> None:
    asked = given(call, amountMinor=amount)
    row = await approved(asked)

    first = await refused(named(asked, row))
    again = await refused(named(asked, row))

    assert (first.stage, first.reason) == ("handler", reason)
    ended = now(call, row.id)
    assert (ended.state, ended.failed_stage, ended.failed_reason) == ("failed", "handler", reason)
    assert again.reason == "approval_consumed"


@pytest.mark.requirement("CMD-16", "CMD-14")
async def test_another_effect_than_the_one_shown_does_not_happen(
    samples: World, call: Call, report: Callable[..., str]
) -> None:
    other = report(samples.acme["alice"], title="As shown")
    asked = given(call, otherId=other)
    row = await approved(asked)
    changed = {"targetRecordId": other, "operationType": "UPDATE", "title": "As it is now"}
    await pipeline.execute(
        Call(code="sample.report.touch", input=changed, principal=call.principal)
    )

    carried = await approval_execution.carry_out(row.tenant_id, row.id)

    assert isinstance(carried.refused, Refused)
    assert (carried.refused.stage, carried.refused.reason) == ("effect", "approval_stale")
    ended = now(call, row.id)
    assert (ended.state, ended.failed_stage) == ("failed", "effect")
    assert (await approval_execution.carry_out(row.tenant_id, row.id)).refused is None


def _entries(session: Session, approval_id: str) -> list[AuditEntry]:
    query = select(AuditEntry).where(AuditEntry.approval_id == approval_id)
    return list(session.exec(query.order_by(col(AuditEntry.seq))))


def _publish_again(work: Work, tenant_id: str) -> None:
    query = select(CommandVersion).where(
        CommandVersion.tenant_id == tenant_id, CommandVersion.code == DANGER
    )
    current = work.session.exec(query).one()
    again = current.model_copy(update={"id": ids.ulid(), "version": current.version + 1})
    work.session.add(CommandVersion(**again.model_dump()))
