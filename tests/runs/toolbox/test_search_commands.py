"""`search_commands`: out of the principal's own catalogue, the best first."""

import pytest

from app.runs import command_tool
from app.runs.outcome import Done
from app.runs.tool import Prepared
from app.runs.toolbox import search_commands
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


async def search(desks: Desks, run: object, query: str, **more: object) -> list[str]:
    """The codes that are found."""
    given = {"query": query, **more}
    call = desks.proposed(run, "search_commands", **given)  # type: ignore[arg-type]
    prepared = Prepared(call=call, tool=search_commands.TOOL, arguments=given)
    done = await search_commands.run(run, prepared)  # type: ignore[arg-type]
    assert isinstance(done, Done)
    return [each["code"] for each in done.result["commands"]]


@pytest.mark.requirement("RUN-93", "RUN-94")
async def test_words_find_commands_in_both_languages(desks: Desks) -> None:
    desks.enable()
    run = await desks.at_work()

    english = await search(desks, run, "submit the expense report")
    chinese = await search(desks, run, "提交报销单", limit=3)

    assert english[0] == chinese[0] == "expense.report.submit"
    assert len(chinese) <= 3


@pytest.mark.requirement("RUN-93")
async def test_nothing_is_found_that_is_not_in_the_catalogue(desks: Desks) -> None:
    desks.enable()
    run = await desks.at_work()
    nobody = await desks.at_work(who="bob")

    found = await offering_codes(run)
    assert set(await search(desks, run, "approve pay void report budget")) <= found
    assert await search(desks, nobody, "submit the expense report") == []


async def offering_codes(run: object) -> set[str]:
    """What the catalogue has."""
    from app.kernel import db

    found = db.read_now(command_tool.catalogue_of, run.principal)  # type: ignore[attr-defined]
    return set(found.by_code) if found else set()
