"""Random commands, people, roles, approvals, clocks and crashes, held against a small model.

`ASSENT_TEST_EXAMPLES=500` runs that many stories on each database instead of a dozen.
"""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from structlog.testing import capture_logs

from app.audit import verify
from app.commands import record_check
from app.kernel import clock as clocks
from tests.clock import START, Clock
from tests.commands.model import (
    ADD,
    APPROVE,
    COMMIT,
    CREATE,
    DISCARD,
    DONE,
    KINDS,
    LIMIT,
    OF_OWNERS,
    PATHS,
    PAY,
    PEOPLE,
    REMOVE,
    STAGES,
    SUBMIT,
    UPDATE,
    WITHOUT_TARGET,
    Model,
    Report,
    Try,
)
from tests.commands.modelled import Bench
from tests.people import World

EXAMPLES = os.environ.get("ASSENT_TEST_EXAMPLES")
PHASES = (Phase.explicit, Phase.generate)
STORIES, STEPS = int(EXAMPLES or 12), 25
UNKNOWN = "01JDXP5Y8GZ0000000000000AB"
PERIODS = ("2026-03", "2026-04")
COMES_AND_GOES = (
    ("alice", "member", "shanghai"),
    ("bob", "manager", "shanghai"),
    ("bob", "manager", "sales"),
    ("mia", "manager", "shanghai"),
    ("fiona", "manager", "root"),
    ("fiona", "finance", "root"),
    ("frank", "finance", "root"),
)
BEGINNINGS = (  # what became of a report before the story begins
    (SUBMIT, APPROVE, PAY),
    (SUBMIT, APPROVE),
    (SUBMIT, APPROVE, "expense.report.void"),
    (SUBMIT, "expense.report.reject"),
    (SUBMIT, APPROVE, "expense.report.reopen"),
    (SUBMIT, "expense.report.recall"),
    (UPDATE, REMOVE),
    (DISCARD,),
    (SUBMIT,),
    (),
)
OWNERS = ("alice", "bob", "alice", "bob", "fiona")
MEANWHILE = ("nothing", "it breaks", "time passes", "it changes", "it is denied")
MOVES = (1, 60, 601, 3_600, 86_401, -1, -60, -3_600, -90_000)  # seconds
LINES: tuple[dict[str, Any], ...] = (
    {"amountMinor": 4_200},
    {"amountMinor": 19_999, "receiptNumber": "R-1", "receiptIssuer": "晨光文具 M&G"},
    {"amountMinor": 60_000, "receiptNumber": "R-2"},
    {"amountMinor": 500_000, "receiptNumber": "R-3"},
    {"amountMinor": 20_001},
    {"amountMinor": 100, "receiptIssuer": "滴滴出行 DiDi"},
)
SUMS = ("submitted", "approved", "paid")
GOOD_LINES, LUNCH = LINES[:4], {"spentOn": "2026-03-01", "category": "meals", "description": "x"}


def stories(bench: Bench, clock: Clock) -> type[RuleBasedStateMachine]:
    """The state machine, on one database."""

    class Story(RuleBasedStateMachine):
        """One run: people do things, and after each of them the database is as the model says."""

        def __init__(self) -> None:
            super().__init__()
            clock.set(START)
            self.model = Model(now=clocks.now(), entitled_from=START, roles=bench.begin())
            self.number = 0

        @initialize(
            owners=st.lists(st.sampled_from(OWNERS), min_size=3, max_size=3),
            first=st.integers(0, len(BEGINNINGS) - 1),
            limit=st.sampled_from((None, 70_000, 2_000_000)),
            data=st.data(),
        )
        def begin(
            self, owners: list[str], first: int, limit: int | None, data: st.DataObject
        ) -> None:
            """Some reports, handed in or further on, and a budget for them."""
            self.call(Try("fiona", LIMIT, sent=self.month("shanghai", PERIODS[0], limit)))
            for place, owner in enumerate(owners):
                creating = Try(owner, CREATE, sent=self.sent(CREATE, None), key=f"k{place}")
                for fault in (COMMIT, None, None):  # lost, done, replayed
                    self.call(replace(creating, fault=fault))
                report = next(reversed(self.model.reports))
                line = data.draw(st.sampled_from(GOOD_LINES[:3]))
                self.call(Try(owner, ADD, report, {**LUNCH, **line}))
                for code in BEGINNINGS[(first + place) % len(BEGINNINGS)]:
                    user = {PAY: "fiona"}.get(code, owner if code in OF_OWNERS else "mia")
                    going_on = Try(user, code, report, self.sent(code, report, good=True))
                    told = self.call(going_on)
                    if "approvalId" in told:
                        decides = "frank" if code == PAY else user
                        self.click(decides, told["approvalId"], "approve")
                        self.call(replace(going_on, approval=told["approvalId"]))

        @rule(data=st.data())
        def go_on(self, data: st.DataObject) -> None:
            """Something that can be done, or asked for, by somebody who can."""
            likely = [each for each in self.sensible() if self.leads_on(each)]
            code = data.draw(st.sampled_from(sorted({each.code for each in likely} or {CREATE})))
            chosen = [each for each in likely if each.code == code]
            if chosen:
                self.call(data.draw(st.sampled_from(chosen)))

        @rule(data=st.data())
        def go_on_carelessly(self, data: st.DataObject) -> None:
            """The same, but the code breaks, the process dies, or what was seen is old."""
            likely = [each for each in self.sensible() if self.leads_on(each)]
            if not likely:
                return
            chosen = data.draw(st.sampled_from(likely))
            key = data.draw(st.sampled_from(("k1", "k2", None)))
            expected = None
            if chosen.target is not None and data.draw(st.booleans()):
                seen = self.model.version_of(chosen.target)
                expected = data.draw(st.sampled_from((seen, max(1, seen - 1), seen + 1)))
            fault = data.draw(st.sampled_from((None, COMMIT, *STAGES)))
            self.call(replace(chosen, fault=fault, key=key, expected=expected))
            if key and data.draw(st.booleans()):  # the answer got lost, so once more
                self.call(replace(chosen, key=key, expected=expected))

        @rule(data=st.data(), meanwhile=st.sampled_from(MEANWHILE))
        def ask_decide_and_do(self, data: st.DataObject, meanwhile: str) -> None:
            """What takes a person's assent, from the question to the end; something may happen."""
            asking = {
                each.code: each
                for each in self.sensible()
                if self.model.end_of(each).reason == "approval_required"
            }
            if not asking:
                return
            asked = asking[data.draw(st.sampled_from(sorted(asking)))]
            approval = self.call(asked)["approvalId"]
            if meanwhile == "it changes":
                sent = self.sent(UPDATE, asked.target)
                self.call(Try(self.owner_of(asked), UPDATE, asked.target, sent))
            elif meanwhile == "time passes":
                self.pass_time_by(data.draw(st.sampled_from(MOVES)))
            verdict = "deny" if meanwhile == "it is denied" else "approve"
            self.click(data.draw(st.sampled_from(self.able(approval, verdict))), approval, verdict)
            fault = data.draw(st.sampled_from(STAGES)) if meanwhile == "it breaks" else None
            self.call(replace(asked, approval=approval, fault=fault))
            if data.draw(st.booleans()):
                self.call(replace(asked, approval=approval))

        @rule(data=st.data())
        def do_anything(self, data: st.DataObject) -> None:
            """Whoever, whatever, on whichever report: most of it is refused, for each reason."""
            code = data.draw(st.sampled_from(sorted(KINDS)))
            known = [*self.model.reports, *self.model.gone, UNKNOWN]
            target = None if code in WITHOUT_TARGET else data.draw(st.sampled_from(known))
            sent = self.sent(code, target)
            if data.draw(st.integers(0, 9)) == 0:
                sent = {**sent, "nonsense": True}
            self.call(
                Try(
                    data.draw(st.sampled_from(PEOPLE)),
                    code,
                    target,
                    sent,
                    key=data.draw(st.sampled_from((None, None, "k1", "k2"))),
                    expected=data.draw(st.sampled_from((None, None, 1, 2)))
                    if target is not None
                    else None,
                    approval=data.draw(st.sampled_from((None, *self.model.assents))),
                    fault=data.draw(st.sampled_from((None, None, None, *STAGES, COMMIT))),
                )
            )

        @precondition(lambda self: self.model.assents)
        @rule(data=st.data(), verdict=st.sampled_from(("approve", "approve", "approve", "deny")))
        def decide(self, data: st.DataObject, verdict: str) -> None:
            """Somebody clicks, mostly who may."""
            approval = data.draw(st.sampled_from(self.waiting("open")))
            anybody = data.draw(st.integers(0, 4)) == 4
            user = data.draw(st.sampled_from(PEOPLE if anybody else self.able(approval, verdict)))
            self.click(user, approval, verdict)

        @precondition(lambda self: self.model.assents)
        @rule(data=st.data(), fault=st.sampled_from((None, None, None, COMMIT, *STAGES[10:])))
        def call_again(self, data: st.DataObject, fault: str | None) -> None:
            """The call that was asked about, made with its approval."""
            approval = data.draw(st.sampled_from(self.waiting("approved")))
            asked = self.model.assents[approval].asked
            self.call(replace(asked, approval=approval, fault=fault, key=None, expected=None))

        @precondition(lambda self: self.model.assents)
        @rule(data=st.data())
        def withdraw(self, data: st.DataObject) -> None:
            """The requester takes a request back, or somebody else tries to."""
            approval = data.draw(st.sampled_from(self.waiting("open")))
            owner = self.model.assents[approval].asked.user
            user = data.draw(st.sampled_from((owner, owner, *PEOPLE)))
            said = self.model.withdrawal(user, approval)
            assert bench.withdraw(user, approval) == said, (user, approval)
            if said == "cancelled":
                self.model.assents[approval].state = "cancelled"
            bench.seen[f"withdrawal: {said}"] += 1

        @rule(seconds=st.sampled_from(MOVES), job=st.booleans())
        def pass_time(self, seconds: int, job: bool) -> None:
            """Time goes on, or the clock is set back."""
            self.pass_time_by(seconds)
            if job:
                bench.expire()
                self.model.expire()

        @rule(held=st.sampled_from(COMES_AND_GOES), hours=st.sampled_from((None, None, 2)))
        def change_roles(self, held: tuple[str, str, str], hours: int | None) -> None:
            """A role is given, for good or for a while, or taken away."""
            if held in self.model.roles:
                bench.take(*held)
                del self.model.roles[held]
            else:
                ends_at = self.model.now + timedelta(hours=hours) if hours else None
                bench.give(*held, ends_at)
                self.model.roles[held] = ends_at

        @rule(is_entitled=st.sampled_from((True, True, False)))
        def change_what_was_bought(self, is_entitled: bool) -> None:
            """The tenant buys payments, or stops paying for them."""
            bench.entitle(is_entitled=is_entitled)
            self.model.is_entitled = is_entitled

        @invariant()
        def rows_are_as_the_model_says(self) -> None:
            """Reports, lines, budgets and approvals."""
            assert bench.reports() == {
                id: self.row_of(report) for id, report in self.model.reports.items()
            }
            assert bench.budgets() == {
                budget: (limit, *(self.model.sum_of(budget, each) for each in SUMS))
                for budget, limit in self.model.limits.items()
            }
            assert bench.approvals(list(self.model.assents)) == {
                id: (given.state, given.decided_by, given.failed_stage)
                for id, given in self.model.assents.items()
            }

        @invariant()
        def the_trail_tells_all_of_it(self) -> None:
            """Gapless, chained, an entry for each version, no approval used twice."""
            assert bench.faults() == []

        # parts of the above

        def call(self, asked: Try) -> dict[str, Any]:
            """Make a call, hold its end and its traces against the model; what it told."""
            wanted = self.model.end_of(asked)
            end, told, call_id = bench.make(asked)
            assert end == wanted, (asked, told)
            entries = [] if end.outcome == "lost" else [(end.outcome, end.stage, end.reason)]
            is_done = end.outcome == "done"
            traces = (entries, int(is_done), is_done and KINDS[asked.code].tells)
            assert bench.traces(call_id) == traces, asked
            self.model.follow(asked, wanted, told)
            bench.seen[f"{asked.code}: {end.outcome}"] += 1
            bench.seen[f"{end.stage}: {end.reason}" if end.stage else end.outcome] += 1
            return told

        def click(self, user: str, approval: str, verdict: str) -> None:
            said = self.model.decision(user, approval, verdict)
            assert bench.decide(user, approval, verdict) == said, (user, approval, verdict)
            self.model.decide(user, approval, verdict)
            bench.seen[f"decision: {said}"] += 1

        def able(self, approval: str, verdict: str) -> tuple[str, ...]:
            """Who can decide it now, or everybody where nobody can."""
            counts = {"approved", "denied"}
            said = {each: self.model.decision(each, approval, verdict) for each in PEOPLE}
            return tuple(each for each in PEOPLE if said[each] in counts) or PEOPLE

        def pass_time_by(self, seconds: int) -> None:
            self.model.now = clock.move(seconds=seconds)

        def owner_of(self, asked: Try) -> str:
            return self.model.reports[asked.target or ""].owner

        def leads_on(self, asked: Try) -> bool:
            end = self.model.end_of(asked)
            return end == DONE or end.reason == "approval_required"

        def sensible(self) -> Iterator[Try]:
            """Everybody's calls about every report, with an input that could do."""
            for code in sorted(KINDS):
                targets = [None] if code in WITHOUT_TARGET else list(self.model.reports)
                for target in targets:
                    sent = self.sent(code, target, good=True)
                    for user in PEOPLE:
                        yield Try(user, code, target, sent)

        def sent(self, code: str, target: str | None, *, good: bool = False) -> dict[str, Any]:
            """An input for a command; a good one could be all right."""
            self.number += 1
            report = self.model.reports.get(target or "")
            match code.rpartition(".")[2]:
                case "create":
                    return {"title": "Trip", "period": PERIODS[self.number % 2]}
                case "update":
                    return {"title": f"Trip {self.number}", "period": PERIODS[self.number % 2]}
                case "add":
                    lines = GOOD_LINES if good else LINES
                    return {**LUNCH, **lines[self.number % len(lines)]}
                case "remove":
                    return {"lineId": next(iter(report.lines), UNKNOWN) if report else UNKNOWN}
                case "submit":
                    return {"note": "x"} if good or self.number % 2 else {}
                case "reject" | "void":
                    return {"reason": "No."}
                case "set":
                    org = tuple(PATHS)[self.number % 3]
                    limit = (None, 0, 70_000, 2_000_000)[self.number % 4]
                    return self.month(org, PERIODS[self.number % 2], limit)
            return {}

        def month(self, org: str, period: str, limit: int | None) -> dict[str, Any]:
            return {"org": org, "period": period, "limitMinor": limit}

        def waiting(self, state: str) -> list[str]:
            """Approvals in a state, or all of them where there is none such."""
            such = [id for id, given in self.model.assents.items() if given.state == state]
            return such or list(self.model.assents)

        def row_of(self, report: Report) -> tuple[Any, ...]:
            lines = len(report.lines)
            return (
                *(report.owner, report.org, report.state, report.version, report.total, lines),
                *(report.period, lines, int(report.state == "paid")),
                report.budget[0] if report.budget else None,
            )

    return Story


@pytest.mark.requirement(
    "CMD-4", "CMD-5", "CMD-9", "CMD-11", "CMD-12", "CMD-14", "CMD-17", "CMD-F25"
)
def test_random_stories_end_as_a_small_model_says(
    clock: Clock, world: World, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = settings(
        max_examples=STORIES,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=EXAMPLES is None,
        database=None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )
    with asyncio.Runner() as runner, capture_logs():
        bench = Bench(world, runner)
        run_state_machine_as_test(stories(bench, clock), settings=chosen)

    monkeypatch.setattr(verify, "_cross_checks", {"records": record_check.check})
    report = verify.verify(database, tmp_path / "none", tenant=world.acme.id)
    assert [each.text for tenant in report.tenants for each in tenant.problems] == []
    done = {code for code in KINDS if bench.seen[f"{code}: done"]}
    assert len(done) >= len(KINDS) - 2, bench.seen  # else this proves little
    assert {"lost", "replayed"} <= set(bench.seen)
    assert len(bench.seen) > 60, bench.seen
