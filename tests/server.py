"""The real application in a process of its own, as `bin/run` starts it."""

import http.client
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests import processes
from tests.processes import Process

START_LIMIT_S = 180  # where all cores are at other work, too
STOP_LIMIT_S = 20


class DidNotStart(Exception):
    """The server ended, or was not ready in time; the text is the end of its log."""


class RunningServer:
    """One server on `http://localhost:<free port>`; a context manager that starts and stops it.

    Args:
        data: its data folder; the log is written beside what it keeps there.
        database_url: its database, a SQLite file in `data` where it is left out.
        env: further `ASSENT_*` variables; those of the caller do not reach the server.
        arguments: for `python -m app`, such as `--demo`.
        afresh: start a Python for it; otherwise one that has loaded the product is forked.
    """

    def __init__(
        self,
        data: Path,
        database_url: str = "",
        *,
        env: dict[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        afresh: bool = False,
    ) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.data = data
        self.port = free_port()
        self.base_url = f"http://localhost:{self.port}"
        self.env = {
            **environment(),
            "ASSENT_HOST": "127.0.0.1",
            "ASSENT_PORT": str(self.port),
            "ASSENT_DATA_DIR": str(data),
            **({"ASSENT_DATABASE_URL": database_url} if database_url else {}),
            **(env or {}),
        }
        self._arguments = arguments
        self._log = data / "server.log"
        self._afresh = afresh
        self._process: Process | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._running().pid

    def start(self) -> None:
        """Start it and return when `/readyz` answers 200.

        Raises:
            DidNotStart: it ended, or was not ready in time.
        """
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start it and return at once, as for two that start together."""
        assert self._process is None, "it runs already"
        self._process = processes.start(
            *self._arguments,
            env=self.env,
            output=self._log,
            errors=self._log,
            afresh=self._afresh,
        )

    def wait_until_ready(self) -> None:
        """Return when `/readyz` answers 200.

        Raises:
            DidNotStart: it ended, or was not ready in time.
        """
        process = self._running()
        deadline = time.monotonic() + START_LIMIT_S
        while not self.is_ready():
            if time.monotonic() > deadline:
                self.kill()
                raise DidNotStart(self._end_of_log())
            try:
                process.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            self._process = None
            raise DidNotStart(self._end_of_log())

    def is_ready(self) -> bool:
        """Whether `/readyz` answers 200 now."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/readyz", headers={"Host": f"localhost:{self.port}"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """End it as a power cut would: SIGKILL."""
        process, self._process = self._running(), None
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Ask it to end (SIGTERM), and wait for it; harmless when it has ended.

        Raises:
            subprocess.TimeoutExpired: it did not end, and was killed.
        """
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def restart(self) -> None:
        """Stop it and start it again, on the same port and data."""
        self.stop()
        self.start()

    def command(self, *arguments: str) -> str:
        """What `python -m app <arguments>` prints, with the settings of this server.

        Raises:
            subprocess.CalledProcessError: the command failed.
        """
        done = processes.run(*arguments, env=self.env)
        done.check_returncode()
        return done.stdout

    def log(self) -> str:
        """All it has written to its output so far, of all its lives."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _running(self) -> Process:
        assert self._process is not None, "it is not running"
        return self._process

    def _end_of_log(self) -> str:
        return self.log()[-4_000:] or "it wrote nothing"


def environment() -> dict[str, str]:
    """The environment a process of the product starts in: no setting of the caller's, and it may
    keep its compiled code, without which each start compiles everything again.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ASSENT_") and name != "PYTHONDONTWRITEBYTECODE"
    }


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
