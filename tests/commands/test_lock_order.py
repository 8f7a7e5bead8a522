"""Calls of a tenant take its heads in one order, so that none waits for one that waits for it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import select

from app.audit.models import AuditHead
from app.commands import pipeline, refusals
from app.commands.call import Call
from app.commands.outcome import Done
from app.commands.refused import Refused
from app.kernel import clock, db
from app.kernel.db import Work
from tests.commands.test_races import asked, danger, decided
from tests.commands.test_refusals import at
from tests.people import World

BLOCKS = text("SELECT 1 FROM pg_locks WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)) LIMIT 1")
LONGEST_S = 20


@pytest.mark.requirement("CMD-F10")
@pytest.mark.parametrize("is_approved", [True, False])
async def test_a_call_with_an_approval_holds_up_nobody_it_waits_for(
    samples: World,
    report: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    is_approved: bool,
) -> None:
    alice = samples.acme["alice"]
    person, target, other = samples.person(alice), report(alice), report(alice)
    approval = None
    if is_approved:
        approval = await asked(danger(person, target, 1_000))
        await db.transaction(decided, person, approval, "approve")
    second = danger(person, target, 1_000, approval_id=approval)
    touch = Call(code="sample.report.touch", input=at(other, title="once"), principal=person)
    is_under_way = threading.Event()
    tries: list[str] = []

    def first(work: Work) -> Done:
        """A call that just took the head of the trail, as stage `effect` does."""
        tries.append("first")
        head = select(AuditHead.seq).where(AuditHead.tenant_id == person.tenant_id)
        work.session.exec(head.with_for_update()).one()
        is_under_way.set()
        until_s = clock.monotonic_s() + LONGEST_S
        while not db.is_sqlite() and work.connection.execute(BLOCKS).first() is None:
            assert clock.monotonic_s() < until_s
        return pipeline.perform(work, touch)

    record = refusals.record

    def counted(*given: Any) -> Refused:
        tries.append("refusal")
        return record(*given)

    def then(_work: Work) -> Call:
        assert is_under_way.wait(LONGEST_S)
        tries.append("second")
        return second

    monkeypatch.setattr(refusals, "record", counted)
    ends: Any = await asyncio.gather(
        db.transaction(first), pipeline.execute_as(then), return_exceptions=True
    )

    assert isinstance(ends[0], Done)
    assert isinstance(ends[1], Done if is_approved else Refused)
    expected = ["first", "second"] if is_approved else ["first", "refusal", "second"]
    assert sorted(tries) == expected  # nobody had to start over
