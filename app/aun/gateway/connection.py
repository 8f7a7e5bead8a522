"""One socket: what waits to be sent, by a writer of its own, and what runs for it.

Nobody who pushes ever waits for a receiver: what waits is bounded, and beyond it the connection
ends with 1000. The client comes back and pulls; nothing is lost (aun.md, 10). A connection at rest
holds no task and no buffer: thousands of them are cheap.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from app.kernel import metrics
from app.kernel.abortable_socket import framed
from app.kernel.asgi.wire import Send

MOST_FRAMES, MOST_BYTES = 256, 8 << 20
RUNNING, WAITING = 16, 64  # requests of one connection
FINISH_S = 5.0  # what runs when a connection ends may take so long
LISTENS_S = 0.5  # after this without a request, it is one that only listens
LAST_WORDS_S = 2.0  # until a closing frame is out
SHUT_OUT = 4003  # the client stays away for good
NORMAL = 1000  # for every transient condition: the client returns within two seconds

log = structlog.get_logger(__name__)
slow_readers = metrics.counter("aun_slow_readers", "Connections closed because they did not read.")


class Connection:
    """A socket that was accepted; on the event loop only."""

    __slots__ = (
        "_abort",
        "_bytes",
        "_close",
        "_held",
        "_running",
        "_send",
        "_turns",
        "_waiting",
        "_write_now",
        "_writer",
        "is_over",
        "loop",
    )

    def __init__(
        self, send: Send, abort: Callable[[], None], write_now: Callable[[bytes], bool]
    ) -> None:
        self._send, self._abort, self._write_now = send, abort, write_now
        self.loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] | None = None
        self._held: deque[bytes] | None = None
        self._bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._close: tuple[int, str] | None = None
        self._running: set[asyncio.Task[None]] | None = None
        self._turns: asyncio.Semaphore | None = None
        self.is_over = False

    def offer(self, frame: bytes, wire: bytes | None = None) -> None:
        """Send a frame, or let it wait for its turn; too many, and the connection ends.

        `wire` is the same `framed`, by whoever tells it to many.
        """
        if self._close is not None or self.is_over:
            return
        is_free = self._writer is None and not self._waiting
        if is_free and self._write_now(framed(frame) if wire is None else wire):
            return
        if self._waiting is None:
            self._waiting = deque()
        if self._keeps(self._waiting, frame):
            self._write_soon()

    def hold(self) -> None:
        """Keep what is pushed back until `release`.

        The stock client reads frames in another thread than the one that connects. What reaches it
        before that one has seen the answer to `auth.connect` it takes for a message of a protocol
        before 0.5.21: the hint of unread mail, without text and unencrypted, for mail. So nothing
        goes out that was not asked for until the client asks something, or shows that it only
        listens.
        """
        self._held = deque()
        self.loop.call_later(LISTENS_S, self.release)

    def release(self) -> None:
        """Let go what `hold` kept, in its order."""
        held, self._held = self._held, None
        for frame in held or ():
            self._bytes -= len(frame)
            self.offer(frame)

    def push(self, frame: bytes, wire: bytes | None = None) -> None:
        """Offer a frame that nobody asked for."""
        if self._held is None:
            self.offer(frame, wire)
        elif self._close is None and not self.is_over:
            self._keeps(self._held, frame)

    def close(self, code: int, reason: str = "") -> None:
        """Send what waits, then end it; at once if the other side takes nothing."""
        if self._close is None and not self.is_over:
            self._close = (code, reason)
            self._write_soon()
            self.loop.call_later(LAST_WORDS_S, self._abort_if_stuck)

    async def flushed(self) -> None:
        """Return when nothing waits any more."""
        if self._writer is not None:
            await asyncio.shield(self._writer)

    def run(self, work: Callable[[], Awaitable[bytes | None]]) -> bool:
        """Run a request beside the others and send its answer; False where too many wait."""
        if self._running is None or self._turns is None:
            self._running, self._turns = set(), asyncio.Semaphore(RUNNING)
        if len(self._running) >= RUNNING + WAITING:
            return False
        task = asyncio.ensure_future(self._run(work, self._turns))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True

    async def end(self) -> None:
        """Let go of it: what runs was asked for, so it may finish, though nobody hears of it."""
        self.is_over = True
        running = list(self._running or ())
        if running:
            await asyncio.wait(running, timeout=FINISH_S)

    def _keeps(self, queue: deque[bytes], frame: bytes) -> bool:
        if len(queue) >= MOST_FRAMES or self._bytes + len(frame) > MOST_BYTES:
            slow_readers.inc()
            self._drop()
            self.close(NORMAL, "reader is too slow")
            return False
        queue.append(frame)
        self._bytes += len(frame)
        return True

    async def _run(
        self, work: Callable[[], Awaitable[bytes | None]], turns: asyncio.Semaphore
    ) -> None:
        async with turns:
            told = await work()
        if told is not None:
            self.offer(told)

    def _write_soon(self) -> None:
        if self._writer is None:
            self._writer = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        """Send what waits, then rest: the next frame starts it again."""
        try:
            while self._waiting:
                frame = self._waiting.popleft()
                self._bytes -= len(frame)
                await self._send({"type": "websocket.send", "text": frame.decode()})
            if self._close is not None:
                code, reason = self._close
                self.is_over = True
                with suppress(Exception):  # the other side may be gone already
                    await self._send({"type": "websocket.close", "code": code, "reason": reason})
        except Exception:  # noqa: BLE001 - whatever the transport calls it, the other side is gone
            log.debug("aun_socket_gone")
            self.is_over = True
            self._drop()
        finally:
            self._waiting = self._waiting or None
            self._writer = None
        if self._waiting or (self._close is not None and not self.is_over):
            self._write_soon()

    def _abort_if_stuck(self) -> None:
        if self._writer is not None:
            self._abort()

    def _drop(self) -> None:
        for queue in (self._waiting, self._held):
            if queue is not None:
                queue.clear()
        self._bytes = 0
