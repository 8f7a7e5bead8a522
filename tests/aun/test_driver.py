"""The measure of the gateway: the conformance driver, with two unmodified stock clients."""

import hashlib
from pathlib import Path

from tests.aun import stock

DIGEST = "cd22b722992dd9bd7b1eeb8adcdca19636f8b9922dc3391749cf00384236b0dd"


def test_every_check_of_the_conformance_driver_passes(database: str, tmp_path: Path) -> None:
    with stock.instance(tmp_path / "server", database) as instance:
        done = instance.run(
            tmp_path / "home",
            str(stock.INTEROP / "driver.py"),
            "--domain",
            stock.DOMAIN,
            "--tls-port",
            str(instance.tls_port),
            "--http-port",
            str(instance.server.port),
            "--root-ca",
            str(instance.roots),
            "--client-log",
            str(tmp_path / "client.log"),
        )

    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert failed == [], instance.server.log()[-4_000:]
    assert done.stdout.splitlines()[-1] == "46 passed, 0 failed", done.stdout + done.stderr
    assert done.returncode == 0


def test_the_driver_lies_here_as_it_came() -> None:
    assert hashlib.sha256((stock.INTEROP / "driver.py").read_bytes()).hexdigest() == DIGEST
