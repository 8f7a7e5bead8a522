"""Processes killed at every place of a run: what they left, another one takes to its end (RUN-114).

A row of the table names the function at which a process ends itself; the same checks follow each.
"""

import json
from dataclasses import dataclass

import pytest
from sqlmodel import Session, select

from app.commands.dispatcher import Dispatcher
from app.commands.outbox_models import ExternalEffect
from app.kernel import db
from app.kernel.db import Work
from app.runs.run_models import TranscriptEntry
from app.runs.states import EntryKind, RunState
from tests.runs.kills import afterwards, dying
from tests.runs.kills.dying import Place
from tests.runs.kills.scenes import (
    AGENT,
    ANSWER,
    CONSENT,
    HAND_ON,
    READ,
    RIDE,
    SAY_TWICE,
    TALK,
    WORK,
    Scene,
)
from tests.runs.kills.survivors import LONG_AGO, Survivors

pytestmark = pytest.mark.anyio

RUNS = "app.runs."


@dataclass(frozen=True)
class Kill:
    """One place, and what a second process makes of what was left.

    Attributes:
        calls: states of the calls of the run, in order.
        requests: states of what it asked its model, in order.
        lost: what does not happen: the process was killed as it was to happen.
        takeovers: how often the run was taken over.
        is_decided: the run waited for a person, who decided, before the process began.
    """

    id: str
    place: Place
    scene: Scene = WORK
    calls: str = "done done done done"
    requests: str = "done done done"
    lost: tuple[str, ...] = ()
    takeovers: int = 1
    is_decided: bool = False

    @property
    def name(self) -> str:
        """Of the test."""
        place = self.place
        return f"{self.id} {place.when} {place.name.removeprefix(RUNS)} {place.passes}"


def _answering(id: str, place: Place, takeovers: int = 1) -> Kill:
    four = "done done done done"
    return Kill(id, place, ANSWER, calls="done done", requests=four, takeovers=takeovers)


def at(name: str, when: dying.When = "before", passes: int = 0) -> Place:
    return Place(name if name.startswith("app.") else RUNS + name, when, passes)


INTERRUPTED = "done interrupted done done"
ABANDONED = "abandoned done done done"
STAGES = ("authorize", "approval_check", "handler", "effect", "post_invariant")
PERFORMED = at("app.commands.pipeline._make_and_perform", "committed")

TABLE = [
    Kill("K-1", at("delivery.deliver"), takeovers=0),
    Kill("K-1", at("delivery.deliver", "after"), takeovers=0),
    Kill("K-2", at("opening.open_lane"), takeovers=0),
    Kill("K-2", at("opening.open_lane", "after"), takeovers=0),
    Kill("K-2", at("claiming.claim"), takeovers=0),
    Kill("K-2", at("claiming.claim", "after"), takeovers=0),
    Kill("K-3", at("claiming.claim", "committed")),
    Kill("K-3", at("preparing._bind", "after")),
    Kill("K-3", at("preparing._bind", "committed")),
    Kill("K-4", at("inputs._take_first", "after")),
    Kill("K-4", at("inputs._take_first", "committed")),
    Kill("K-4", at("attempts.Attempt.begin")),
    Kill("K-5", at("attempts.Attempt.begin", "committed"), requests=ABANDONED),
    Kill("K-5", at("attempts.Attempt.grow", "after", 1), requests=ABANDONED),
    Kill("K-5", at("attempts.Attempt.accept", "after"), requests=ABANDONED),
    Kill("K-6", at("attempts.Attempt.accept", "committed")),
    Kill("K-6", at("tools.find_flaw", "after")),
    Kill("K-7", at("tools._start", "after", 1)),
    Kill("K-7", at("tools._start", "committed", 1), calls=INTERRUPTED, lost=("Journey",)),
    *(
        Kill("K-8", at(f"app.commands.stages.{stage}.run"), calls=INTERRUPTED, lost=("Journey",))
        for stage in STAGES
    ),
    Kill("K-8", at("lease.guard", "after"), calls=INTERRUPTED, lost=("Journey",)),
    Kill("K-9", PERFORMED),
    Kill("K-9", at("tools.after", "before", 1)),
    Kill(
        "K-11",
        at("app.commands.stages.handler.run"),
        READ,
        calls="interrupted done done",
    ),
    Kill("K-12", at("tools._finish", "after", 1)),
    Kill(  # with Started of the next call, which then is as in K-7
        "K-12",
        at("tools._finish", "committed", 1),
        calls="done done interrupted done",
        lost=("Meal",),
    ),
    Kill("K-13", at("tools._finish", "committed", 2)),
    Kill("K-13", at("checkpoint._write", "after")),
    Kill("K-13", at("checkpoint._write", "committed")),
    Kill("K-14", at("app.commands.refusals.record", "committed"), CONSENT),
    Kill("K-14", at("checkpoint._write", "after"), CONSENT),
    Kill("K-14", at("checkpoint._write", "committed"), CONSENT, takeovers=0),
    Kill("K-14", at("ending.suspend", "after"), CONSENT),
    Kill("K-14", at("ending.suspend", "committed"), CONSENT, takeovers=0),
    Kill("K-14", at("waking.wake"), CONSENT, takeovers=0, is_decided=True),
    Kill("K-14", at("waking.wake", "after"), CONSENT, takeovers=0, is_decided=True),
    Kill("K-15", at("waking.wake", "committed"), CONSENT, takeovers=0, is_decided=True),
    Kill("K-15", at("tools._start"), CONSENT, is_decided=True),
    Kill("K-15", at("tools._start", "after"), CONSENT, is_decided=True),
    Kill(
        "K-15",
        at("tools._start", "committed"),
        CONSENT,
        calls=INTERRUPTED,
        lost=("reminder",),
        is_decided=True,
    ),
    Kill("K-16", PERFORMED, CONSENT, is_decided=True),
    Kill("K-16", at("tools._finish", "after"), CONSENT, is_decided=True),
    _answering("K-17", at("replies._close_round")),
    _answering("K-17", at("replies._close_round", "after")),
    _answering("K-17", at("replies._close_round", "committed")),
    _answering("K-17", at("inputs._take_first", "after", 1)),
    _answering("K-17", at("inputs._take_first", "committed", 1)),
    _answering("K-18", at("ending.finish")),
    _answering("K-18", at("ending.finish", "after")),
    _answering("K-18", at("ending.finish", "committed"), takeovers=0),
    Kill("K-19", at("speaking.say", "after"), SAY_TWICE, calls="interrupted done"),
    Kill("K-19", at("tools._finish", "committed"), SAY_TWICE, calls="done done"),
    Kill("K-21", at("ending.finish", "committed"), HAND_ON, takeovers=0),
    Kill("K-21", at("waking.wake"), HAND_ON, takeovers=0),
    Kill("K-21", at("waking.wake", "after"), HAND_ON, takeovers=0),
    Kill("K-21", at("waking.wake", "committed"), HAND_ON, takeovers=0),
]


@pytest.mark.requirement(
    "RUN-114",
    "RUN-12",
    "RUN-13",
    "RUN-36",
    "RUN-38",
    "RUN-44",
    "RUN-51",
    "RUN-66",
    "RUN-67",
    "RUN-75",
    "K-1",
    "K-2",
    "K-3",
    "K-4",
    "K-5",
    "K-6",
    "K-7",
    "K-8",
    "K-9",
    "K-11",
    "K-12",
    "K-13",
    "K-14",
    "K-15",
    "K-16",
    "K-17",
    "K-18",
    "K-19",
    "K-21",
    "F-16",
    "F-50",
    "F-51",
)
@pytest.mark.parametrize("kill", TABLE, ids=lambda kill: kill.name)
async def test_what_a_killed_process_left_is_taken_to_its_end_once(
    survivors: Survivors, kill: Kill
) -> None:
    script = await survivors.begin(kill.scene)
    if kill.is_decided:
        await survivors.work()
        assert await survivors.assent()

    survivors.kill(kill.scene, script, kill.place)
    await survivors.go_on()

    run = next(run for run in survivors.desks.runs() if run.parent_run_id is None)
    calls = [call.state for call in survivors.desks.calls() if call.run_id == run.id]
    asked = db.read_now(afterwards.requests, run.id)
    assert (run.state, run.reason, run.public_error) == ("completed", None, None)
    assert " ".join(calls) == kill.calls
    assert " ".join(state for _, _, state in asked) == kill.requests
    assert run.takeovers == kill.takeovers
    await survivors.check(kill.scene, kill.lost)


@pytest.mark.requirement("K-10", "RUN-51")
async def test_what_was_sent_outside_and_not_answered_is_unknown_and_never_sent_again(
    survivors: Survivors, riders: None
) -> None:
    desks = survivors.desks
    script = await survivors.begin(RIDE)
    await survivors.work()
    assert await survivors.assent()

    survivors.kill(RIDE, script, at("app.commands.external._settle"))
    assert survivors.taxis() == 1
    await survivors.go_on()
    assert desks.runs()[0].state == RunState.SUSPENDED, "its lease is not over"
    for effect in await db.read(_effects):
        desks.force(ExternalEffect, (effect.tenant_id, effect.call_id), leased_until=LONG_AGO)
    await Dispatcher().drain()
    await survivors.go_on()

    run = desks.run()
    assert (run.state, run.reason) == ("outcome_unknown", "outcome_unknown")
    assert [call.state for call in desks.calls()] == ["unknown", "not_started"]
    assert desks.fates(AGENT)[0] == ("interrupted", "outcome_unknown")
    await survivors.check(RIDE, lost=("Journey", "It comes."))
    assert survivors.taxis() == 1


@pytest.mark.requirement("K-12")
async def test_a_result_that_the_transcript_lacks_is_told_from_its_record(
    survivors: Survivors,
) -> None:
    script = await survivors.begin(WORK)
    survivors.kill(WORK, script, at("tools._finish", "committed", 1))
    told = survivors.desks.entries()[-1]
    assert told.kind == EntryKind.RESULTS

    db.transact_now(_lose, told)  # record and entry are one commit: nothing else brings it about
    await survivors.go_on()

    again = next(each for each in survivors.desks.entries() if each.seq == told.seq)
    assert json.loads(again.body["text"]) == json.loads(told.body["text"])
    assert again.body["call_id"] == told.body["call_id"]
    await survivors.check(WORK, lost=("Meal",))  # it was Started in that commit


@pytest.mark.requirement("K-20")
@pytest.mark.parametrize(
    "place",
    [
        at("compaction._put", "after"),
        at("compaction._put", "committed"),
        at("summaries.of"),
        at("attempts.Attempt.accept_aside"),
        at("summaries.of", "after"),
    ],
    ids=lambda place: f"{place.when} {place.name.removeprefix(RUNS)}",
)
async def test_a_kill_while_room_is_made_loses_nothing_of_the_transcript(
    survivors: Survivors, place: Place
) -> None:
    script = await survivors.begin(TALK)

    survivors.kill(TALK, script, place)
    before = survivors.desks.entries()
    await survivors.go_on()

    run, after = survivors.desks.run(), survivors.desks.entries()
    assert (run.state, run.reason) == ("completed", None)
    assert [each.body for each in after[: len(before)]] == [each.body for each in before]
    assert any(each.body.get("until_seq") for each in after if each.kind == EntryKind.SUMMARY)
    await survivors.check(TALK, lost=())


def _effects(session: Session) -> list[ExternalEffect]:
    return list(session.exec(select(ExternalEffect)))


def _lose(work: Work, entry: TranscriptEntry) -> None:
    work.session.delete(
        work.session.get_one(TranscriptEntry, (entry.tenant_id, entry.run_id, entry.seq))
    )
