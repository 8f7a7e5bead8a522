"""What `--demo` shows of expenses, held against the books."""

from collections import Counter

import pytest
from sqlmodel import Session, select

from app.audit.models import AuditEntry
from app.commands import registry
from app.identity import demo
from app.kernel import db, settings
from app.packs.expenses.models import Budget, Line, Payment, Receipt, Report, ReportState
from tests import people


@pytest.mark.requirement("CMD-25")
async def test_the_demo_has_forty_one_reports_in_every_state_that_add_up(opened: str) -> None:
    with people.ready():
        registry.import_demos()
        await demo.seed(settings.current())

        reports = await db.read(_reports)
        lines, payments, budgets, receipts = await db.read(_rest)
        entries = await db.read(_entries)

    assert len(reports) == 41
    assert {report.state for report in reports} == {state.value for state in ReportState}
    assert len({report.period for report in reports}) >= 4
    assert len({report.owner_id for report in reports}) > 8
    for report in reports:
        own = [line for line in lines if line.report_id == report.id]
        assert report.total_minor == sum(line.amount_minor for line in own) > 0
        assert entries[report.id]["expense.report.create"] == 1
    assert {payment.report_id for payment in payments} == {
        report.id for report in reports if report.state == "paid"
    }
    assert receipts
    for budget in budgets:
        sums: Counter[str] = Counter()
        for report in reports:
            if report.budget_id == budget.id:
                sums[report.state] += report.total_minor
        assert (budget.submitted_minor, budget.approved_minor, budget.paid_minor) == (
            *(sums["submitted"], sums["approved"]),
            sums["paid"],
        )
    assert any(budget.paid_minor for budget in budgets)


def _reports(session: Session) -> list[Report]:
    return list(session.exec(select(Report)).all())


def _rest(
    session: Session,
) -> tuple[list[Line], list[Payment], list[Budget], list[Receipt]]:
    return (
        list(session.exec(select(Line)).all()),
        list(session.exec(select(Payment)).all()),
        list(session.exec(select(Budget)).all()),
        list(session.exec(select(Receipt)).all()),
    )


def _entries(session: Session) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for entry in session.exec(select(AuditEntry).where(AuditEntry.outcome == "done")):
        found.setdefault(entry.target_id or "", Counter())[entry.command] += 1
    return found
