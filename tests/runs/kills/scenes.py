"""What the processes worked on that were killed: what alice asked for, and what the model says."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from app.runs.models.scripted import Call, Script, Step, Story
from tests.commands.declared import SAMPLES
from tests.runs.sessions import Desks

AGENT, HELPER = "expenses", "stock"
TRIP, LUNCH, NEXT = "File my trip", "And file the lunch", "And what now?"
ERRAND = "Count the bolts"


@dataclass(frozen=True)
class Scene:
    """One piece of work.

    Attributes:
        make: prepares the rows; the script.
        said: what alice writes, in order, each with its mode.
        content: of the agent's release.
        titles: of the reports that come of it at the most.
        texts: of the messages that come of it at the most.
    """

    make: Callable[[Desks], Awaitable[Script]]
    titles: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    said: tuple[tuple[str, str], ...] = ((TRIP, "steering"),)
    content: dict[str, Any] = field(default_factory=dict)
    packs: str = ""
    context_tokens: int = 128_000


async def set_up(desks: Desks, scene: Scene) -> Script:
    """Prepare everything, and let alice say it."""
    desks.enable("alice", AGENT)
    if scene.content:
        desks.publish(AGENT, **scene.content)
    script = await scene.make(desks)
    for text, mode in scene.said:
        desks.say("alice", AGENT, text, input_mode=mode)
    return script


def _script(*stories: Story) -> Script:
    afterwards = Story(NEXT, [Step(calls=[_tell("Nothing more.")]), Step()])
    return Script(stories=[*stories, afterwards])


def _file(title: str) -> Call:
    return Call("expense-report-create", {"title": title, "period": "2026-10"})


def _tell(text: str) -> Call:
    return Call("send_message", {"text": text})


async def _working(_desks: Desks) -> Script:
    steps = [
        Step(
            thoughts=["They want", " it filed."],
            calls=[_tell("I file it."), _file("Journey"), _file("Meal")],
        ),
        Step(calls=[_tell("Filed.")]),
        Step(),
    ]
    return _script(Story(TRIP, steps))


WORK = Scene(_working, ("Journey", "Meal"), ("I file it.", "Filed."))


async def _repeating(_desks: Desks) -> Script:
    steps = [Step(calls=[_tell("I file it.")]), Step(calls=[_tell("I file it.")]), Step()]
    return _script(Story(TRIP, steps))


SAY_TWICE = Scene(_repeating, (), ("I file it.",))


async def _answering(_desks: Desks) -> Script:
    trip = [Step(calls=[_file("Journey")]), Step(text="Your trip is filed.")]
    lunch = [Step(calls=[_file("Lunch")]), Step(text="Your lunch is filed.")]
    return _script(Story(LUNCH, lunch), Story(TRIP, trip))


ANSWER = Scene(
    _answering,
    ("Journey", "Lunch"),
    ("Your trip is filed.", "Your lunch is filed."),
    said=((TRIP, "steering"), (LUNCH, "follow_up")),
    content={"closing_text": "publish"},
)


async def _consenting(desks: Desks) -> Script:
    report = await desks.desk.submitted("alice", 5_000)
    remind = Call("expense-report-remind", {"targetRecordId": report, "operationType": "UPDATE"})
    steps = [
        Step(calls=[_file("Journey"), remind, _file("Meal")]),
        Step(calls=[_tell("Done.")]),
        Step(),
    ]
    return _script(Story(TRIP, steps))


CONSENT = Scene(_consenting, ("Journey", "Meal"), ("Done.",))


async def _riding(_desks: Desks) -> Script:
    ride = Call("sample-taxi-order", {"to": "Hongqiao", "card": "6222 0212"})
    steps = [Step(calls=[ride, _file("Journey")]), Step(calls=[_tell("It comes.")]), Step()]
    return _script(Story(TRIP, steps))


RIDE = Scene(_riding, ("Journey",), ("It comes.",), packs=str(SAMPLES))


async def _reading(_desks: Desks) -> Script:
    steps = [
        Step(calls=[Call("expense-report-list", {}), _file("Journey")]),
        Step(calls=[_tell("There are none.")]),
        Step(),
    ]
    return _script(Story(TRIP, steps))


READ = Scene(_reading, ("Journey",), ("There are none.",))


LONG_TEXT = "word " * 1_500


async def _talking(_desks: Desks) -> Script:
    talk = [Step(calls=[_tell(f"{number}: {LONG_TEXT}")]) for number in range(9)]
    summary = Story("Summarise what happened", [Step(text="I talked.")])
    return _script(summary, Story(TRIP, [*talk, Step()]))


TALK = Scene(
    _talking,
    (),
    tuple(f"{number}: {LONG_TEXT}" for number in range(9)),
    content={"limits": {"tokens": 5_000_000, "steps": 60}},
    context_tokens=32_000,
)


async def _delegating(desks: Desks) -> Script:
    desks.enable("alice", HELPER)
    hand = Call("delegate", {"agent": HELPER, "task": ERRAND})
    steps = [
        Step(calls=[_file("Journey"), hand, _file("Meal")]),
        Step(calls=[_tell("42.")]),
        Step(),
    ]
    return _script(Story(ERRAND, [Step(text="42 bolts."), Step()]), Story(TRIP, steps))


HAND_ON = Scene(_delegating, ("Journey", "Meal"), ("42.",), content={"contacts": [HELPER]})
