"""One execution of one run: what belongs to it alone, and dies with it (RUN-2).

Store, model and stop signal are lent to it. Nothing of it is kept by principal, agent or process.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from app.commands.catalogue import Catalogue
from app.identity.principal import Principal
from app.kernel import json
from app.runs.errors import Cancelled, LeaseLost
from app.runs.lease import Claim
from app.runs.models.protocol import Entry, Model, Offered, Profile
from app.runs.outcome import WAITING_FOR, ProposedCall, Tools
from app.runs.outside import Outside
from app.runs.release import Content
from app.runs.states import EntryKind, RunKind
from app.runs.told import Whose
from app.runs.tool import Tool

STOPPED = "not_started"  # the outcome of a call that the breaker stopped
FINISH_SILENTLY = "finish_silently"
SCHEDULE, TASK = "schedule", "task"  # kinds of the note that a run without a message begins with

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What never changes about a run while it is executed.

    Attributes:
        conversation_id: its current one; of a run without a lane the direct one with its principal.
        other_aid: who is on the other side of a direct conversation; None in a group.
        watcher_id: the user who may see its thoughts; None: nobody but auditors (RUN-80).
    """

    tenant_id: str
    run_id: str
    root_run_id: str
    kind: RunKind
    agent_id: str
    agent_aid: str
    agent_name: str
    release_id: str
    lane_id: str | None
    conversation_id: str | None
    group_id: str | None
    other_aid: str | None
    discussion: str
    user_id: str | None
    watcher_id: str | None
    task_id: str | None
    parent_run_id: str | None
    depth: int
    locale: str = "en"
    timezone: str = "UTC"
    engine: str = "native"

    @property
    def told(self) -> Whose:
        """The run, as news of it names it."""
        return Whose(
            tenant_id=self.tenant_id,
            id=self.run_id,
            user_id=self.user_id,
            conversation_id=self.conversation_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentInput:
    """The input that is being handled: the one admitted last (RUN-21).

    Attributes:
        message_id: of the row; `sent_as` is its sender's id, which replies name.
        digest: SHA-256 of its text, hex.
    """

    input_id: str
    message_id: str
    sent_as: str
    sender_aid: str
    text: str
    digest: str
    is_from_person: bool


class Transcript:
    """What the model saw of this run, in order; the rows are written first, then these."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self._entries: list[Entry] = []
        self._answered: set[str] = set()
        self._batch: Tools | None = None
        self.add(*entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    @property
    def next_seq(self) -> int:
        """The number of the entry to come."""
        return self._entries[-1].seq + 1 if self._entries else 1

    def add(self, *entries: Entry) -> None:
        """Take in what was committed."""
        for entry in entries:
            if entry.kind == EntryKind.RESULTS:
                self._answered.add(entry.body["call_id"])
            elif entry.kind == EntryKind.RESPONSE:
                self._batch = _batch_of(entry)
        self._entries.extend(entries)

    def last(self, *kinds: EntryKind) -> Entry | None:
        """The newest entry of some kinds."""
        return next((each for each in reversed(self._entries) if each.kind in kinds), None)

    def answered(self) -> AbstractSet[str]:
        """Ids of the calls that have a result."""
        return self._answered

    def batch(self) -> Tools | None:
        """The calls of the newest response, None where it made none."""
        return self._batch

    def closing_wait(self) -> Mapping[str, Any] | None:
        """What the newest call waits for, if nothing came after it: `{"waiting_for", …}`."""
        if not self._entries or self._entries[-1].kind != EntryKind.RESULTS:
            return None
        text = self._entries[-1].body["text"]
        result = json.of_column(text) if WAITING_FOR in text else {}
        return result if WAITING_FOR in result else None

    @property
    def has_finished_silently(self) -> bool:
        """Whether the model ended its round by the tool for that, and nothing came after it."""
        last = self._entries[-1] if self._entries else None
        if last is None or last.kind != EntryKind.RESULTS or last.body["tool"] != FINISH_SILENTLY:
            return False
        return bool(json.of_column(last.body["text"]).get("outcome") == "done")

    def closing_text(self) -> str | None:
        """The text of the newest response, if it called nothing and nothing came after it.

        A run that was taken over there has its answer already: the model is not asked again.
        """
        last = self._entries[-1] if self._entries else None
        if last is None or last.kind != EntryKind.RESPONSE or last.body.get("calls"):
            return None
        return str(last.body.get("text") or "")

    @property
    def asks_the_model(self) -> bool:
        """Whether the next turn is a request: nothing of the last one is left open."""
        return (
            self.closing_text() is None
            and self.open_batch() is None
            and self.closing_wait() is None
            and not self.has_finished_silently
        )

    def open_batch(self) -> Tools | None:
        """The newest batch, if one of its calls has no result yet."""
        batch = self._batch
        if batch is None or all(call.id in self._answered for call in batch.calls):
            return None
        return batch


def _batch_of(response: Entry) -> Tools | None:
    calls = response.body.get("calls")
    if not calls:
        return None
    return Tools(
        tuple(
            ProposedCall(
                id=call["id"],
                provider_id=call["provider_id"],
                tool=call["tool"],
                arguments=call["arguments"],
                ordinal=ordinal,
                turn=response.turn,
            )
            for ordinal, call in enumerate(calls)
        )
    )


class Kept(Generic[T]):
    """What was made of some objects, until it is asked for of others."""

    def __init__(self) -> None:
        self._known: tuple[tuple[object, ...], T] | None = None

    def of(self, make: Callable[[], T], *sources: object) -> T:
        """What `make` gives, or gave of these very objects."""
        known = self._known
        if known is None or any(a is not b for a, b in zip(known[0], sources, strict=True)):
            known = self._known = (sources, make())
        return known[1]


class Growing(Generic[T]):
    """What was made of entries one by one, carried on while a list only adds to the one before."""

    def __init__(self) -> None:
        self._known: tuple[list[Entry], T] | None = None

    def of(self, entries: list[Entry], begin: Callable[[], T], add: Callable[[T, Entry], T]) -> T:
        """What `add` makes of all of them, in their order."""
        seen, made = self._known or ([], begin())
        if entries[: len(seen)] != seen:
            seen, made = [], begin()
        for entry in entries[len(seen) :]:
            made = add(made, entry)
        self._known = (entries, made)
        return made


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens and SHA-256 of what is asked: of entries, and of the tools that go with them."""

    entries: Growing[int] = field(default_factory=Growing)
    tools: Kept[int] = field(default_factory=Kept)
    digest_of_entries: Growing[Any] = field(default_factory=Growing)
    digest_of_tools: Kept[bytes] = field(default_factory=Kept)


@dataclass(frozen=True, slots=True)
class Past:
    """A call that is over, for the breakers (RUN-85)."""

    tool: str
    arguments: str
    outcome: str
    has_failed: bool


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A unit that is written with what comes next."""

    unit: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(slots=True)
class RunSession:
    """One execution.

    Attributes:
        catalogue: its commands, as they were found last.
        tools: of this turn, by name.
        compacted_at_turn: where compaction gained nothing; not tried again before the next batch.
        tried: the turn that was asked last, and how often; None: nothing was, in this execution.
        viewer_aid: who outside reads its thoughts (`heads.py`); None: nobody.
        recent: the lane's last done commands, the newest first.
        active_ms_before: of earlier executions of the same run.
        sizes: tokens and digests of what is asked.
        kit, offered: the tools of a turn, as they were chosen and as a model sees them.
        estimated_tokens: of the request at hand; `token_ratio` corrects estimates by what the last
            one was measured at (RUN-79).
        flawed: flawed batches in a row; `history` is every call so far: tool, digest of its
            arguments, digest of its outcome, and whether it failed; `before_input` of them
            came before the newest input.
        allowance: overflow recoveries left before the next whole batch (RUN-30).
        has_heard: whether steering was admitted at the boundary at hand: one is enough (RUN-11).
        reminded: whether this round was told that its text was not sent (RUN-53).
        stopped: set by the heartbeat: why nothing more may begin.
        outside: its connections to servers of others, which end with it.
        unwritten: what is written with what comes next (`writing.py`); `writing` is held by who
            commits it; `in_doubt` are the first of it whose commit nobody heard the end of, and
            the mark of their unit.
        waited: call id -> answer of what it waited for, of a run that resumed inside a batch.
    """

    claim: Claim
    facts: Facts
    content: Content
    fingerprint: str
    principal: Principal | None
    profile: Profile
    model: Model
    transcript: Transcript
    began_at: datetime
    active_ms_before: int = 0
    estimated_tokens: int = 0
    token_ratio: float = 1.0
    sizes: Sizes = field(default_factory=Sizes)
    kit: Kept[dict[str, Tool]] = field(default_factory=Kept)
    offered: Kept[Sequence[Offered]] = field(default_factory=Kept)
    recent: Sequence[Mapping[str, Any]] = ()
    catalogue: Catalogue | None = None
    tools: Mapping[str, Tool] = field(default_factory=dict)
    turn: int = 0
    round: int = 1
    scope: int = 1
    allowance: int = 1
    flawed: int = 0
    history: list["Past"] = field(default_factory=list)
    before_input: int = 0
    ids_of_earlier_batches: set[str] = field(default_factory=set)
    current_input: CurrentInput | None = None
    has_heard: bool = False
    reminded: bool = False
    tried: tuple[int, int] | None = None
    compacted_at_turn: int = 0
    viewer_aid: str | None = None
    is_last_step: bool = False
    outside: Outside = field(default_factory=Outside)
    waited: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    unwritten: list[Unwritten] = field(default_factory=list)
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    in_doubt: tuple[int, str] | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: Exception | None = None

    @property
    def asked_for(self) -> str:
        """The words it works on: of the input at hand, else of the note that it began with."""
        if self.current_input is not None:
            return self.current_input.text
        notes = (each.body for each in self.transcript if each.kind == EntryKind.NOTE)
        return next(
            (str(note["text"]) for note in notes if note.get("kind") in (SCHEDULE, TASK)), ""
        )

    def active_ms(self, now: datetime) -> int:
        """How long the run has worked so far, waits aside."""
        return self.active_ms_before + int((now - self.began_at).total_seconds() * 1_000)

    def check(self) -> None:
        """Return while the run may go on.

        Raises:
            Cancelled, LeaseLost: the heartbeat heard so.
        """
        if self.stopped is not None:
            raise self.stopped

    def end(self, why: Cancelled | LeaseLost) -> None:
        """Let nothing more begin; what waits on a model wakes at once."""
        if self.stopped is None:
            self.stopped = why
            self.stop.set()

    def unanswered(self, batch: Tools) -> Iterator[ProposedCall]:
        """The calls of a batch without a result, in the model's order."""
        answered = self.transcript.answered()
        return (call for call in batch.calls if call.id not in answered)

    def is_inside(self, batch: Tools) -> bool:
        """Whether the run resumed in the middle of a batch, which was checked before."""
        answered = self.transcript.answered()
        return any(call.id in answered or call.id in self.waited for call in batch.calls)

    def repeats_of(self, tool: str, arguments: str) -> int:
        """How often the newest calls in a row were this very one, with one and the same outcome.

        Those that the breaker stopped count with those before them. An input between two of them
        is a reason to do the same again: who hears seven messages may be silent seven times.
        """
        count, outcome = 0, None
        for past in reversed(self.history[self.before_input :]):
            if (past.tool, past.arguments) != (tool, arguments):
                break
            if past.outcome != STOPPED:
                outcome = outcome or past.outcome
                if past.outcome != outcome:
                    break
            count += 1
        return count

    @property
    def failed_in_a_row(self) -> int:
        """How many of the newest calls failed, without one that did not."""
        count = 0
        for past in reversed(self.history):
            if not past.has_failed:
                break
            count += 1
        return count
