"""`python -m app …` as a process of its own, forked from one that has loaded the product.

Loading takes two seconds of processor, hundreds of times a run; everything after it is what
`python -m app` does. `afresh=True` is the long way, for what is about the way in itself.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Protocol

from tests.sources import ROOT

LOADED = "tests.loaded"
START_LIMIT_S = 180  # where all cores are at other work, too

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([LOADED])


class Process(Protocol):
    """What is asked of a process: of one that was forked, and of `subprocess.Popen`."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def kill(self) -> None:
        """SIGKILL."""

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status when it has ended."""


def start(
    *arguments: str, env: dict[str, str], output: Path, errors: Path, afresh: bool = False
) -> Process:
    """Start `python -m app <arguments>`, which adds to the files `output` and `errors`."""
    if not afresh:
        return _Forked(arguments, env, output, errors)
    with output.open("ab") as out, errors.open("ab") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "app", *arguments],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )


def run(
    *arguments: str, env: dict[str, str], afresh: bool = False
) -> "subprocess.CompletedProcess[str]":
    """Run `python -m app <arguments>` to its end."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        process = start(*arguments, env=env, output=output, errors=errors, afresh=afresh)
        try:
            status = process.wait(START_LIMIT_S)
        finally:
            process.kill()
        said = [file.read_text(errors="replace") for file in (output, errors)]
    return subprocess.CompletedProcess(["app", *arguments], status, *said)


def fork(function: Callable[..., None], *arguments: Any) -> Process:
    """Run a function of the tests in a process of its own, with the product loaded."""
    return _Called(function, arguments)


class _Called:
    def __init__(self, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._process: ForkServerProcess = _context.Process(target=function, args=arguments)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, sig: int, /) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, sig)

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (status := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(["forked"], timeout or 0)
        return status


class _Forked(_Called):
    def __init__(
        self, arguments: tuple[str, ...], env: dict[str, str], output: Path, errors: Path
    ) -> None:
        for file in (output, errors):
            file.touch()
        super().__init__(_become, (arguments, env, output.absolute(), errors.absolute()))


def _become(arguments: tuple[str, ...], env: dict[str, str], output: Path, errors: Path) -> None:
    """Be `python -m app <arguments>`, in the process just forked."""
    from app.__main__ import main  # late: it is for the other process

    for descriptor, file in ((1, output), (2, errors)):
        opened = os.open(file, os.O_WRONLY | os.O_APPEND)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(env)
    raise SystemExit(main(arguments))
