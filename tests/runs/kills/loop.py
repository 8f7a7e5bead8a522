"""`bin/test kills [--times N] [--database URL]`: two workers, killed at random places (RUN-114).

Alice, Bob and Mia go on writing in many discussions and assent to what waits for them, while one
worker after the other ends itself somewhere and another takes its place. In the end everything
that was said has an end, and nothing happened twice or off the record.
"""

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlmodel import Session, col, func, select

from app.aun.models import Message
from app.commands.approval_models import Approval, ApprovalState
from app.kernel import db, migrations
from app.kernel.errors import AppError, Busy
from app.runs import cancelling
from app.runs.models.protocol import Ask
from app.runs.models.scripted import Call, Script, Step, Story
from app.runs.run_models import Run, RunInput, ToolCall
from app.runs.states import LIVE_RUNS, EntryKind, InputState
from tests import databases, people, session
from tests.commands.asking import Asking
from tests.processes import Process, fork
from tests.runs.kills import afterwards, dying
from tests.runs.kills.dying import Place, Plan, When
from tests.runs.kills.scenes import AGENT
from tests.runs.sessions import Desks

TIMES = 200
WORKERS = 2
LEASE_S = 4.0
AHEAD = 8  # messages that are said and not answered yet, at the most
IN_A_LANE = 4  # messages of one discussion: a lane has a quota
LOOK_S = 0.05
PATIENCE_S = 180
WRITERS = ("alice", "bob", "mia")
KINDS = ("Work", "Answer", "Consent")
LIMITS = {"concurrent": 50, "concurrent_per_user": 50}

INSIDE: tuple[When, ...] = ("before", "after")
AROUND: tuple[When, ...] = ("before", "after", "committed")
PLACES: tuple[tuple[str, tuple[When, ...]], ...] = (
    ("app.runs.inputs._take_first", AROUND),
    ("app.runs.attempts.Attempt.begin", AROUND),
    ("app.runs.attempts.Attempt.grow", INSIDE),
    ("app.runs.attempts.Attempt.accept", AROUND),
    ("app.runs.tools.find_flaw", INSIDE),
    ("app.runs.tools._start", AROUND),
    ("app.runs.tools.execute", INSIDE),
    *(
        (f"app.commands.stages.{stage}.run", INSIDE)
        for stage in ("authorize", "approval_check", "handler", "effect", "post_invariant")
    ),
    ("app.commands.pipeline._make_and_perform", AROUND),
    ("app.runs.speaking.say", INSIDE),
    ("app.runs.tools._finish", AROUND),
    ("app.runs.checkpoint._write", AROUND),
    ("app.runs.ending.suspend", AROUND),
    ("app.runs.waking.wake", AROUND),
    ("app.runs.replies._close_round", AROUND),
    ("app.runs.ending.finish", AROUND),
)
MOST_PASSES = 3


@dataclass
class Figures:
    """What happened."""

    seed: int
    killed: Counter[str] = field(default_factory=Counter)
    said: int = 0
    took_s: float = 0.0
    runs: Counter[str] = field(default_factory=Counter)
    takeovers: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    inputs: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """In words."""
        yield f"seed {self.seed}: {self.killed.total()} workers killed in {self.took_s:.0f} s"
        yield f"messages {self.said}, runs {dict(self.runs)}, takeovers {self.takeovers}"
        yield f"calls {dict(self.calls)}, inputs {dict(self.inputs)}"
        yield from self.problems or ["nothing was lost, doubled or off the record"]


def main() -> None:
    """Run it on both databases, or on the one that is named, which has to be empty."""
    parser = argparse.ArgumentParser(prog="bin/test kills", description=__doc__)
    parser.add_argument("--times", type=int, default=TIMES, help="how many workers are killed")
    parser.add_argument("--database", metavar="URL", help="an empty database, instead of both")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    asked = parser.parse_args()
    has_failed = False
    with session.run(), tempfile.TemporaryDirectory() as made:
        for kind in databases.KINDS if asked.database is None else ("",):
            folder = Path(made, kind or "named")
            folder.mkdir()
            with _opened(kind, folder, asked.database) as (desks, url):
                found = asyncio.run(torment(desks, url, folder, asked.times, asked.seed))
            print(url.partition(":")[0], *found.lines(), sep="\n  ", flush=True)  # noqa: T201
            has_failed = has_failed or bool(found.problems)
        databases.finish()
    sys.exit(has_failed)


@contextmanager
def _opened(kind: Any, folder: Path, named: str | None) -> Iterator[tuple[Desks, str]]:
    with ExitStack() as ends:
        url = named or ends.enter_context(people.peopled(kind, folder))
        if named:
            migrations.upgrade(named)
        db.open(url)
        ends.callback(db.close)
        world = ends.enter_context(people.world(url=url))
        ends.callback(cancelling.listen())
        yield Desks(world), url


async def torment(desks: Desks, url: str, folder: Path, times: int, seed: int) -> Figures:
    """Kill workers so many times; what became of everything."""
    began_s = time.monotonic()
    house = House(desks, url, folder, random.Random(seed), Figures(seed))  # noqa: S311 - a seed
    try:
        await house.open()
        while house.figures.killed.total() < times:
            await house.look()
        await house.close()
    finally:
        house.end()
    db.read_now(_count, house.figures)
    house.figures.problems += db.read_now(_problems, desks.tenant_id)
    house.figures.problems += afterwards.trail_problems(url, desks.tenant_id, folder / "none")
    house.figures.took_s = time.monotonic() - began_s
    return house.figures


class House:
    """Who writes, and who works."""

    def __init__(
        self, desks: Desks, url: str, folder: Path, chosen: random.Random, figures: Figures
    ) -> None:
        self.desks, self.url, self.folder = desks, url, folder
        self.chosen, self.figures = chosen, figures
        self.asking = Asking(desks.desk)
        self.script = Script()
        self._workers: list[tuple[Process, str]] = []

    async def open(self) -> None:
        """Let everybody in."""
        for login in WRITERS:
            self.desks.enable(login, AGENT)
        self.desks.publish(AGENT, closing_text="publish", limits=LIMITS)
        desks = self.desks
        reports = {desks.aid(who): await desks.desk.submitted(who, 5_000) for who in WRITERS}
        self.script = _script(reports)

    async def look(self) -> None:
        """See that two work, that there is work, and that nothing waits for a person."""
        for worker, where in list(self._workers):
            if (status := _ended(worker)) is not None:
                self._workers.remove((worker, where))
                if status != -signal.SIGKILL:
                    raise AssertionError(f"a worker ended with {status}: {self.log()}")
                self.figures.killed[where] += 1
        while len(self._workers) < WORKERS:
            self._begin(self._place())
        if db.read_now(_ahead) < AHEAD:
            self._say()
        await self._assent()
        await asyncio.to_thread(_ended, self._workers[0][0], LOOK_S)

    async def close(self) -> None:
        """Let one who is not killed do what is left."""
        self.end()
        self._begin(None)
        worker, _ = self._workers[0]
        until_s = time.monotonic() + PATIENCE_S
        while db.read_now(_is_at_work) and time.monotonic() < until_s:
            await self._assent()
            await asyncio.to_thread(_ended, worker, LOOK_S)
        worker.send_signal(signal.SIGTERM)
        await asyncio.to_thread(worker.wait, PATIENCE_S)

    def end(self) -> None:
        """Kill who still works."""
        while self._workers:
            worker, _ = self._workers.pop()
            worker.kill()
            worker.wait(PATIENCE_S)

    def log(self) -> str:
        """The end of what the workers wrote."""
        return (self.folder / "log").read_text()[-4_000:]

    def _begin(self, place: Place | None) -> None:
        plan = Plan(
            url=self.url,
            folder=self.folder,
            script=self.script,
            place=place,
            lease_s=LEASE_S,
            is_server=True,
        )
        where = f"{place.when} {place.name}" if place else ""
        self._workers.append((fork(dying.run, plan), where))

    def _place(self) -> Place:
        name, whens = self.chosen.choice(PLACES)
        return Place(name, self.chosen.choice(whens), self.chosen.randrange(MOST_PASSES))

    def _say(self) -> None:
        number = self.figures.said
        with suppress(Busy):  # then it was not said
            self.desks.say(
                self.chosen.choice(WRITERS),
                AGENT,
                f"{self.chosen.choice(KINDS)} {number}",
                thread_id=f"d{number // IN_A_LANE}",
                input_mode=self.chosen.choice(("steering", "follow_up")),
            )
            self.figures.said += 1

    async def _assent(self) -> None:
        for row in await db.read(_waiting):
            login = next(who for who in WRITERS if self.desks.world.acme[who].id == row.user_id)
            for verdict in ("approve", "deny"):  # what changed meanwhile can only be denied
                with suppress(AppError):
                    await self.asking.decide(login, row, verdict)
                    break


def _script(reports: Mapping[str, str]) -> Script:
    """What the model says; each input has its number in every title and text."""
    work = [
        Step(thoughts=["Hm."], calls=[Call("send_message", _begun), _file("a"), _file("b")]),
        Step(calls=[Call("send_message", _done)]),
        Step(),
    ]
    answer = [Step(calls=[_file("a")]), Step(thoughts=["So."], text="Answered.")]
    stories = [Story("Work", work), Story("Answer", answer)]
    remind = Call("expense-report-remind", Reminding(dict(reports)))
    consent = [Step(calls=[_file("a"), remind, _file("b")]), Step(text="Asked.")]
    return Script(stories=[*stories, Story("Consent", consent)])


@dataclass(frozen=True)
class Filing:
    """Arguments of a report whose title no other call has."""

    mark: str

    def __call__(self, ask: Ask) -> Mapping[str, Any]:
        return {"title": f"{_number(ask)}{self.mark}", "period": "2026-10"}


@dataclass(frozen=True)
class Reminding:
    """Arguments of a reminder about the writer's own report, by their AID."""

    reports: Mapping[str, str]

    def __call__(self, ask: Ask) -> Mapping[str, Any]:
        report = self.reports[_input(ask)["sender"]]
        return {"targetRecordId": report, "operationType": "UPDATE"}


def _file(mark: str) -> Call:
    return Call("expense-report-create", Filing(mark))


def _begun(ask: Ask) -> Mapping[str, Any]:
    return {"text": f"I begin with {_number(ask)}."}


def _done(ask: Ask) -> Mapping[str, Any]:
    return {"text": f"Done with {_number(ask)}."}


def _number(ask: Ask) -> str:
    return str(_input(ask)["text"]).rpartition(" ")[2]


def _input(ask: Ask) -> Mapping[str, Any]:
    return next(each.body for each in reversed(ask.entries) if each.kind == EntryKind.INPUT)


def _ended(worker: Process, patience_s: float = 0.0) -> int | None:
    try:
        return worker.wait(patience_s)
    except subprocess.TimeoutExpired:
        return None


def _waiting(session: Session) -> list[Approval]:
    return list(session.exec(select(Approval).where(Approval.state == ApprovalState.OPEN)))


def _ahead(session: Session) -> int:
    """How many messages of people have no end yet; those that nobody heard count."""
    heard = select(func.count()).where(
        col(RunInput.state).in_([InputState.QUEUED, InputState.ACCEPTED])
    )
    known = select(RunInput.message_id)
    unheard = select(func.count()).where(col(Message.id).not_in(known))
    return session.exec(heard).one() + session.exec(unheard).one()


def _is_at_work(session: Session) -> bool:
    live = select(func.count()).where(col(Run.state).in_(LIVE_RUNS))
    return _ahead(session) + session.exec(live).one() > 0


def _count(session: Session, figures: Figures) -> None:
    for run in session.exec(select(Run)):
        figures.runs[run.state if run.reason is None else f"{run.state} {run.reason}"] += 1
        figures.takeovers += run.takeovers
    figures.calls.update(session.exec(select(ToolCall.state)).all())
    figures.inputs.update(session.exec(select(RunInput.state)).all())


def _problems(session: Session, tenant_id: str) -> list[str]:
    runs = session.exec(select(Run).where(Run.state == "failed")).all()
    twice = [title for title, number in afterwards.titles(session).items() if number > 1]
    own = {"Trip"}  # what the desk itself filed
    return [
        *afterwards.problems(session, tenant_id),
        *(f"run {run.id} failed: {run.reason}" for run in runs),
        *(f"report {title!r} was filed twice" for title in twice if title not in own),
        *(f"message {id} is there twice" for id in afterwards.sent_more_than_once(session)),
    ]


if __name__ == "__main__":
    main()
