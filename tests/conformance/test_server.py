"""The official conformance suite of servers, both revisions, behind the product's own door."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.kernel import rates, settings
from app.kernel.rates import DEFAULTS, Rates
from app.mcp import server
from tests import node
from tests.conformance import fixtures, suite
from tests.conformance.proxy import proxied
from tests.mcp import connecting
from tests.mcp.connecting import NEW, OLD, Mcp
from tests.people import World

SCORED = {OLD: 30, NEW: 37}
# What asks for no tool, resource or prompt of a certain name.
PLAIN = {
    OLD: ("server-initialize", "ping", "tools-list", "server-sse-multiple-streams"),
    NEW: (
        "tools-list",
        "resources-list",
        "prompts-list",
        "caching",
        "dns-rebinding-protection",
        "http-header-validation",
        "server-sse-multiple-streams",
        "input-required-result-unsupported-methods",
    ),
}
PATIENCE_S = 240
NAMED = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")


@pytest.fixture
def mcp(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mcp]:
    """The product on a port; nobody counts how often the suite calls."""
    counted = Rates(dict.fromkeys(DEFAULTS, "100000/minute"))
    monkeypatch.setattr(rates, "of_process", lambda: counted)
    with connecting.served(world) as made:
        yield made


@pytest.mark.requirement("SEC-67")
@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("kind", ["sqlite"])  # the wire is the same on both
async def test_every_scored_scenario_passes(
    mcp: Mcp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    monkeypatch.setattr(server, "build", fixtures.build)

    said = await run(mcp, tmp_path, "--requirements", revision)

    scored, became = required(revision), outcomes(tmp_path)
    assert len(scored) == SCORED[revision]
    assert {name: became.get(name, ["it did not run"]) for name in scored} == {
        name: [] for name in scored
    }, said


@pytest.mark.requirement("SEC-67")
@pytest.mark.parametrize("revision", [OLD, NEW])
@pytest.mark.parametrize("kind", ["sqlite"])
async def test_the_plain_product_passes_what_asks_for_no_fixture(
    mcp: Mcp, tmp_path: Path, revision: str
) -> None:
    said = await run(mcp, tmp_path, "--requirements", revision)

    became = outcomes(tmp_path)
    assert {name: became[name] for name in PLAIN[revision]} == {
        name: [] for name in PLAIN[revision]
    }, said


async def run(mcp: Mcp, folder: Path, *arguments: str) -> str:
    """What the suite says of the door, which it reaches with alice's token."""
    acme = mcp.world.acme
    token = connecting.token(acme, acme["alice"])
    host = urlsplit(settings.current().origin).netloc
    with proxied(mcp.port or 0, host, token) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        try:
            command = suite.command("server", "--url", url, "-o", str(folder), *arguments)
        except node.NotInstallable as problem:
            pytest.skip(str(problem))
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(PATIENCE_S):
            said, _ = await process.communicate()
    return said.decode()


def required(revision: str) -> list[str]:
    """The scenarios of servers that the suite scores for a revision."""
    _node, entry = suite.command()
    text = (Path(entry).parents[1] / "requirements" / f"{revision}.yaml").read_text()
    section = text.partition("\nserver:\n")[2].partition("\n\n")[0]
    return [line.removeprefix("  - ") for line in section.splitlines()]


def outcomes(folder: Path) -> dict[str, list[str]]:
    """What failed of each scenario that ran."""
    found: dict[str, list[str]] = {}
    for file in folder.rglob("checks.json"):
        name = NAMED.sub("", file.parent.name).removeprefix("server-")
        checks = json.loads(file.read_text())
        found[name] = [each["errorMessage"] for each in checks if each["status"] == "FAILURE"]
    return found
