"""`run_command`: the same call as a command's own tool makes."""

import pytest

from app.runs import command_tool, offering, toolbox, tools
from app.runs.outcome import Done, Refused
from app.runs.session import RunSession
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


async def prepared_run(desks: Desks) -> RunSession:
    """A run that has the tool, as one with a large catalogue has."""
    from dataclasses import replace
    from functools import partial

    from app.kernel import db

    desks.enable()
    run = await desks.at_work()
    found = db.read_now(command_tool.catalogue_of, run.principal)
    tool = toolbox.discover()["run_command"]
    reaches = partial(offering._reached, found)
    run.tools = {**await offering.tools_of(run), tool.name: replace(tool, reaches=reaches)}
    return run


@pytest.mark.requirement("RUN-93", "RUN-94")
async def test_a_command_by_its_code_is_recorded_as_that_command(desks: Desks) -> None:
    run = await prepared_run(desks)

    done = await desks.call(
        run,
        "run_command",
        code="expense.report.create",
        arguments={"title": "Trip", "period": "2026-10"},
    )

    assert isinstance(done, Done)
    (row,) = desks.calls()
    assert (row.tool, row.kind, row.command) == (
        "run_command",
        "command",
        "expense.report.create",
    )
    assert done.result["number"].startswith("EXP-")


@pytest.mark.requirement("RUN-93")
async def test_what_is_not_in_the_catalogue_looks_like_what_does_not_exist(desks: Desks) -> None:
    run = await prepared_run(desks)

    foreign = await desks.call(run, "run_command", code="expense.payment.send", arguments={})
    unknown = await desks.call(run, "run_command", code="no.such.thing", arguments={})

    for each in (foreign, unknown):
        assert isinstance(each, Refused)
        assert (each.stage, each.reason, each.advice) == (
            "load",
            "unknown_command",
            "do_not_retry",
        )


@pytest.mark.requirement("RUN-39")
async def test_arguments_that_do_not_fit_are_refused_by_the_pipeline(desks: Desks) -> None:
    run = await prepared_run(desks)

    refused = await desks.call(
        run, "run_command", code="expense.report.create", arguments={"title": 1}
    )

    assert isinstance(refused, Refused)
    assert refused.stage == "schema_validate"
    assert refused.facts["fields"]


def test_the_record_masks_what_the_command_calls_secret() -> None:
    from app.runs import redacting

    arguments = {"code": "x.y", "arguments": {"card": "6222", "of": [{"pin": "1"}]}}
    masked = redacting.masked(arguments, {"arguments/card", "arguments/of/*/pin"})

    assert "6222" not in str(masked)
    assert masked["arguments"]["of"] == [{"pin": redacting.MASK}]
    assert tools.KEY == "arguments"
