"""The stock client's own command line, as somebody at a terminal uses it."""

import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from tests.aun import stock
from tests.aun.stock import Instance

PATIENCE_S = 60


@dataclass
class Terminal:
    """One person's terminal: a home folder with a profile that trusts the server's root."""

    instance: Instance
    home: Path
    name: str

    @property
    def aid(self) -> str:
        """Whom the profile stands for."""
        return f"{self.name}.{stock.DOMAIN}"

    def ready(self) -> Self:
        """Put the server's root where the command line looks for more of them."""
        roots = self.home / ".aun" / "profiles" / "default" / "CA" / "root" / "trust-roots.pem"
        roots.parent.mkdir(parents=True)
        roots.write_text(self.instance.roots.read_text())
        return self

    def run(self, *arguments: str) -> Any:
        """What `aun --json ...` prints, when it ends well."""
        done = subprocess.run(
            [self._program(), "--json", *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, (
            arguments,
            done.stdout,
            done.stderr,
            self.instance.server.log()[-2_000:],
        )
        return json.loads(done.stdout)

    @contextmanager
    def listening(self) -> Iterator[Callable[[str], None]]:
        """`aun listen` for a while; yields what reads on until some words were printed."""
        running = subprocess.Popen(
            [self._program(), "listen"],
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        too_long = threading.Timer(PATIENCE_S, running.kill)
        too_long.start()
        output = running.stdout
        assert output is not None

        def hears(words: str) -> None:
            said = []
            for line in output:
                said.append(line)
                if words in line:
                    return
            raise AssertionError("".join(said))

        try:
            hears("Listening")
            yield hears
            running.send_signal(signal.SIGINT)
            rest = output.read()
            assert running.wait() == 0, rest
        finally:
            too_long.cancel()
            running.kill()
            running.wait()
            output.close()

    def _program(self) -> str:
        return str(stock.python().with_name("aun"))

    def _environment(self) -> dict[str, str]:
        return {**self.instance.environment(self.home), "AUN_CLI_SESSION_ID": self.name}


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    with stock.instance(tmp_path_factory.mktemp("server")) as running:
        yield running


def test_two_people_use_every_everyday_command(instance: Instance, tmp_path: Path) -> None:
    alice = Terminal(instance, tmp_path / "alice", "alice").ready()
    bob = Terminal(instance, tmp_path / "bobby", "bobby").ready()

    for who in (alice, bob):
        assert who.run("register", who.aid, "--type", "human")["status"] == "registered"
        assert who.run("login", who.aid) == {"status": "authenticated", "aid": who.aid}
    status = alice.run("status")
    assert (status["aid"], status["state"]) == (alice.aid, "ready")
    assert status["gateway"].startswith(f"wss://gateway.{stock.DOMAIN}/")
    assert alice.run("ping", bob.aid)["results"]
    checks = alice.run("doctor")
    assert checks["passed"] == checks["total"], checks

    for words, options in (("sealed words", ()), ("plain words", ("--no-encrypt",))):
        sent = alice.run("send", bob.aid, words, *options)
        assert sent["status"] in {"sent", "delivered"}
    pulled = bob.run("pull", "--from", alice.aid)
    assert [row["payload"]["text"] for row in pulled] == ["sealed words", "plain words"]

    with bob.listening() as hears:
        alice.run("send", bob.aid, "said while listening")
        hears("said while listening")

    unnamed = alice.run("group", "create", "Tea", "--members", bob.aid)
    named = alice.run("group", "create", "Coffee", "--group-name", "coffee")
    assert unnamed["group"]["name"] == "Tea"
    assert named["group"]["group_aid"] == f"coffee.{stock.DOMAIN}"
    assert {row["name"] for row in alice.run("group", "list")} == {"Tea", "Coffee"}

    card = alice.run("agentmd", "download", f"olga.{stock.DOMAIN}")
    assert "olga" in card["content"]
