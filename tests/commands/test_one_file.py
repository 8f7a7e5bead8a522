"""Adding a command is one new file: found in the catalogue, as a form, and with its audit.

The file is the one of docs/packs.md.
"""

from pathlib import Path

import pytest

from app.commands import publishing, registry
from app.kernel import db
from tests.people import World
from tests.sources import ROOT

_DOCUMENT = (ROOT / "docs/packs.md").read_text(encoding="utf-8")
FILE = _DOCUMENT.partition("flag_report.py`:\n```python\n")[2].partition("```")[0]


@pytest.mark.requirement("CMD-25")
async def test_a_command_is_one_file(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "expenses" / "commands"
    folder.mkdir(parents=True)
    (folder / "flag_report.py").write_text(FILE, encoding="utf-8")
    alice = world.acme["alice"]
    try:
        registry.discover(tmp_path)
        db.transact_now(publishing.sync, world.acme.id)
        async with world.client(alice) as browser:
            made = await browser.post(
                "/v1/commands/expense.report.create/calls",
                json={"input": {"title": "October", "period": "2026-10"}},
            )
            target = made.json()["record"]["id"]
            described = await browser.get("/v1/commands/expense.report.flag")
            page = await browser.get("/commands/expense.report.flag")
            wanted = {"targetRecordId": target, "operationType": "UPDATE", "colour": "blue"}
            done = await browser.post(
                "/v1/commands/expense.report.flag/calls", json={"input": wanted}
            )
            trail = await browser.get("/audit", params={"command": "expense.report.flag"})
    finally:
        registry.discover()

    assert described.json()["inputSchema"]["properties"]["colour"]["enum"] == [
        "red",
        "amber",
        "blue",
    ]
    assert "What colour the flag has." in page.text
    assert done.status_code == 200, done.text
    assert done.json()["undo"]["cmdCode"] == "expense.report.update"
    assert "expense.report.flag" in trail.text
