"""A model that says what was written down for it, step by step (RUN-109).

    script = Script(
        [
            Step(calls=[Call("send_message", {"text": "Hello"})]),
            Step(text="I said hello.", gate="closing"),
        ]
    )
    model = ScriptedModel(script)
    await model.gate("closing").reached.wait()
    model.gate("closing").open()

A script may hold several stories, each for the inputs whose text it names. A story's steps count
from that input on, and where a transcript already holds answers to it the story goes on after
them: so a process that takes a run over goes on where the first one was killed.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.runs.models import faults
from app.runs.models.protocol import (
    Answered,
    Ask,
    CallDelta,
    Delta,
    Entry,
    ModelFault,
    Proposed,
    Response,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from app.runs.states import EntryKind

JOINS = frozenset({"stop", "tool_calls"})  # answers of which a transcript keeps an entry
HEARD = frozenset({EntryKind.INPUT, EntryKind.NOTE})

Arguments = Mapping[str, Any] | str | Callable[[Ask], Mapping[str, Any]]


class OutOfSteps(AssertionError):
    """The model was asked once more than its script foresees."""


class NotAsScripted(AssertionError):
    """What the model was asked is not what its script expects."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call the model makes; a `str` as arguments is sent as it is, broken JSON included."""

    tool: str
    arguments: Arguments = field(default_factory=dict)
    provider_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One answer, or one attempt that fails.

    Attributes:
        text: a whole, or the pieces in which it arrives; so are the thoughts.
        finish: empty: `tool_calls` with calls, else `stop`; None: the stream ends without one.
        fault: raised after the pieces were sent.
        check: called with the ask before anything else; raises if it is not as it should be.
        contains: texts that must occur in what is asked.
        gate: waited at before the first piece; `end_gate`: after the last, before the end.
    """

    thoughts: Sequence[str] = ()
    text: str | Sequence[str] = ()
    calls: Sequence[Call] = ()
    finish: str | None = ""
    usage: Usage | None = None
    fault: ModelFault | str | None = None
    model_version: str | None = None
    provider_body: Any = None
    check: Callable[[Ask], None] | None = None
    contains: Sequence[str] = ()
    gate: str | None = None
    end_gate: str | None = None

    @property
    def ended_by(self) -> str | None:
        """The finish reason this step ends with."""
        return ("tool_calls" if self.calls else "stop") if self.finish == "" else self.finish

    @property
    def joins(self) -> bool:
        """Whether a transcript keeps the answer."""
        return self.fault is None and self.ended_by in JOINS


@dataclass(frozen=True, slots=True)
class Story:
    """What the model does about inputs in whose text `when` occurs."""

    when: str
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Script:
    """The steps of a model: of its stories, or else one after the other, whoever asks."""

    steps: Sequence[Step] = ()
    stories: Sequence[Story] = ()


class Gate:
    """A place where a step waits until it is opened."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._opened = asyncio.Event()

    def open(self) -> None:
        """Let the step go on, and whoever comes later too."""
        self._opened.set()

    async def passed(self) -> None:
        """Wait here."""
        self.reached.set()
        await self._opened.wait()


class ScriptedModel:
    """The model of one script.

    Attributes:
        asks: what it was asked so far, the oldest first.
    """

    provider = "scripted"
    version = "1"

    def __init__(
        self,
        script: Script | Sequence[Step],
        *,
        name: str = "scripted",
        context_tokens: int = 128_000,
        ids_are_per_response: bool = False,
    ) -> None:
        self.script = script if isinstance(script, Script) else Script(script)
        self.name = self.label = name
        self.context_tokens = context_tokens
        self.ids_are_per_response = ids_are_per_response
        self.asks: list[Ask] = []
        self._gates: dict[str, Gate] = {}
        self._at: dict[str, int] = {}  # by story and input: the step to come
        self._calls = 0

    def gate(self, name: str) -> Gate:
        """The gate of that name, whether a step waits there already or not."""
        return self._gates.setdefault(name, Gate())

    @property
    def steps_left(self) -> int:
        """How many of the steps outside of stories were not asked for yet."""
        return len(self.script.steps) - self._at.get("", 0)

    async def stream(self, ask: Ask) -> AsyncIterator[Delta]:
        """Say the next step.

        Raises:
            ModelFault: the step is a fault.
            OutOfSteps: there is no next step.
            NotAsScripted: the step expects another ask.
        """
        self.asks.append(ask)
        step = self._next(ask)
        _check(step, ask)
        if step.gate:
            await self.gate(step.gate).passed()
        for thought in step.thoughts:
            yield ThoughtDelta(thought)
        for piece in _pieces(step.text):
            yield TextDelta(piece)
        for call in step.calls:
            yield CallDelta(call.tool)
        if step.end_gate:
            await self.gate(step.end_gate).passed()
        if step.fault is not None:
            raise _again(step.fault)
        yield Answered(self._response(step, ask))

    def _next(self, ask: Ask) -> Step:
        key, steps, joined = self._story(ask)
        at = self._at.get(key)
        if at is None:
            at = _after(steps, joined)
        if at >= len(steps):
            raise OutOfSteps(f"{self.name}: no step {at + 1} of {key or 'the script'}")
        self._at[key] = at + 1
        return steps[at]

    def _story(self, ask: Ask) -> tuple[str, Sequence[Step], int]:
        """The steps that count now, their name, and how many answers to them there are."""
        answers = 0
        for entry in reversed(ask.entries):
            if entry.kind == EntryKind.RESPONSE:
                answers += 1
            if entry.kind in HEARD:
                for number, story in enumerate(self.script.stories):
                    if story.when in entry.body["text"]:
                        return f"{number}:{_identity(entry)}", story.steps, answers
        return "", self.script.steps, 0

    def _response(self, step: Step, ask: Ask) -> Response:
        return Response(
            thoughts=tuple(step.thoughts),
            text="".join(_pieces(step.text)),
            calls=tuple(self._proposed(call, ask) for call in step.calls),
            finish=step.ended_by,
            usage=step.usage,
            model_version=step.model_version or self.version,
            provider_body=step.provider_body,
        )

    def _proposed(self, call: Call, ask: Ask) -> Proposed:
        self._calls += 1
        seen = sum(len(entry.body.get("calls", ())) for entry in ask.entries)
        return Proposed(
            provider_id=call.provider_id or f"scripted-{seen}-{self._calls}",
            name=call.tool,
            arguments=_written(call.arguments, ask),
        )


class _Fault(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: str
    retry_after_s: float | None = None
    diagnostic: str = ""


class _Call(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tool: str
    arguments: dict[str, Any] | str = {}
    provider_id: str | None = None


class _Step(BaseModel):
    model_config = ConfigDict(extra="forbid")

    thoughts: list[str] = []
    text: str | list[str] = []
    calls: list[_Call] = []
    finish: str | None = ""
    usage: dict[str, int] | None = None
    fault: _Fault | str | None = None
    contains: list[str] = []

    def step(self) -> Step:
        written = self.fault
        fault = (
            faults.fault(
                written.kind,
                retry_after_s=written.retry_after_s,
                diagnostic=written.diagnostic,
            )
            if isinstance(written, _Fault)
            else written
        )
        return Step(
            thoughts=self.thoughts,
            text=self.text,
            calls=[Call(call.tool, call.arguments, call.provider_id) for call in self.calls],
            finish=self.finish,
            usage=Usage(**self.usage) if self.usage else None,
            fault=fault,
            contains=self.contains,
        )


class _Story(BaseModel):
    model_config = ConfigDict(extra="forbid")

    when: str = Field(min_length=1)
    steps: list[_Step]


class _Script(BaseModel):
    model_config = ConfigDict(extra="forbid")

    steps: list[_Step] = []
    stories: list[_Story] = []


def from_json(text: str | bytes) -> Script:
    """A script as a file writes it: `{"steps": […], "stories": [{"when", "steps"}]}`.

    A step has the fields of `Step` that are data; `fault` is a kind, or an object with `kind`,
    `retry_after_s` and `diagnostic`.

    Raises:
        pydantic.ValidationError: it is not of that form.
    """
    written = _Script.model_validate_json(text)
    return Script(
        [step.step() for step in written.steps],
        [Story(each.when, [step.step() for step in each.steps]) for each in written.stories],
    )


_registered: dict[str, ScriptedModel] = {}


def register(name: str, script: Script | Sequence[Step]) -> ScriptedModel:
    """Make the model that a profile names `scripted:<name>`; a later one takes its place."""
    _registered[name] = ScriptedModel(script, name=name)
    return _registered[name]


def named(name: str) -> ScriptedModel:
    """The registered model `name`; a name that ends in `.json` is a file, read once.

    Raises:
        ModelFault: there is no such script, or it cannot be read (`misconfigured`).
    """
    if name not in _registered:
        if not name.endswith(".json"):
            raise faults.fault("misconfigured", diagnostic=f"no script is named {name!r}")
        try:
            register(name, from_json(Path(name).read_bytes()))
        except (OSError, ValueError) as error:
            raise faults.fault("misconfigured", diagnostic=str(error)) from error
    return _registered[name]


def _identity(entry: Entry) -> str:
    return str(entry.body.get("message_id") or f"{entry.seq}:{entry.body['text']}")


def _after(steps: Sequence[Step], answers: int) -> int:
    """The step after the one that gave the last of `answers`."""
    for number, step in enumerate(steps):
        if answers == 0:
            return number
        answers -= step.joins
    return len(steps)


def _check(step: Step, ask: Ask) -> None:
    if step.check is not None:
        step.check(ask)
    if not step.contains:
        return
    asked = json.dumps([dict(entry.body) for entry in ask.entries], ensure_ascii=False)
    missing = [text for text in step.contains if text not in asked]
    if missing:
        raise NotAsScripted(f"not in what was asked: {missing}")


def _pieces(text: str | Sequence[str]) -> Sequence[str]:
    return ([text] if text else []) if isinstance(text, str) else text


def _again(fault: ModelFault | str) -> ModelFault:
    if isinstance(fault, str):
        return faults.fault(fault)
    return ModelFault(
        fault.kind,
        retryable=fault.retryable,
        retry_after_s=fault.retry_after_s,
        public=fault.public,
        diagnostic=fault.diagnostic,
    )


def _written(arguments: Arguments, ask: Ask) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments(ask) if callable(arguments) else dict(arguments))
