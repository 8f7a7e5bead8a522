"""Processes killed anywhere in the pipeline: write, entry, outcome and event, or none of them.

`ASSENT_TEST_KILLED=20000` kills more transactions than the 2,000 of a run.
"""

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from sqlmodel import Session, col, select

from app.audit import verify
from app.audit.models import AuditEntry
from app.commands import pipeline, publishing, record_check, registry
from app.commands.models import CommandNumber, CommandOutcome
from app.commands.outbox_models import OutboxEvent
from app.kernel import db
from app.packs.expenses.models import Report
from tests.commands.crashing import AFTER_COMMIT, BEFORE_COMMIT, Plan, run
from tests.commands.declared import SAMPLES
from tests.people import World
from tests.processes import fork

KILLED = int(os.environ.get("ASSENT_TEST_KILLED", "2000"))  # transactions, both databases together
CALLS = 64  # at once in a process
CODE = "sample.form.write"


@pytest.mark.requirement("CMD-5", "CMD-17", "CMD-19", "CMD-F27", "SEC-T32")
def test_killed_calls_are_done_whole_or_not_at_all(
    world: World, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant_id, alice = world.acme.id, world.acme["alice"]
    registry.discover(SAMPLES)
    db.transact_now(publishing.sync, tenant_id)
    monkeypatch.setattr(verify, "_cross_checks", {"records": record_check.check})
    places = [pipeline.name_of(each) for each in pipeline.MAY_IT_RUN + pipeline.CHANGE_IT]
    places += [BEFORE_COMMIT, AFTER_COMMIT]
    chosen = random.Random(KILLED)  # noqa: S311 - a seed, not a secret
    said, lost, round_ = tmp_path / "said", 0, 0
    db.close()

    while lost < KILLED // 2 or round_ < len(places):
        plan = Plan(
            url=database,
            tenant_id=tenant_id,
            user_id=alice.id,
            said=said,
            prefix=f"r{round_}",
            calls=CALLS,
            place=places[round_ % len(places)],
            passes=chosen.randrange(CALLS // 2),
        )
        before = answered(said)
        assert fork(run, plan).wait(60) < 0, f"{plan.place} was never passed"
        lost += CALLS - (answered(said).total() - before.total())
        round_ += 1

    db.open(database)
    stored = db.read_now(names_of_everything, tenant_id)
    assert answered(said) <= stored["report"], "what was answered is there"
    assert stored["entry"] == stored["report"] == stored["outcome"] == stored["event"]
    assert set(stored["report"].values()) == {1}
    assert db.read_now(last_number, tenant_id) == stored["report"].total()
    report = verify.verify(database, tmp_path / "none", tenant=tenant_id)
    assert [problem.text for tenant in report.tenants for problem in tenant.problems] == []


def answered(said: Path) -> Counter[str]:
    lines = said.read_text().splitlines(keepends=True) if said.exists() else []
    return Counter(line.strip() for line in lines if line.endswith("\n"))


def names_of_everything(session: Session, tenant_id: str) -> dict[str, Counter[str]]:
    """Call ids by where they stand: in the report, the trail, the outcomes, the outbox."""
    numbers = select(Report.title).where(
        Report.tenant_id == tenant_id,
        col(Report.number).startswith("SAMPLE-"),
    )
    entries = select(AuditEntry.call_id).where(
        AuditEntry.tenant_id == tenant_id, AuditEntry.command == CODE, AuditEntry.outcome == "done"
    )
    outcomes = select(CommandOutcome.call_id).where(
        CommandOutcome.tenant_id == tenant_id,
        CommandOutcome.code == CODE,
        col(CommandOutcome.outcome).is_not(None),
    )
    events = select(OutboxEvent.call_id).where(OutboxEvent.tenant_id == tenant_id)
    return {
        name: Counter(session.exec(query).all())
        for name, query in (
            ("report", numbers),
            ("entry", entries),
            ("outcome", outcomes),
            ("event", events),
        )
    }


def last_number(session: Session, tenant_id: str) -> int:
    row = session.get(CommandNumber, (tenant_id, "SAMPLE"))
    return row.value if row else 0
