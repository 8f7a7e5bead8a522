"""What the planner reads back from the transcript; besides it there is no memory (RUN-107).

Each call it makes carries in its id what it was for and up to which message it had read, so that
the next turn knows what is done, and which message is still to be answered.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.identity.search import fold
from app.kernel import json
from app.runs.models.planner.slots import dates
from app.runs.models.protocol import Ask, Entry
from app.runs.states import EntryKind

READ, SEARCH, SEND, AWAIT = "read_record", "search_commands", "send_message", "await_message"
TIMER, RUN, SILENCE = "await_timer", "run_command", "finish_silently"
LONGEST = 1_000  # characters of a message that is read: some of the search is quadratic
SCHEDULE, TASK = "schedule", "task"  # notes that say what a run is for
_ID = re.compile(r"p(\d+)-(\d+)-(\d+)([a-z])")


class Purpose(StrEnum):
    """What a call is for: the last letter of its id."""

    LOOK = "l"
    BRIEF = "b"
    ACT = "a"
    SAY = "s"
    ASK = "q"
    PAUSE = "t"


@dataclass(frozen=True, slots=True)
class Step:
    """A call of an earlier turn, with its result."""

    tool: str
    arguments: Mapping[str, Any]
    purpose: Purpose | None
    result: Mapping[str, Any]
    seq: int

    @property
    def outcome(self) -> str:
        """One of `done`, `refused`, `denied` and the other words of RUN-87."""
        return str(self.result.get("outcome", ""))


@dataclass(frozen=True, slots=True)
class Line:
    """What somebody wrote to the agent in this run.

    Attributes:
        text: its head, if it is longer than anybody reads.
        note: of which kind it is, where it is no message: `schedule` or `task`.
    """

    seq: int
    text: str
    is_principal: bool
    sender_kind: str
    sender_name: str
    note: str = ""
    is_too_long: bool = False


@dataclass
class Scene:
    """One ask, as the planner sees it.

    Attributes:
        pending: messages that are not answered yet, the oldest first.
        steps: calls made for them.
        question: what the last question was about (`expects`), if it waits for an answer.
    """

    ask: Ask
    lines: list[Line] = field(default_factory=list)
    all_steps: list[Step] = field(default_factory=list)
    pending: list[Line] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    question: Mapping[str, Any] | None = None

    @property
    def last_seq(self) -> int:
        """Of the newest entry."""
        return self.ask.entries[-1].seq if self.ask.entries else 0

    @cached_property
    def today(self) -> date:
        """In the principal's zone."""
        try:
            zone = ZoneInfo(self.ask.timezone)
        except (ZoneInfoNotFoundError, ValueError):
            zone = ZoneInfo("UTC")
        return self.ask.now.astimezone(zone).date()

    @property
    def acted(self) -> list[Step]:
        """The calls of the newest batch that acted, for what is pending."""
        acts = [step for step in self.steps if step.purpose is Purpose.ACT]
        newest = max((step.seq for step in acts), default=0)
        return [step for step in acts if step.seq == newest]

    def since(self, seq: int) -> list[Step]:
        """What came after a batch."""
        return [step for step in self.steps if step.seq > seq]

    def results(self, tool: str, arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """What was answered to this very call, for what is pending."""
        return [
            step.result
            for step in self.steps
            if step.tool == tool and step.arguments == arguments and step.purpose is Purpose.LOOK
        ]

    def said_before(self) -> Iterator[str]:
        """Texts of the person and of the agent itself, the newest first."""
        for entry in reversed(self.ask.entries):
            body = entry.body
            if entry.kind is EntryKind.HISTORY or _is_heard(entry):
                if body.get("is_principal") or body.get("is_own"):
                    yield str(body.get("text", ""))[:LONGEST]
            elif entry.kind is EntryKind.RESPONSE:
                for call in reversed(body.get("calls", ())):
                    if call["tool"] in {SEND, AWAIT}:
                        told = _object(call["arguments"])
                        yield str(told.get("text") or told.get("question") or "")

    @cached_property
    def people(self) -> dict[str, str]:
        """Visible names of people, and organisations, that results showed with their ids."""
        found: dict[str, str] = {}
        for step in self.all_steps:
            for told in mappings(step.result):
                for key, name in told.items():
                    id = told.get(f"{key.removesuffix('Name')}Id")
                    if key.endswith("Name") and isinstance(name, str) and isinstance(id, str):
                        found[name] = id
        return found

    @cached_property
    def person_name(self) -> str:
        """Of the principal, as messages show it."""
        for entry in reversed(self.ask.entries):
            if entry.body.get("is_principal") and (name := entry.body.get("sender_name")):
                return str(name)
        return ""


def read(ask: Ask) -> Scene:
    """Sort a transcript."""
    scene = Scene(ask)
    results = {
        entry.body["call_id"]: _object(entry.body["text"])
        for entry in ask.entries
        if entry.kind is EntryKind.RESULTS
    }
    covered, since, question = 0, 0, None
    for entry in ask.entries:
        if _is_heard(entry):
            scene.lines.append(_line(entry))
        elif entry.kind is EntryKind.RESPONSE:
            steps = list(_steps(entry, results))
            scene.all_steps += steps
            upto = _covered(entry, steps)
            if upto is not None:
                covered, since = max(covered, upto), entry.seq
                question = _question(steps)
    scene.pending = [line for line in scene.lines if line.seq > covered]
    scene.steps = [step for step in scene.all_steps if step.seq > since]
    scene.question = question
    return scene


def _is_heard(entry: Entry) -> bool:
    """Whether somebody wrote it for this run: a message, or the note that a run begins with."""
    is_note = entry.kind is EntryKind.NOTE
    return entry.kind is EntryKind.INPUT or (is_note and entry.body.get("kind") in {SCHEDULE, TASK})


def _line(entry: Entry) -> Line:
    """What is heard: a schedule is its person's word, without the times; a task is an agent's."""
    body, note = entry.body, ""
    text, kind = str(body.get("text", "")), str(body.get("sender_kind", ""))
    if entry.kind is EntryKind.NOTE:
        note, kind = str(body["kind"]), "agent" if body["kind"] == TASK else "person"
    head = text[:LONGEST]
    return Line(
        seq=entry.seq,
        text=dates.without_times(head) if note == SCHEDULE else head,
        is_principal=body.get("is_principal") is True and note != TASK,
        sender_kind=kind,
        sender_name=str(body.get("sender_name", "")),
        note=note,
        is_too_long=len(text) > LONGEST or len(fold(text)) > LONGEST,  # one sign may be eighteen
    )


def _steps(entry: Entry, results: Mapping[str, Mapping[str, Any]]) -> Iterator[Step]:
    for call in entry.body.get("calls", ()):
        found = _ID.fullmatch(str(call.get("provider_id", "")))
        purpose = Purpose(found[4]) if found and found[4] in set(Purpose) else None
        yield Step(
            call["tool"],
            _object(call["arguments"]),
            purpose,
            results.get(call["id"], {}),
            entry.seq,
        )


def _covered(entry: Entry, steps: Sequence[Step]) -> int | None:
    """Up to which message a response answers; None if it is a step on the way."""
    calls = entry.body.get("calls", ())
    if not calls:
        return entry.seq
    last = steps[-1]
    if last.purpose in {Purpose.SAY, Purpose.ASK}:
        if last.outcome not in {"done", ""}:
            return None
        found = _ID.fullmatch(str(calls[-1].get("provider_id", "")))
        return int(found[1]) if found else entry.seq
    return entry.seq if last.purpose is None and last.tool in {SEND, AWAIT, SILENCE} else None


def _question(steps: Sequence[Step]) -> Mapping[str, Any] | None:
    last = steps[-1] if steps else None
    if last is None or last.tool != AWAIT or last.outcome == "refused":
        return None
    expects = last.arguments.get("expects")
    return expects if isinstance(expects, Mapping) else None


def mappings(told: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in a result, however deep."""
    if isinstance(told, Mapping):
        yield told
        for each in told.values():
            yield from mappings(each)
    elif isinstance(told, list):
        for each in told:
            yield from mappings(each)


def _object(text: str) -> Mapping[str, Any]:
    try:
        told = json.of_column(text)
    except ValueError:
        return {}
    return told if isinstance(told, Mapping) else {}
