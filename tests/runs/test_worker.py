"""How a worker leaves a run: with all that is over on record, and never in its hands."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError
from structlog.testing import capture_logs

from app.kernel import db
from app.kernel.errors import Busy
from app.runs import ending, guards, heads, preparing, tools, worker
from app.runs.heartbeat import Held as Hand
from app.runs.heartbeat import Leaving
from app.runs.models.scripted import Call, Step
from app.runs.scheduler import Scheduler
from tests.runs.kills import afterwards
from tests.runs.playing import CREATE, GET, TOLD, TRIP, Stage, playing

pytestmark = pytest.mark.anyio

PATIENCE_S = 60
Fault = Callable[[], Exception]
LOOK = Call("read_conversation", {})
UNKNOWN = [Call(GET, {"targetRecordId": f"{n:026}"}) for n in range(8)]


def gone() -> OperationalError:
    """The connection broke."""
    return OperationalError("COMMIT", {}, Exception("gone"))


def refused() -> IntegrityError:
    """The store is there, and does not want it."""
    return IntegrityError("INSERT", {}, Exception("no"))


AWAY = [Busy, gone]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that was away is asked again at once."""
    monkeypatch.setattr(worker, "AGAIN_AFTER_S", 0.0)
    monkeypatch.setattr(worker, "PAUSES_S", (0.0, 0.0))


@pytest.mark.requirement("RUN-88", "RUN-115", "RUN-38")
@pytest.mark.parametrize("fault", [*AWAY, refused])
async def test_a_run_that_the_store_fails_is_given_back_with_what_its_calls_came_to(
    stage: Stage, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = 2 if fault is refused else 1  # it is asked again without what waited
    monkeypatch.setattr(guards, "_pass", fails(guards._pass, fault, after=1, times=times))
    playing(Step(calls=[LOOK]), Step())
    await stage.tell()

    assert stage.outcomes() == ["done"], "a read of which nothing is in the trail"
    run = stage.run()
    assert (run.state, run.takeovers) == ("completed", int(fault is refused))
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-115", "RUN-68")
@pytest.mark.parametrize("fault", AWAY)
async def test_a_store_that_is_away_for_longer_is_asked_again(
    stage: Stage, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "_pass", fails(guards._pass, fault, after=1))
    monkeypatch.setattr(ending, "requeue", fails(ending.requeue, fault))
    playing(Step(calls=[LOOK]), Step())
    await stage.tell()

    assert stage.outcomes() == ["done"]
    assert (stage.run().state, stage.run().takeovers) == ("completed", 0)


@pytest.mark.requirement("RUN-115", "RUN-66")
async def test_what_a_store_never_takes_keeps_no_run_from_being_given_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "finished", fails(heads.finished, gone, times=4))
    playing(Step(calls=[Call(CREATE, TRIP)]), Step())
    with capture_logs() as logged:
        await stage.tell()

    lost = [each["run_id"] for each in logged if each["event"] == "never_written"]
    assert lost == [stage.run().id]
    assert stage.outcomes() == ["done"], "as the trail has it"
    assert len(stage.done("expense.report.create")) == 1
    assert (stage.run().state, stage.run().takeovers) == ("completed", 0)
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-115")
async def test_a_run_that_could_not_be_prepared_is_given_back_once_the_store_is_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "prepare", fails(preparing.prepare, gone))
    monkeypatch.setattr(ending, "requeue", fails(ending.requeue, gone))
    playing(Step())
    await stage.tell()

    assert (stage.run().state, stage.run().takeovers) == ("completed", 0)


@pytest.mark.requirement("RUN-74", "RUN-44", "RUN-17")
@pytest.mark.parametrize("last", ["the next request", "a wait", "the answer"])
async def test_what_cannot_be_recorded_ends_the_run_as_a_fault_of_ours(
    stage: Stage, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = {
        "the next request": [Call(CREATE, TRIP)],
        "a wait": [Call("await_timer", {"seconds": 60})],
        "the answer": [Call("finish_silently", {})],
    }[last]
    monkeypatch.setattr(heads, "finished", fails(heads.finished, RuntimeError, times=9))
    playing(Step(calls=calls))
    with capture_logs() as logged:
        await stage.tell()

    lost = [each["run_id"] for each in logged if each["event"] == "never_written"]
    assert lost == [stage.run().id]
    assert (stage.run().state, stage.run().reason) == ("failed", "internal")
    assert stage.fates("expenses") == [("failed", "internal")]
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-74", "RUN-44", "RUN-17")
async def test_a_run_that_fails_ends_though_its_last_call_cannot_be_recorded(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks = fails(heads.finished, RuntimeError, after=7, times=9)
    monkeypatch.setattr(heads, "finished", breaks)
    playing(Step(calls=UNKNOWN))
    with capture_logs() as logged:
        await stage.tell()

    lost = [each["run_id"] for each in logged if each["event"] == "never_written"]
    assert lost == [stage.run().id]
    assert (stage.run().state, stage.run().reason) == ("failed", "failing")
    assert stage.fates("expenses") == [("failed", "failing")]
    assert stage.outcomes() == ["refused"] * 8, "the last one as the trail has it"
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-69", "RUN-74", "RUN-44")
async def test_a_stopped_run_ends_though_its_last_call_cannot_be_recorded(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(tools.execute)
    monkeypatch.setattr(tools, "execute", held)
    monkeypatch.setattr(heads, "finished", fails(heads.finished, RuntimeError, times=9))
    playing(Step(calls=[Call(CREATE, TRIP), LOOK]))
    stage.say("alice", "expenses", "Begin")
    async with stage.in_play() as scheduler:
        await held.begun()
        await stage.stop(scheduler)
        held.go_on.set()

    assert (stage.run().state, stage.run().reason) == ("canceled", "by_user")
    assert stage.outcomes() == ["done", "not_started"]
    assert stage.fates("expenses") == [("canceled", "by_user")]
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-74", "F-56")
async def test_an_end_that_is_refused_is_found_again_and_not_for_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "finish", fails(ending.finish, RuntimeError, times=9))
    playing(*[Step(fault="authentication")] * 4)
    await stage.tell()

    run = stage.runs()[0]
    assert (run.state, run.reason, run.takeovers) == ("interrupted", "crash_loop", 3)
    assert stage.fates("expenses") == [("interrupted", "crash_loop")]
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-74", "RUN-115")
@pytest.mark.parametrize("fault", AWAY)
async def test_an_end_that_a_store_was_away_for_is_stored_when_it_is_there(
    stage: Stage, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ending, "finish", fails(ending.finish, fault))
    playing(*[Step(fault="authentication")] * 2)
    await stage.tell()

    run = stage.run()
    assert (run.state, run.reason, run.takeovers) == ("failed", "model_authentication", 0)
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-68", "K-23")
@pytest.mark.parametrize("how", ["the stage ends", "it is cancelled"])
@pytest.mark.parametrize("is_sound", [True, False])
async def test_a_process_that_ends_gives_a_run_back_with_what_its_call_came_to(
    stage: Stage, how: str, is_sound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(tools.execute if how == "the stage ends" else tools.after, first=False)
    if how == "the stage ends":
        monkeypatch.setattr(tools, "execute", held)
    else:
        monkeypatch.setattr(tools, "after", held)
    if not is_sound:
        monkeypatch.setattr(heads, "finished", fails(heads.finished, RuntimeError, times=9))
    playing(Step(calls=[Call(CREATE, TRIP), LOOK]), Step())
    stage.say("alice", "expenses", "Begin")
    scheduler: Scheduler = stage.scheduler(worker.execute)
    await scheduler.tick()
    (hand,) = scheduler.hands.held.values()
    assert hand.task is not None
    await held.begun()
    if how == "the stage ends":
        scheduler.hands.end_all(Leaving())
        held.go_on.set()
    else:
        hand.task.cancel()
    await asyncio.wait({hand.task}, timeout=PATIENCE_S)

    run = stage.run()
    assert (run.state, run.claim_token, run.takeovers) == ("queued", None, 0)
    assert stage.outcomes() == (["done"] if is_sound else [])
    monkeypatch.undo()
    monkeypatch.setenv("ASSENT_MODEL", "scripted:loop")
    await scheduler.drain()
    assert stage.run().state == "completed"
    assert stage.outcomes() == ["done", "done"]
    assert len(stage.done("expense.report.create")) == 1
    assert stage.is_tidy()


@pytest.mark.requirement("RUN-68", "RUN-51", "RUN-59")
@pytest.mark.parametrize("how", ["the stage ends", "it is cancelled", "it is cancelled twice"])
async def test_a_run_that_is_cut_off_at_one_commit_after_the_other_loses_and_repeats_nothing(
    stage: Stage, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, places, passed = db.transaction, itertools.count(1), itertools.count(1)
    held: dict[str, Any] = {}

    async def counted(*given: Any, **more: Any) -> Any:
        if held and next(passed) == held["place"]:
            hand = held.pop("hand")
            held.clear()
            _cut(hand, how)
        return await real(*given, **more)

    monkeypatch.setattr(db, "transaction", counted)
    first = Step(calls=[LOOK, Call(CREATE, TRIP), LOOK])
    playing(first, Step(calls=[TOLD, LOOK]), *[Step()] * 60)
    stage.say("alice", "expenses", "Begin")
    scheduler: Scheduler = stage.scheduler(worker.execute)
    around, cuts = asyncio.all_tasks(), 0
    while not stage.runs() or stage.run().state != "completed":
        await scheduler.tick()
        (hand,) = scheduler.hands.held.values()
        passed = itertools.count(1)
        held.update(hand=hand, place=next(places))
        assert hand.task is not None
        await asyncio.wait({hand.task}, timeout=PATIENCE_S)
        cuts += not held
        held.clear()
        while on_their_way := asyncio.all_tasks() - around:
            await asyncio.wait(on_their_way, timeout=PATIENCE_S)

    assert cuts > 5
    assert stage.run().takeovers == 0
    assert db.read_now(afterwards.problems, stage.tenant_id) == []
    assert len(stage.done("expense.report.create")) <= 1
    assert stage.is_tidy()


def _cut(hand: Hand, how: str) -> None:
    if how == "the stage ends":
        hand.end(Leaving())
        return
    assert hand.task is not None
    hand.task.cancel()
    if how == "it is cancelled twice":
        asyncio.get_running_loop().call_soon(hand.task.cancel)


class Held:
    """A coroutine function that is in mid-flight, before or after its work, until it may go on."""

    def __init__(self, real: Callable[..., Any], *, first: bool = True) -> None:
        self.go_on, self._begun = asyncio.Event(), asyncio.Event()
        self._real, self._first = real, first

    async def __call__(self, *given: Any) -> Any:
        done = None if self._first else await self._real(*given)
        self._begun.set()
        await self.go_on.wait()
        return await self._real(*given) if self._first else done

    async def begun(self) -> None:
        """Return when it is there."""
        await asyncio.wait_for(self._begun.wait(), PATIENCE_S)


def fails(real: Any, fault: Fault, *, after: int = 0, times: int = 1) -> Any:
    """`real`, which fails some times after it has worked some times."""
    passed = 0

    def call(*given: Any, **more: Any) -> Any:
        nonlocal passed
        passed += 1
        if after < passed <= after + times:
            raise fault()
        return real(*given, **more)

    return call
