"""The tools of a turn: the catalogue of that moment, never another list."""

from dataclasses import replace

import pytest

from app.commands.definition import CommandDefinition
from app.identity import delegations
from app.kernel import db
from app.runs import command_tool, offering, toolbox
from app.runs.models.protocol import Entry
from app.runs.session import RunSession
from app.runs.states import CallKind, EntryKind
from tests.commands.declaring import command, installed
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio

MANY = ("tickets", "printers", "chairs", "desks", "lamps", "doors", "keys", "phones", "plants")


def many(number: int) -> list[CommandDefinition]:
    """So many commands about nine kinds of things."""
    return [
        command(f"desk.{MANY[count % len(MANY)]}.list_{count:03}", permission="desk.ticket.read")
        for count in range(number)
    ]


def reads_tickets(desks: Desks) -> None:
    """Let alice see tickets, now that there are some."""
    desks.world.give(desks.world.acme["alice"], "reader", grants={"desk.ticket.read": "all"})


async def commands_of(run: RunSession) -> set[str]:
    """The commands that are tools of their own."""
    tools = await offering.tools_of(run)
    return {tool.descriptor.code for tool in tools.values() if tool.descriptor is not None}


@pytest.mark.requirement("RUN-93")
async def test_a_turn_has_what_the_principals_catalogue_has_at_that_moment(desks: Desks) -> None:
    live = desks.enable()
    run = await desks.at_work()
    found = db.read_now(command_tool.catalogue_of, run.principal)
    assert found is not None

    codes = await commands_of(run)
    db.transact_now(delegations.revoke, desks.person("alice"), live)
    run.principal = replace(run.principal, scopes=frozenset()) if run.principal else None
    afterwards = await commands_of(run)

    assert codes == set(found.by_code)
    assert "expense.report.submit" in codes
    assert afterwards == set()


@pytest.mark.requirement("RUN-93")
async def test_what_is_for_people_only_is_no_tool_in_either_form(desks: Desks) -> None:
    desks.enable()
    with installed(
        command(), command("desk.ticket.secret", people_only=True), only=desks.tenant_id
    ):
        reads_tickets(desks)
        run = await desks.at_work()
        tools = await offering.tools_of(run)

        assert "desk-ticket-list" in tools
        assert "desk-ticket-secret" not in tools


@pytest.mark.requirement("RUN-93")
async def test_without_a_delegation_or_a_principal_there_is_no_command(desks: Desks) -> None:
    desks.outsider("tina")
    nobody = await desks.at_work(who="tina")
    person = await desks.at_work(who="alice")

    for run in (nobody, person):
        tools = await offering.tools_of(run)
        assert await commands_of(run) == set()
        assert not {"read_record", "search_commands", "run_command", "delegate"} & set(tools)
        assert {"send_message", "finish_silently", "await_message"} <= set(tools)
    assert nobody.principal is None
    assert "task_list" not in await offering.tools_of(nobody)


@pytest.mark.requirement("RUN-93")
async def test_above_forty_a_search_one_tool_for_all_and_the_twelve_that_fit(
    desks: Desks,
) -> None:
    desks.enable()
    with installed(*many(41), only=desks.tenant_id):
        reads_tickets(desks)
        run = await desks.at_work("Which lamps are there?")
        tools = await offering.tools_of(run)
        codes = await commands_of(run)

        assert {"search_commands", "run_command"} <= set(tools)
        assert 0 < len(codes) <= offering.BEST
        assert any(code.startswith("desk.lamps.") for code in codes)
        reaches = tools["run_command"].reaches
        assert reaches is not None
        assert reaches({"code": "desk.chairs.list_002"}) is not None
        assert reaches({"code": "desk.chairs.remove"}) is None
    with installed(*many(40), only=desks.tenant_id):
        assert len(await commands_of(run)) == 40
        assert "search_commands" not in await offering.tools_of(run)


@pytest.mark.requirement("RUN-93", "RUN-54")
@pytest.mark.parametrize("purpose", ["schedule", "task"])
async def test_a_run_without_a_message_has_the_twelve_that_fit_what_it_is_for(
    desks: Desks, purpose: str
) -> None:
    desks.enable()
    with installed(*many(41), only=desks.tenant_id):
        reads_tickets(desks)
        run = await desks.at_work()
        run.current_input = None
        for kind, text in ((purpose, "Which lamps are there?"), ("timer", "Doors")):
            seq, body = run.transcript.next_seq, {"kind": kind, "text": text}
            run.transcript.add(Entry(seq=seq, kind=EntryKind.NOTE, body=body))

        codes = await commands_of(run)

        assert 0 < len(codes) <= offering.BEST
        assert any(code.startswith("desk.lamps.") for code in codes)


@pytest.mark.requirement("RUN-95")
def test_every_file_of_the_toolbox_is_a_tool_of_that_name() -> None:
    found = toolbox.discover()

    assert len(found) == 12
    assert {name for name, tool in found.items() if tool.waits} == {
        "await_approval",
        "await_message",
        "await_timer",
        "finish_silently",
    }
    assert {tool.effect for tool in found.values()} <= {"none", "local"}
    assert found["delegate"].kind is CallKind.DELEGATE
    for tool in found.values():
        assert tool.schema["additionalProperties"] is False


async def test_a_model_sees_name_schema_and_what_waits(desks: Desks) -> None:
    desks.enable()
    run = await desks.at_work()

    shown = {each.name: each for each in offering.offered(await offering.tools_of(run))}

    assert shown["await_timer"].waits
    submit = shown["expense-report-submit"]
    assert submit.descriptor is not None
    assert "targetRecordId" in submit.schema["properties"]
