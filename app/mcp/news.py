"""Who waits for news of a call: woken after the commit that made them, from whichever thread.

News may be lost between processes, so whoever waits looks at the database as well.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from app.commands.approval_events import ApprovalChanged
from app.commands.approval_models import ApprovalState
from app.commands.external import EffectSettled
from app.kernel import events


class News:
    """The tasks of this process that wait, by what they wait for: the id of a call or approval."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[Callable[[], None]]] = {}

    def listen(self) -> Callable[[], None]:
        """Hear of what happens; returns a function that ends it."""
        ends = [
            events.subscribe(ApprovalChanged, self._changed),
            events.subscribe(EffectSettled, lambda settled: self._tell(settled.call_id)),
        ]
        return lambda: [end() for end in ends].clear()

    @contextmanager
    def of(self, id: str) -> Iterator[asyncio.Event]:
        """An event that is set when there is news of `id`."""
        came, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is gone, and who waited with it
                loop.call_soon_threadsafe(came.set)

        self.when(id, wake)
        try:
            yield came
        finally:
            self.no_longer(id, wake)

    def when(self, id: str, wake: Callable[[], None]) -> None:
        """Call `wake` on some thread when there is news of `id`."""
        self._waiting.setdefault(id, set()).add(wake)

    def no_longer(self, id: str, wake: Callable[[], None]) -> None:
        """Stop that; harmless when it was stopped."""
        waiting = self._waiting.get(id, set())
        waiting.discard(wake)
        if not waiting:
            self._waiting.pop(id, None)

    def _changed(self, change: ApprovalChanged) -> None:
        if change.state != ApprovalState.OPEN:
            self._tell(change.approval_id)

    def _tell(self, id: str) -> None:
        for wake in tuple(self._waiting.get(id, ())):
            wake()


_process = News()


def of_process() -> News:
    """The news of this process."""
    return _process
