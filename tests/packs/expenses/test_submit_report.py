"""`expense.report.submit`: to whom a report goes, and which are not ready for it."""

import pytest

from tests.packs.expenses.desk import CARD, PERIOD, Desk

SUBMIT = "expense.report.submit"


@pytest.mark.requirement("CMD-25")
async def test_a_submitted_report_waits_for_the_manager_of_its_organisation(desk: Desk) -> None:
    report_id = await desk.draft("alice", 4_200)

    done = await desk.run("alice", SUBMIT, report_id, note="October")

    report = await desk.report(report_id)
    assert done.result["approverName"] == "Mia"
    assert report["state"] == "submitted"
    assert report["approverName"] == "Mia"
    assert report["note"] == "October"
    assert report["submittedAt"]


async def test_what_is_not_ready_is_not_submitted(desk: Desk) -> None:
    empty = await desk.draft("alice")
    unproved = await desk.draft("alice", 20_001, receipts=False)
    just_so = await desk.draft("alice", 20_000, receipts=False)
    large = await desk.draft("alice", 500_000)

    no_line = await desk.refused("alice", SUBMIT, empty)
    no_receipt = await desk.refused("alice", SUBMIT, unproved)
    no_note = await desk.refused("alice", SUBMIT, large)
    await desk.run("alice", SUBMIT, just_so)
    await desk.run("alice", SUBMIT, large, note="The fair")
    twice = await desk.refused("alice", SUBMIT, large, note="The fair")

    assert (no_line.stage, no_line.reason) == ("assert", "assertion_failed")
    assert no_line.words("en") == "A report needs a line."
    assert (no_receipt.stage, no_receipt.words("zh-CN")) == (
        "assert",
        "金额超过 200.00 的明细要附发票。",
    )
    assert (no_note.stage, no_note.reason) == ("cross_field_validation", "cross_field_failed")
    assert [error.pointer for error in no_note.errors] == ["note"]
    assert (twice.stage, twice.reason) == ("state_check", "illegal_state")
    assert twice.facts["currentState"] == "submitted"


async def test_only_the_owner_submits_a_report(desk: Desk) -> None:
    report_id = await desk.draft("alice", 4_200)
    desk.world.give(
        desk.acme["bob"], "clerk", desk.acme.root, grants={"expense.report.submit": "all"}
    )

    stranger = await desk.refused("mia", SUBMIT, report_id)
    helper = await desk.refused("bob", SUBMIT, report_id)

    assert (stranger.stage, stranger.reason) == ("authorize", "record_not_found")
    assert (helper.stage, helper.reason) == ("assert", "assertion_failed")


async def test_nobody_is_their_own_approver(desk: Desk) -> None:
    """Mia manages Shanghai; her own report goes to who stands above, and to nobody in Globex."""
    hers = await desk.draft("mia", 4_200)

    done = await desk.run("mia", SUBMIT, hers)
    gus = desk.world.person(desk.globex_gus)
    made = await desk.run(
        gus, "expense.report.create", title="Taxi", period=PERIOD, payeeAccount=CARD
    )
    theirs = str(made.result["reportId"])
    desk_line = {
        "spentOn": "2026-10-14",
        "category": "transport",
        "description": "Taxi",
        "amountMinor": 900,
    }
    await desk.run(gus, "expense.line.add", theirs, **desk_line)
    abroad = await desk.run(gus, SUBMIT, theirs)

    admins = {desk.acme["ada"].id, desk.acme["olga"].id}
    assert done.result["approverId"] in admins
    assert abroad.result["approverId"] == desk.world.globex["gina"].id


async def test_without_anybody_to_decide_it_nothing_is_submitted(desk: Desk) -> None:
    gina = desk.world.person(desk.world.globex["gina"])
    made = await desk.run(gina, "expense.report.create", title="Taxi", period=PERIOD)
    report_id = str(made.result["reportId"])
    line = {
        "spentOn": "2026-10-14",
        "category": "transport",
        "description": "Taxi",
        "amountMinor": 900,
    }
    await desk.run(gina, "expense.line.add", report_id, **line)

    refused = await desk.refused(gina, SUBMIT, report_id)

    assert (refused.stage, refused.reason) == ("handler", "no_approver")
    assert "organisation" in refused.words("en")
    assert refused.words("zh-CN") != refused.words("en")


@pytest.mark.requirement("CMD-25")
async def test_who_approved_a_report_once_does_not_submit_it(desk: Desk) -> None:
    """The owner may not have been the one who approved it, wherever it stands now."""
    report_id = await desk.approved("alice", 4_200)
    await desk.run("mia", "expense.report.reopen", report_id)
    await desk.run("mia", "expense.report.reject", report_id, reason="Again, please")
    desk.world.give(
        desk.acme["mia"], "clerk", desk.acme.root, grants={"expense.report.submit": "all"}
    )

    refused = await desk.refused("mia", SUBMIT, report_id)

    assert (refused.stage, refused.reason) == ("sod_check", "sod_conflict")
    assert refused.facts["conflictsWith"] == "expense.report.approve"
    await desk.run("alice", SUBMIT, report_id)
