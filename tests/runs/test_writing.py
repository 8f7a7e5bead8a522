"""What a run writes: some of it waits for the next unit, and is committed before it, with it."""

from collections.abc import Sequence

import pytest
from sqlalchemy.orm.attributes import flag_modified

from app.kernel import db
from app.kernel.db import Work
from app.runs import lease, transcript, writing
from app.runs.errors import LeaseLost
from app.runs.run_models import Run, TranscriptEntry
from app.runs.session import RunSession
from app.runs.states import EntryKind
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


class Broken(Exception):
    """A fault of ours."""


def note(work: Work, run: RunSession, seq: int, text: str) -> str:
    lease.hold(work, run.claim)
    transcript.write(work, run.claim, seq, EntryKind.NOTE, {"text": text})
    return text


def breaks(_work: Work) -> None:
    raise Broken


def notes(desks: Desks) -> Sequence[str]:
    return [each.body["text"] for each in desks.entries() if each.kind == EntryKind.NOTE]


@pytest.mark.requirement("RUN-38", "RUN-36", "RUN-52")
async def test_what_waits_is_written_before_the_next_unit_and_with_it(desks: Desks) -> None:
    run = await desks.at_work()

    writing.later(run, note, run, 100, "first")
    writing.later(run, note, run, 101, "second")
    assert notes(desks) == []
    assert await writing.now(run, note, run, 102, "third") == "third"

    assert notes(desks) == ["first", "second", "third"]
    await writing.flush(run)
    assert notes(desks) == ["first", "second", "third"], "once"


@pytest.mark.requirement("RUN-38", "RUN-52")
async def test_a_unit_that_fails_writes_nothing_and_what_waits_goes_on_waiting(
    desks: Desks,
) -> None:
    run = await desks.at_work()
    writing.later(run, note, run, 100, "first")

    with pytest.raises(Broken):
        await writing.now(run, breaks)
    assert notes(desks) == []
    await writing.flush(run)

    assert notes(desks) == ["first"]


@pytest.mark.requirement("RUN-88", "RUN-52")
async def test_what_cannot_be_written_goes_with_what_came_after_it(desks: Desks) -> None:
    run = await desks.at_work()
    writing.later(run, note, run, 100, "first")
    writing.later(run, breaks)
    writing.later(run, note, run, 101, "after it")

    with pytest.raises(Broken):
        await writing.flush(run)
    await writing.now(run, note, run, 101, "the end")

    assert notes(desks) == ["first", "the end"]


@pytest.mark.requirement("RUN-52", "RUN-63")
async def test_a_worker_that_was_replaced_writes_nothing_of_what_waited(desks: Desks) -> None:
    run = await desks.at_work()
    writing.later(run, note, run, 100, "late")
    desks.force(Run, (run.claim.tenant_id, run.claim.run_id), claim_token="another")

    with pytest.raises(LeaseLost):
        await writing.now(run, note, run, 101, "later")
    await writing.flush(run)

    assert notes(desks) == []


@pytest.mark.requirement("RUN-103")
async def test_an_entry_whose_provider_said_nothing_has_none_however_it_was_stored(
    desks: Desks,
) -> None:
    run = await desks.at_work()
    await writing.now(run, note, run, 100, "first")
    db.transact_now(_store_null, run)

    found = await db.read(transcript.load, run.claim)

    assert [each.provider_body for each in found if each.seq == 100] == [None]


def _store_null(work: Work, run: RunSession) -> None:
    row = work.session.get_one(TranscriptEntry, (run.claim.tenant_id, run.claim.run_id, 100))
    row.provider_body = None
    flag_modified(row, "provider_body")
