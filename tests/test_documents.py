"""What the written documents say is so: settings, operator's commands, events, samples that run."""

import re
import runpy
import time
from pathlib import Path

import pytest

from app.__main__ import COMMANDS
from app.commands import registry, signatures
from app.commands.definition import Told
from app.kernel.settings import NOT_FIELDS, PREFIX, Settings
from tests.sources import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
WEBHOOKS = (ROOT / "docs/webhooks.md").read_text(encoding="utf-8")


def test_the_readme_lists_every_setting_and_no_other() -> None:
    rows = re.findall(r"^\| (`ASSENT_.*?) \|", README, re.MULTILINE)
    told: set[str] = set()
    for row in rows:
        first, *more = re.findall(r"`(\w+)`|`(_\w+)`", row.replace("<NAME>", "X"))
        names = [first[0], *(name or suffix for name, suffix in more)]
        stem = names[0].rpartition("_")[0] if names[0].startswith("ASSENT_RATE") else ""
        told |= {
            "ASSENT_OIDC"
            if name.startswith(("ASSENT_OIDC", "__"))
            else "ASSENT_RATE" + name
            if name.startswith("_") and stem
            else name
            for name in names
        }

    assert told == {PREFIX + name.upper() for name in Settings.model_fields}
    assert all(name in README for name in NOT_FIELDS)


def test_the_readme_names_every_command_of_the_operator() -> None:
    told = set(re.findall(r"^    python -m app ([a-z-]+)", README, re.MULTILINE))

    assert told <= set(COMMANDS)
    assert "check-commands" in told


@pytest.mark.requirement("CMD-24")
def test_the_document_of_webhooks_lists_every_type_of_event() -> None:
    registry.discover()
    told: set[str] = set()
    for row in re.findall(r"^\| (`\w+\..*?) \|", WEBHOOKS, re.MULTILINE):
        stem = ""
        for name in re.findall(r"`([\w.]+)`", row):
            stem = stem if name.startswith(".") else name.rpartition(".")[0]
            told.add(stem + name if name.startswith(".") else name)
    declared = {
        each.type if isinstance(each, Told) else each
        for command in registry.declared().values()
        for each in (*command.events, *command.webhooks)
    }

    assert told == declared | {"assent.test"}


@pytest.mark.requirement("CMD-24")
def test_the_sample_tells_a_genuine_message_from_a_forged_or_old_one(tmp_path: Path) -> None:
    sample = re.search(r"```python\n(.*?)```", WEBHOOKS, re.DOTALL)
    assert sample
    (tmp_path / "sample.py").write_text(sample[1], encoding="utf-8")
    is_genuine = runpy.run_path(str(tmp_path / "sample.py"))["is_genuine"]
    secret, old, body, now = (
        signatures.new_secret(),
        signatures.new_secret(),
        b'{"a":1}',
        time.time(),
    )

    sent = signatures.headers([secret, old], "01J", int(now), body)

    assert is_genuine(secret, sent, body)
    assert is_genuine(old, sent, body)
    assert not is_genuine(signatures.new_secret(), sent, body)
    assert not is_genuine(secret, sent, b'{"a":2}')
    assert not is_genuine(secret, signatures.headers([secret], "01J", int(now) - 400, body), body)
