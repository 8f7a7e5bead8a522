"""`python -m app check-commands`: every definition, of packs and of tenants."""

import json
from pathlib import Path

import pytest

from tests.operator.test_commands import app

BROKEN = '''from pydantic import Field

from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text


class Nothing(Input):
    """Nothing to say."""

    why: str = Field("", description="Why.")


COMMAND = CommandDefinition(
    code="probe.thing.look",
    display_name=Text(en="Look", zh="查看"),
    description=Text(en="Looks.", zh="查看。"),
    agent_hint=Text(en="To look.", zh="需要查看时使用。"),
    risk=Risk.L0,
    idempotent=True,
    reversible=False,
    operation=Operation.READ,
    input=Nothing,
    example={},
    permission="probe.thing.read",
)
'''
PACK = """from app.commands.definition import Text
from app.commands.pack import Pack
from app.identity.permissions import Declared

PACK = Pack(
    code="probe",
    name=Text(en="Probe", zh="探针"),
    permissions=(Declared("probe.thing.read", "probe", "Look", "查看"),),
)
"""


@pytest.mark.requirement("CMD-2")
def test_what_is_not_ready_is_named_and_what_ships_is_ready(tmp_path: Path) -> None:
    packs, data = tmp_path / "packs", tmp_path / "data"
    commands = packs / "probe" / "commands"
    commands.mkdir(parents=True)
    (packs / "probe" / "__init__.py").write_text(PACK, encoding="utf-8")
    (commands / "__init__.py").write_text("", encoding="utf-8")
    (commands / "look_thing.py").write_text(BROKEN, encoding="utf-8")
    database = f"sqlite:///{tmp_path / 'assent.db'}"

    shipped = app("check-commands", data=data, database=database)
    told = app(
        *("check-commands", "--language", "zh-CN"),
        data=data,
        database=database,
        ASSENT_PACKS_DIR=str(packs),
    )
    report = app(
        *("check-commands", "--json"),
        data=data,
        database=database,
        ASSENT_PACKS_DIR=str(packs),
    )

    assert shipped.returncode == 0, shipped.stdout + shipped.stderr
    assert "definitions checked, 0 with errors" in shipped.stdout
    assert told.returncode == 1
    assert "probe.thing.look (reversible): 只读命令总是可撤销的。" in told.stdout
    assert report.returncode == 1
    said = json.loads(report.stdout)
    assert said["errors"] == 1
    assert said["checked"] > 20
    (finding,) = [each for each in said["findings"] if each["severity"] == "error"]
    assert (finding["cmdCode"], finding["finding"]) == ("probe.thing.look", "l0_irreversible")
    assert set(finding["says"]) == {"en", "zh-CN"}
