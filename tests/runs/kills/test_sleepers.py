"""Processes that sleep until others have their work, and those that are told to end."""

import signal
import subprocess
from pathlib import Path

import pytest

from app.runs.states import RunState
from tests.processes import Process
from tests.runs.kills.dying import Place
from tests.runs.kills.scenes import WORK
from tests.runs.kills.survivors import PATIENCE_S, Survivors

pytestmark = pytest.mark.anyio

INSIDE = "app.commands.stages.authorize.run"  # its transaction is open
POLL_S = 0.02


def wait_until_stopped(process: Process) -> None:
    """Return when the system has stopped it."""
    for _ in range(int(PATIENCE_S / POLL_S)):
        if Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return
        try:
            process.wait(POLL_S)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("it was never stopped")


@pytest.mark.requirement("K-22", "RUN-63", "RUN-65", "RUN-52")
@pytest.mark.parametrize(
    ("name", "passes", "calls"),
    [
        ("app.commands.pipeline.execute", 0, "done interrupted done done"),
        ("app.runs.tools.after", 1, "done done done done"),
        (INSIDE, 0, "done interrupted done done"),
    ],
)
async def test_a_worker_that_slept_until_it_was_replaced_writes_nothing(
    survivors: Survivors, database: str, name: str, passes: int, calls: str
) -> None:
    if name == INSIDE and database.startswith("sqlite"):
        pytest.skip("SQLite has one writer: who sleeps inside a transaction holds up all others")
    script = await survivors.begin(WORK)
    sleeper = survivors.start(WORK, script, Place(name, passes=passes, signal=signal.SIGSTOP))
    wait_until_stopped(sleeper)
    try:
        await survivors.go_on()
        desks = survivors.desks
        assert " ".join(call.state for call in desks.calls()) == calls
        before = (desks.run(), desks.calls(), desks.entries(), desks.inputs("expenses"))
    finally:
        sleeper.send_signal(signal.SIGCONT)

    assert sleeper.wait(PATIENCE_S) == 0, survivors.log()

    assert "lease_lost" in survivors.log()
    assert before == (desks.run(), desks.calls(), desks.entries(), desks.inputs("expenses"))
    assert before[0].takeovers == 1
    await survivors.check(WORK, lost=("Journey",) if "interrupted" in calls else ())


@pytest.mark.requirement("K-23", "RUN-68")
async def test_a_process_that_is_told_to_end_finishes_its_call_and_gives_its_run_back(
    survivors: Survivors,
) -> None:
    script, desks = await survivors.begin(WORK), survivors.desks

    leaving = survivors.start(
        WORK,
        script,
        Place("app.commands.stages.handler.run", signal=signal.SIGTERM),
        is_server=True,
    )
    assert leaving.wait(PATIENCE_S) == 0, survivors.log()

    run = desks.run()
    assert (run.state, run.takeovers, run.claim_token) == (RunState.QUEUED, 0, None)
    assert [call.state for call in desks.calls()] == ["done", "done"]
    await survivors.work()
    assert (desks.run().state, desks.run().takeovers) == (RunState.COMPLETED, 0)
    assert [call.state for call in desks.calls()] == ["done"] * 4
    await survivors.check(WORK, lost=())
