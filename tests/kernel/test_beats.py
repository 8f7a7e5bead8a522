"""Many sleepers, one timer for all who wait for about the same moment."""

import asyncio
import gc
import weakref

from app.kernel import beats


class Sleeper:
    """Notes when it was woken."""

    def __init__(self) -> None:
        self.is_awake = asyncio.Event()
        self.woken_at_s = 0.0

    def tire(self) -> None:
        self.woken_at_s = asyncio.get_running_loop().time()
        self.is_awake.set()


async def test_who_waits_for_one_moment_shares_it_and_nobody_is_woken_early() -> None:
    loop, sleepers = asyncio.get_running_loop(), [Sleeper() for _ in range(100)]
    begun_s = loop.time()

    moments = [beats.wake(loop, sleeper, 0.5) for sleeper in sleepers]
    gone, later = sleepers[0], Sleeper()
    moments[0].discard(gone)
    beats.wake(loop, later, 60)
    async with asyncio.timeout(10):
        for sleeper in sleepers[1:]:
            await sleeper.is_awake.wait()

    assert len({id(moment) for moment in moments}) <= 5, "some steps may have passed"
    assert (
        min(each.woken_at_s for each in sleepers[1:]) >= begun_s + 0.5 - 0.002
    )  # its clock's grain
    assert not gone.is_awake.is_set()
    assert not later.is_awake.is_set()


def test_a_loop_that_is_gone_leaves_nothing() -> None:
    loop = asyncio.new_event_loop()
    beats.wake(loop, Sleeper(), 60)
    known = weakref.ref(loop)
    assert loop in beats._beats

    loop.close()
    del loop
    gc.collect()

    assert known() is None
