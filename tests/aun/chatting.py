"""The stock client as a process that somebody types into (`scripts/chat.py`)."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.aun import stock
from tests.aun.stock import Instance

SCRIPT = Path(__file__).parent / "scripts" / "chat.py"
LONGEST_S = 150


class Client:
    """The stock client's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def told(self, kind: str) -> dict[str, Any]:
        """The next line of a kind."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            assert "undecryptable" not in said, said
            if kind in said:
                return dict(said)
        raise AssertionError(f"the client ended before it told {kind}")

    def send(self, to: str, words: str) -> dict[str, Any]:
        """Send, and return what the client was answered."""
        self.line(json.dumps({"to": to, "payload": {"type": "text", "text": words}}))
        return self.told("sent")

    def line(self, text: str = "") -> None:
        """Type a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()


@contextmanager
def connected(instance: Instance, folder: Path, name: str) -> Iterator[Client]:
    """A client of an agent's AID, which takes everything in its order."""
    with started(instance, folder, name) as client:
        client.told("ready")
        yield client


@contextmanager
def started(instance: Instance, folder: Path, name: str, *more: str) -> Iterator[Client]:
    """The same before it is connected."""
    with (
        (folder / f"{name}.log").open("wb") as log,
        subprocess.Popen(
            [stock.python(), str(SCRIPT), f"{name}.{stock.DOMAIN}", "agent", *more],
            env=instance.environment(folder / name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        too_long = threading.Timer(LONGEST_S, process.kill)
        too_long.start()
        try:
            yield Client(process)
        finally:
            process.kill()
            too_long.cancel()
