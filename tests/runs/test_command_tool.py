"""Commands as tools of agents: the pipeline's own answers, and nothing that goes past it."""

from dataclasses import replace
from typing import Any

import pytest
from sqlmodel import col, select

from app.audit.models import AuditEntry
from app.commands import approval_replacement, pipeline
from app.commands.approval_replacement import Replacement
from app.commands.call import Call
from app.commands.definition import Operation, Risk
from app.commands.outcome import Done as Ran
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import Busy
from app.runs import command_tool, offering, tools
from app.runs.command_tool import Approved, StillWaiting
from app.runs.errors import LeaseLost
from app.runs.outcome import Denied, Done, Expired, NotStarted, Refused, Suspended
from app.runs.run_models import Run
from app.runs.session import RunSession
from app.runs.states import CallState, WaitKind
from app.runs.tool import Prepared
from tests.commands.asking import Asking
from tests.commands.declaring import installed, writing
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio

CREATE, SUBMIT, REMIND = "expense-report-create", "expense-report-submit", "expense-report-remind"
TRIP = {"title": "Trip", "period": "2026-10"}


async def working(desks: Desks, text: str = "File my trip") -> RunSession:
    """An agent at work for alice, who let it call commands."""
    desks.enable()
    return await desks.at_work(text)


def about(report: str) -> dict[str, str]:
    """What a call about a report names."""
    return {"targetRecordId": report, "operationType": "UPDATE"}


def entries(desks: Desks, call_id: str) -> list[AuditEntry]:
    """What the trail has of one call."""
    query = select(AuditEntry).where(AuditEntry.call_id == call_id).order_by(col(AuditEntry.seq))
    return db.read_now(lambda session: list(session.exec(query)))


async def asked(desks: Desks, run: RunSession) -> tuple[Suspended, str]:
    """A call that waits for a person: a reminder leaves the house."""
    report = await desks.desk.submitted("alice", 5_000)
    waits = await desks.call(run, REMIND, **about(report))
    assert isinstance(waits, Suspended), waits
    return waits, report


def goes_on(run: RunSession, approval_id: str) -> Any:
    """How a call that waited for this approval goes on."""
    assert run.principal is not None
    return db.read_now(command_tool.after_waiting, run.principal, approval_id)


def resumed(run: RunSession, desks: Desks, approval_id: str) -> Prepared:
    """The newest call, made ready a second time after a person assented."""
    row = desks.calls()[-1]
    run.waited = {row.id: {"attempt": 2, "approval_id": approval_id}}
    proposed = desks.proposed(run, row.tool, anything="else")
    return tools.prepare(run, _again(proposed, row.id, row.ordinal))


def _again(proposed: Any, id: str, ordinal: int) -> Any:
    return replace(proposed, id=id, ordinal=ordinal)


@pytest.mark.requirement("RUN-93")
async def test_a_name_is_the_code_with_hyphens_and_never_longer_than_providers_take() -> None:
    long = "inventory." + "very_long_name_of_things." * 3 + "list"

    assert command_tool.name_of("expense.report.submit") == "expense-report-submit"
    assert len(command_tool.name_of(long)) == 64
    assert command_tool.name_of(long)[55] == "-"
    assert command_tool.name_of(long) != command_tool.name_of(long + "s")


@pytest.mark.requirement("RUN-93")
async def test_a_description_says_name_hint_risk_and_undo_in_the_persons_language(
    desks: Desks,
) -> None:
    run = await working(desks)
    found = db.read_now(command_tool.catalogue_of, run.principal)
    assert found is not None
    descriptor = found.one("expense.report.submit")

    english = command_tool.tool_for(descriptor, "en")
    chinese = command_tool.tool_for(descriptor, "zh-CN")

    told = descriptor.definition
    assert english.description.startswith(f"{told.display_name.en}: {told.agent_hint.en}")
    assert f"Risk {told.risk.value}." in english.description
    assert "expense-report-recall" in english.description
    assert told.display_name.zh in chinese.description
    assert "风险" in chinese.description
    assert english.schema == told.input_schema


@pytest.mark.requirement("RUN-37", "RUN-87")
async def test_a_command_runs_through_the_pipeline_and_its_entry_names_the_run(
    desks: Desks,
) -> None:
    run = await working(desks)

    done = await desks.call(run, CREATE, **TRIP)

    assert isinstance(done, Done)
    (row,) = desks.calls()
    (entry,) = entries(desks, f"{row.id}.1")
    assert (row.state, row.kind, row.command) == ("done", "command", "expense.report.create")
    assert (row.audit_seq, row.version) == (entry.seq, entry.version)
    assert row.timings
    assert (entry.outcome, entry.channel, entry.agent_id) == (
        "done",
        "run",
        desks.agent("expenses").id,
    )
    assert run.current_input is not None
    assert entry.run_id == run.claim.run_id
    told = done.data()
    assert told["record"]["version"] == 1
    assert told["undo"]["cmdCode"] == "expense.report.discard"
    assert told["result"]["number"].startswith("EXP-")


@pytest.mark.requirement("RUN-39")
async def test_a_refusal_is_the_calls_result_with_stage_reason_and_advice(desks: Desks) -> None:
    run = await working(desks)
    report = await desks.desk.draft("alice")
    run.facts = replace(run.facts, locale="zh-CN")

    await desks.call(run, "send_message", text="我现在提交。")
    refused = await desks.call(run, SUBMIT, **about(report))

    assert isinstance(refused, Refused)
    assert (refused.stage, refused.reason) == ("assert", "assertion_failed")
    assert refused.advice == "report_to_user"
    assert any("\u4e00" <= letter <= "\u9fff" for letter in refused.detail)
    assert desks.calls()[-1].state == CallState.FAILED
    done = await desks.call(run, CREATE, **TRIP)
    assert isinstance(done, Done)  # the batch goes on


@pytest.mark.requirement("RUN-39")
async def test_a_busy_database_is_a_refusal_to_try_later(
    desks: Desks, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await working(desks)

    async def busy(_call: Call) -> Ran:
        raise Busy

    monkeypatch.setattr(pipeline, "execute", busy)
    refused = await desks.call(run, CREATE, **TRIP)

    assert isinstance(refused, Refused)
    assert (refused.reason, refused.advice) == ("busy", "retry_later")


@pytest.mark.requirement("RUN-65")
async def test_the_command_of_a_replaced_worker_rolls_back(desks: Desks) -> None:
    run = await working(desks)
    run.tools = await offering.tools_of(run)
    prepared = tools.prepare(run, desks.proposed(run, CREATE, **TRIP))
    await tools.before(run, prepared)
    db.transact_now(_take_over, run)

    with pytest.raises(LeaseLost):
        await command_tool.run_command(run, prepared, "expense.report.create", prepared.given)

    assert entries(desks, prepared.command_call_id) == []


def _take_over(work: Work, run: RunSession) -> None:
    row = work.session.get_one(Run, (run.claim.tenant_id, run.claim.run_id))
    row.claim_token = "another"
    work.session.add(row)


async def test_the_trail_names_the_message_by_which_the_person_was_told(desks: Desks) -> None:
    run = await working(desks)
    report = await desks.desk.draft("alice", 5_000)

    told = await desks.call(run, "send_message", text="I submit it now.")
    done = await desks.call(run, SUBMIT, **about(report))

    assert isinstance(told, Done)
    assert isinstance(done, Done)
    (entry,) = entries(desks, f"{desks.calls()[-1].id}.1")
    assert entry.brief == told.result["message_id"]


@pytest.mark.requirement("RUN-89")
async def test_a_call_that_needs_assent_waits_for_its_approval_with_the_batch_open(
    desks: Desks,
) -> None:
    run = await working(desks)

    waits, report = await asked(desks, run)

    row = desks.calls()[0]
    approval = Asking(desks.desk).row(waits.ref or "")
    assert (waits.kind, waits.call_id, waits.is_open) == (WaitKind.APPROVAL, row.id, True)
    assert waits.due_at == approval.expires_at
    assert (row.state, row.approval_id) == ("waiting", approval.id)
    assert (approval.tool_call_id, approval.run_id) == (row.id, run.claim.run_id)
    assert approval.target_id == report
    assert goes_on(run, approval.id) == StillWaiting(approval.id, approval.expires_at)


@pytest.mark.requirement("RUN-89", "F-26")
async def test_what_was_assented_to_runs_with_the_stored_arguments_and_no_others(
    desks: Desks,
) -> None:
    run = await working(desks)
    waits, report = await asked(desks, run)
    asking = Asking(desks.desk)
    row = asking.row(waits.ref or "")

    await asking.decide("alice", row)
    assert goes_on(run, row.id) == Approved(row.id)
    prepared = resumed(run, desks, row.id)  # the model's text now says something else
    done = await command_tool.run_command(
        run, prepared, "expense.report.discard", {"targetRecordId": "else"}
    )

    assert isinstance(done, Done)
    assert done.record is not None
    assert done.record["id"] == report
    assert asking.row(row.id).state == "consumed"
    assert [each.outcome for each in entries(desks, prepared.command_call_id)] == ["done"]


@pytest.mark.requirement("RUN-89", "F-39")
async def test_a_denial_is_told_word_for_word_with_the_name(desks: Desks) -> None:
    run = await working(desks)
    waits, _ = await asked(desks, run)
    asking = Asking(desks.desk)

    await asking.decide("alice", asking.row(waits.ref or ""), "deny", reason="Not on a Sunday!")

    name = desks.world.acme["alice"].display_name
    assert goes_on(run, waits.ref or "") == Denied(name, "Not on a Sunday!")


@pytest.mark.requirement("RUN-89", "F-21")
@pytest.mark.parametrize(
    ("state", "result"),
    [
        ("expired", Expired()),
        ("cancelled", NotStarted("approval_cancelled")),
        ("superseded", NotStarted("approval_superseded")),
    ],
)
async def test_nothing_but_an_explicit_assent_lets_a_call_run(
    desks: Desks, state: str, result: object
) -> None:
    run = await working(desks)
    waits, _ = await asked(desks, run)
    Asking(desks.desk).set(waits.ref or "", state=state)

    assert goes_on(run, waits.ref or "") == result
    assert goes_on(run, "01JDXP5Y8GZ0000000000000AB") == NotStarted("approval_gone")


@pytest.mark.requirement("RUN-89")
async def test_a_request_that_was_changed_waits_on_and_its_result_says_who_changed_what(
    desks: Desks,
) -> None:
    desks.enable("mia")
    run = await desks.at_work(who="mia")
    report = await desks.desk.approved("alice", 5_000)
    await desks.call(run, "send_message", text="I void it.")
    waits = await desks.call(run, "expense-report-void", **about(report), reason="Twice")
    assert isinstance(waits, Suspended), waits
    asking = Asking(desks.desk)
    old = asking.row(waits.ref or "")
    changed = {**old.arguments, "reason": "It was filed twice."}

    new = await approval_replacement.attempt(
        desks.desk.person("mia"), old.id, Replacement(digest=old.digest, input=changed)
    )
    assert goes_on(run, old.id) == StillWaiting(new.id, new.expires_at)
    await asking.decide("mia", new)
    assert goes_on(run, old.id) == Approved(new.id)
    done = await command_tool.run_command(run, resumed(run, desks, new.id), "x", {})

    assert isinstance(done, Done)
    told = done.data()
    assert told["changed_by"] == "Mia"
    assert told["changed"] == ["reason"]


@pytest.mark.requirement("RUN-99")
async def test_of_somebody_elses_request_nothing_is_known(desks: Desks) -> None:
    run = await working(desks)
    waits, _ = await asked(desks, run)
    assert run.principal is not None
    stranger = replace(run.principal, user_id=desks.world.acme["bob"].id)

    found = db.read_now(command_tool.after_waiting, stranger, waits.ref or "")

    assert found == NotStarted("approval_gone")


async def test_an_effect_outside_leaves_the_call_open_until_it_is_known(desks: Desks) -> None:
    desks.enable()
    send = writing("desk.ticket.note", operation=Operation.EXTERNAL, risk=Risk.L3)
    with installed(send):
        desks.world.give(desks.world.acme["alice"], "clerk", grants={"desk.ticket.write": "all"})
        run = await desks.at_work()
        asked = await desks.call(run, "desk-ticket-note", subject="Printer")
        assert isinstance(asked, Suspended), asked
        asking = Asking(desks.desk)
        await asking.decide("alice", asking.row(asked.ref or ""))

        waits = await command_tool.run_command(run, resumed(run, desks, asked.ref or ""), "x", {})

        assert isinstance(waits, Suspended), waits
        row = desks.calls()[0]
        assert (waits.kind, waits.ref, waits.is_open) == (WaitKind.CALL, f"{row.id}.2", True)


async def test_without_anybody_to_act_for_there_is_no_command(desks: Desks) -> None:
    desks.outsider("tina")
    run = await desks.at_work(who="tina")
    run.tools = await offering.tools_of(run)
    tool = run.tools["send_message"]
    prepared = Prepared(call=desks.proposed(run, "x"), tool=tool, arguments={})

    refused = await command_tool.run_command(run, prepared, "expense.report.create", TRIP)

    assert isinstance(refused, Refused)
    assert refused.reason == "not_found"
