"""One call through the twenty stages: what is written, what is told, what is left behind."""

from collections.abc import Callable

import pytest
from sqlmodel import select

from app.audit.models import AuditEntry
from app.commands import pipeline
from app.commands.call import Call
from app.commands.refused import Refused
from app.kernel import db
from app.packs.expenses.models import Report
from tests.people import World


def entries(call_id: str) -> list[AuditEntry]:
    query = select(AuditEntry).where(AuditEntry.call_id == call_id)
    return list(db.read_now(lambda session: session.exec(query).all()))


@pytest.mark.requirement("CMD-4", "CMD-17")
async def test_a_call_is_done_once_with_its_entry_and_its_times(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.person(samples.acme["alice"])
    target = report(samples.acme["alice"])
    call = Call(
        code="sample.report.touch",
        input={"targetRecordId": target, "operationType": "UPDATE", "title": "November"},
        principal=alice,
    )

    done = await pipeline.execute(call)

    assert done.outcome == "done"
    assert done.record is not None
    assert done.record["version"] == 2
    assert done.undo is not None
    assert done.undo.input["title"] == "October, Shanghai"
    stages = [pipeline.name_of(stage) for stage in pipeline.MAY_IT_RUN + pipeline.CHANGE_IT]
    assert list(done.timings) == stages
    (entry,) = entries(call.call_id)
    assert entry.outcome == "done"
    assert entry.changes is not None
    assert entry.changes[0]["fields"]["title"] == ["October, Shanghai", "November"]


async def test_a_rehearsal_is_never_run_for_real(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.person(samples.acme["alice"])
    target = report(samples.acme["alice"])
    wanted = {"targetRecordId": target, "operationType": "UPDATE", "title": "November"}
    call = Call(code="sample.report.touch", input=wanted, principal=alice, preview=True)

    with pytest.raises(ValueError, match="rehearsal"):
        await pipeline.execute(call)

    assert entries(call.call_id) == []


@pytest.mark.requirement("CMD-5")
async def test_a_refusal_leaves_its_entry_and_nothing_else(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.person(samples.acme["alice"])
    target = report(samples.acme["alice"])
    call = Call(
        code="sample.report.touch",
        input={"targetRecordId": target, "operationType": "UPDATE", "title": "post"},
        principal=alice,
    )

    with pytest.raises(Refused) as refused:
        await pipeline.execute(call)

    assert (refused.value.stage, refused.value.reason) == ("post_invariant", "invariant_failed")
    stored = db.read_now(lambda session: session.get(Report, (samples.acme.id, target)))
    assert stored is not None
    assert stored.title == "October, Shanghai"
    (entry,) = entries(call.call_id)
    assert (entry.outcome, entry.stage) == ("refused", "post_invariant")
