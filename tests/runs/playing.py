"""Whole runs of a scripted model at the desk of expenses, and what must hold after each of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from sqlmodel import col, select

from app.audit.models import AuditEntry
from app.commands.approval_models import Approval
from app.kernel import db
from app.runs import cancelling, worker
from app.runs.models import scripted
from app.runs.models.protocol import Ask
from app.runs.models.scripted import Call, Script, ScriptedModel, Step
from app.runs.run_models import ModelRequest, Run, RunInput, ToolCall
from app.runs.scheduler import Scheduler
from app.runs.states import FINAL_RUNS, OPEN_CALLS, EntryKind
from tests.commands.asking import Asking
from tests.runs.sessions import Desks

CREATE, SUBMIT, REMIND = "expense-report-create", "expense-report-submit", "expense-report-remind"
GET, RECALL, UPDATE = "expense-report-get", "expense-report-recall", "expense-report-update"
DISCARD = "expense-report-discard"
TRIP = {"title": "Trip", "period": "2026-10"}
TOLD = Call("send_message", {"text": "I am about to do it."})


def playing(*steps: Step, **options: Any) -> ScriptedModel:
    """A model that says these steps, for every agent."""
    model = scripted.register("loop", Script(steps))
    for name, value in options.items():
        setattr(model, name, value)
    return model


def about(report: str, **more: Any) -> dict[str, Any]:
    """What a call about a report names."""
    return {"targetRecordId": report, "operationType": "UPDATE", **more}


def remind(report: str) -> Call:
    """A call that a person has to assent to: it leaves the house."""
    return Call(REMIND, about(report))


class Stage(Desks):
    """The desk, with runs that are played to their end or to where they wait."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.asking = Asking(self.desk)
        self.enable()

    def runs(self) -> list[Run]:
        """Every run, in the order in which they were made: a run that is woken queues anew."""
        return self._all(select(Run).order_by(col(Run.id)))

    async def play(self) -> None:
        """Work until nothing is due."""
        await self.scheduler(worker.execute).drain()

    @asynccontextmanager
    async def in_play(self) -> AsyncIterator[Scheduler]:
        """Work in the background while the block looks and acts; afterwards all is worked off."""
        scheduler = self.scheduler(worker.execute)
        task = asyncio.create_task(scheduler.drain())
        try:
            yield scheduler
            await asyncio.wait_for(task, 60)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def tell(self, text: str = "Go on", who: str = "alice", **payload: Any) -> None:
        """Say something to the agent of expenses, and let it work."""
        self.say(who, "expenses", text, **payload)
        await self.play()

    async def stop(self, scheduler: Scheduler | None = None, who: str = "alice") -> Run:
        """Somebody's Stop of the newest run; a worker hears of it at once."""
        run = self.runs()[-1]
        person = self.desk.person(who)
        await db.transaction(_stop, run, person)
        if scheduler is not None:
            await scheduler.beat()
        return self.run(run.id)

    async def decide(self, verdict: str = "approve", who: str = "alice", **more: Any) -> Approval:
        """Somebody's click on the newest request that is open."""
        return await self.asking.decide(who, self.open_approvals()[-1], verdict, **more)

    def approvals(self) -> list[Approval]:
        """Every request, the oldest first."""
        return self._all(select(Approval).order_by(col(Approval.id)))

    def open_approvals(self) -> list[Approval]:
        """Those that wait for a person."""
        return [each for each in self.approvals() if each.state == "open"]

    def requests(self) -> list[ModelRequest]:
        """Every attempt to ask a model, in order."""
        return self._all(select(ModelRequest).order_by(col(ModelRequest.id)))

    def results(self, run_id: str | None = None) -> list[dict[str, Any]]:
        """What the model was told of its calls, in order."""
        return [
            {"tool": each.body["tool"], **json.loads(each.body["text"])}
            for each in self.entries()
            if each.kind == EntryKind.RESULTS and run_id in (None, each.run_id)
        ]

    def outcomes(self) -> list[str]:
        """The outcomes of the calls, as the model was told them."""
        return [str(each["outcome"]) for each in self.results()]

    def notes(self) -> list[str]:
        """The kinds of the host's lines, in order."""
        return [each.body["kind"] for each in self.entries() if each.kind == EntryKind.NOTE]

    def done(self, code: str) -> list[AuditEntry]:
        """What the trail has of a command that was done."""
        query = select(AuditEntry).where(AuditEntry.command == code, AuditEntry.outcome == "done")
        return self._all(query.order_by(col(AuditEntry.seq)))

    def by_agents(self) -> list[AuditEntry]:
        """What the trail has of agents' calls that took effect."""
        query = select(AuditEntry).where(
            AuditEntry.outcome == "done", col(AuditEntry.agent_id).is_not(None)
        )
        return self._all(query.order_by(col(AuditEntry.seq)))

    def is_tidy(self) -> bool:
        """Whether what has to hold of every run that is over does; else it fails the test."""
        over = {run.id for run in self.runs() if run.state in FINAL_RUNS}
        for run_id in over:
            self._check_calls(run_id)
        assert not [each for each in self.requests() if each.state == "started"]
        assert not [each for each in self.waits() if each.run_id in over and not each.satisfied_at]
        assert not [each for each in self.open_approvals() if each.run_id in over]
        heard = self._all(select(RunInput))
        assert not [each for each in heard if each.state == "accepted" and each.run_id in over]
        return True

    def _check_calls(self, run_id: str) -> None:
        mine = [each for each in self.entries() if each.run_id == run_id]
        made = [
            call["id"]
            for each in mine
            if each.kind == EntryKind.RESPONSE
            for call in each.body["calls"]
        ]
        told = [each.body["call_id"] for each in mine if each.kind == EntryKind.RESULTS]
        assert sorted(made) == sorted(told), f"{len(made)} calls, {len(told)} results"
        rows: list[ToolCall] = [each for each in self.calls() if each.run_id == run_id]
        assert sorted(each.id for each in rows) == sorted(made)
        assert not [each for each in rows if each.state in OPEN_CALLS]


def told(words: str) -> Callable[[Ask], None]:
    """A check of what is asked: these words stand in it."""

    def check(ask: Ask) -> None:
        text = json.dumps([dict(each.body) for each in ask.entries], ensure_ascii=False)
        assert words in text, f"{words!r} is not in what is asked"

    return check


def _stop(work: Any, run: Run, person: Any) -> None:
    cancelling.cancel(work, run, person)
