"""Work on what others wrote, beside the event loop: one piece at a time, whoever asks (SEC-68).

What a schema costs is bounded where it is admitted; this keeps the sum of it from every other call.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def _begin() -> None:
    """Have a thread for it; a child process has none of its parent's."""
    global _thread
    _thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="outside")


_thread: ThreadPoolExecutor
_begin()
os.register_at_fork(after_in_child=_begin)


async def run(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` returns or raises, done in the one thread for it."""
    return await asyncio.get_running_loop().run_in_executor(_thread, lambda: work(*args, **kwargs))
