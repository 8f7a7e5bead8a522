"""One attempt to ask a model, on record from before its first byte to its end (RUN-28)."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from sqlmodel import Session, func, select

from app.kernel import clock, db, ids, json
from app.kernel.db import Work
from app.kernel.prepared import Prepared
from app.runs import heads, lease, spending, told, transcript, writing
from app.runs.lease import Claim
from app.runs.models import prices
from app.runs.models.foreign import clean
from app.runs.models.protocol import Ask, Entry, ModelFault, Offered, Response, Usage
from app.runs.run_models import ModelRequest
from app.runs.session import RunSession
from app.runs.states import EntryKind, Purpose, RequestState
from app.runs.thinking import Thinking

_COLUMNS = (
    *("tenant_id", "id", "run_id", "turn", "attempt", "purpose", "thought_id", "provider"),
    *("model", "model_version", "request_digest", "state", "measured", "started_at"),
)
_BEGIN = Prepared(
    f"INSERT INTO model_request ({', '.join(_COLUMNS)}) "  # noqa: S608 - our columns
    f"VALUES ({', '.join(':' + name for name in _COLUMNS)})"
)
_END = Prepared(
    "UPDATE model_request SET state = :state, finish = :finish, fault = :fault, "
    "public_error = :public_error, fragment = :fragment, model_version = :model_version, "
    "input_tokens = :input_tokens, cache_read_tokens = :cache_read_tokens, "
    "cache_write_tokens = :cache_write_tokens, output_tokens = :output_tokens, "
    "reasoning_tokens = :reasoning_tokens, measured = :measured, cost_micros = :cost_micros, "
    "currency = :currency, price_source = :price_source, first_event_at = :first_event_at, "
    "ended_at = :ended_at WHERE tenant_id = :tenant_id AND id = :id AND state = 'started'"
)
_ABANDON = Prepared(
    "UPDATE model_request SET state = 'abandoned', ended_at = :now "
    "WHERE tenant_id = :tenant_id AND run_id = :run_id AND state = 'started'"
)
_LATE = Prepared(
    "UPDATE model_request SET input_tokens = :input_tokens, "
    "cache_read_tokens = :cache_read_tokens, cache_write_tokens = :cache_write_tokens, "
    "output_tokens = :output_tokens, reasoning_tokens = :reasoning_tokens, measured = :measured, "
    "cost_micros = :cost_micros, currency = :currency, price_source = :price_source "
    "WHERE tenant_id = :tenant_id AND id = :id AND input_tokens IS NULL"
)
_UNUSED: dict[str, Any] = {
    "input_tokens": None,
    "cache_read_tokens": None,
    "cache_write_tokens": None,
    "output_tokens": None,
    "reasoning_tokens": None,
    "measured": False,
    "cost_micros": None,
    "currency": None,
    "price_source": None,
}
_NOTHING = _UNUSED | dict.fromkeys(("finish", "fault", "public_error", "fragment"))

VERSION = 200  # characters
MOST_TOKENS = 10**9  # of one request; more is nonsense
ECHO = 120  # characters of arguments that are too long to be kept


def new_thought() -> str:
    """The id of what a turn thinks: the same for all attempts of one request."""
    return ids.ulid()


def moment(text: str) -> datetime:
    """The time that a stored result names."""
    return datetime.fromisoformat(text)


async def tried(run: RunSession) -> int:
    """How many attempts of this turn there were: before a crash, or before a shorter answer.

    Only the first turn of an execution may have been tried by an earlier one.
    """
    if run.tried is None:
        return await db.read(tried_for, run.claim, run.turn, Purpose.TURN)
    turn, number = run.tried
    return number if turn == run.turn else 0


def tried_for(session: Session, claim: Claim, turn: int, purpose: Purpose) -> int:
    """The same, of requests for one purpose."""
    query = select(func.max(ModelRequest.attempt)).where(
        ModelRequest.tenant_id == claim.tenant_id,
        ModelRequest.run_id == claim.run_id,
        ModelRequest.turn == turn,
        ModelRequest.purpose == purpose,
    )
    return session.exec(query).one() or 0


def abandon_open(work: Work, claim: Claim) -> None:
    """Close the attempts that a crash left open; the request is asked anew (RUN-67)."""
    key = {"tenant_id": claim.tenant_id, "run_id": claim.run_id}
    _ABANDON.run(work.connection, **key, now=clock.now())


async def note(run: RunSession, kind: str, text: str) -> None:
    """Put a line of the host into the transcript."""
    entry = await writing.now(run, write_note, run, kind, text)
    run.transcript.add(entry)


def write_note(work: Work, run: RunSession, kind: str, text: str) -> Entry:
    """The same, in this transaction."""
    lease.hold(work, run.claim)
    seq, body = run.transcript.next_seq, {"kind": kind, "text": text}
    return transcript.write(work, run.claim, seq, EntryKind.NOTE, body, turn=run.turn)


def digest(run: RunSession, ask: Ask) -> str:
    """SHA-256 of what is sent, hex, made of one for each part: a retry sends the same (RUN-25)."""
    sizes = run.sizes
    hashed = sizes.digest_of_entries.of(list(ask.entries), hashlib.sha256, _add_entry).copy()
    hashed.update(sizes.digest_of_tools.of(partial(_digest_of_tools, ask.tools), ask.tools))
    hashed.update(json.dumps([ask.tools_on, ask.output_limit]))
    return str(hashed.hexdigest())


def _add_entry(hashed: Any, entry: Entry) -> Any:
    said = [entry.seq, entry.kind.value, dict(entry.body)]
    hashed.update(hashlib.sha256(json.dumps(said)).digest())
    return hashed


def _digest_of_tools(tools: Sequence[Offered]) -> bytes:
    hashed = hashlib.sha256()
    for tool in tools:
        hashed.update(hashlib.sha256(json.dumps(dict(tool.schema))).digest())
        hashed.update(json.dumps([tool.name, tool.description]))
    return hashed.digest()


@dataclass(slots=True)
class Attempt:
    """One attempt; its units may run again, so they change nothing but the database."""

    run: RunSession
    ask: Ask
    thought_id: str
    number: int
    purpose: Purpose = Purpose.TURN
    id: str = field(default_factory=ids.ulid)
    thinking: Thinking = field(init=False)
    request_digest: str = field(init=False)
    call_ids: tuple[str, ...] = ()
    first_at: datetime | None = None
    _half: str = ""

    def __post_init__(self) -> None:
        self.thinking = Thinking(self.run, self.thought_id, self.number)
        self.request_digest = digest(self.run, self.ask)

    def heard(self) -> None:
        """Note that the model has begun to answer."""
        self.first_at = self.first_at or clock.now()

    def grow(self, text: str) -> None:
        """Take in a piece of thought or text, and show it; half a character waits for its other."""
        self.heard()
        text = self._half + text
        whole = text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text
        self._half = text[len(whole) :]
        self.thinking.grow(clean(whole))

    def begin(self, work: Work) -> None:
        """Commit that the request goes out.

        Raises:
            LeaseLost, Cancelled: it does not.
        """
        run = self.run
        lease.hold_unless_stopped(work, run.claim)
        _BEGIN.run(
            work.connection,
            tenant_id=run.claim.tenant_id,
            id=self.id,
            run_id=run.claim.run_id,
            turn=run.turn,
            attempt=self.number,
            purpose=self.purpose.value,
            thought_id=self.thought_id,
            provider=run.model.provider,
            model=run.model.name,
            model_version=run.model.version,
            request_digest=self.request_digest,
            state=RequestState.STARTED.value,
            measured=False,
            started_at=clock.now(),
        )
        self.thinking.begin(work)

    def fail(self, work: Work, state: RequestState, fault: ModelFault) -> None:
        """Commit that it broke off; what it said so far stays for the page."""
        lease.hold(work, self.run.claim)
        self._end(
            work,
            state,
            fault=fault.kind[:40],
            public_error=fault.public[:1_000] or None,
            fragment=clean(self.thinking.text) or None,
        )
        self._tell(work)

    def abandon(self, work: Work, is_stopped: bool) -> None:
        """Commit that nobody waits for it any more: it was stopped, or fell over."""
        state = RequestState.CANCELLED if is_stopped else RequestState.ABANDONED
        lease.hold(work, self.run.claim)
        self._end(work, state, fragment=clean(self.thinking.text) or None)
        self._tell(work)

    def accept(self, work: Work, response: Response) -> Entry | None:
        """Commit the response with its end and its usage; None for one that was too long.

        Raises:
            LeaseLost: it comes too late.
        """
        self._finish(work, response)
        entry = None if response.finish == "length" else self._join(work, response)
        heads.thought(work, self.run, clean(self.thinking.text), self.thought_id)
        told.response(work, self.run.facts.told, self.run.turn, self.thought_id)
        return entry

    def accept_aside(self, work: Work, response: Response) -> None:
        """Commit its end and its usage alone, of an answer that joins no transcript.

        Raises:
            LeaseLost: it comes too late.
        """
        self._finish(work, response)
        told.usage(work, self.run.facts.told)

    def _finish(self, work: Work, response: Response) -> None:
        run = self.run
        lease.hold(work, run.claim)
        is_cut = response.finish == "length"
        self._end(
            work,
            RequestState.CUT if is_cut else RequestState.DONE,
            finish=response.finish,
            fragment=clean(self.thinking.text) if is_cut else None,
            model_version=clean(response.model_version or run.model.version)[:VERSION],
            **self._count(work, response),
        )

    def count_late(self, work: Work, response: Response) -> None:
        """Commit what an answer used that came after the run was gone: nothing else of it."""
        key = {"tenant_id": self.run.claim.tenant_id, "id": self.id}
        used = self._count(work, response)
        _LATE.run_with(work.connection, key | _UNUSED | used)

    def _count(self, work: Work, response: Response) -> dict[str, Any]:
        """Add what the answer used to its run; returns it as the request keeps it."""
        run, usage = self.run, _plausible(response.usage)
        price = prices.of(run.profile, response.model_version, usage)
        spending.count(
            work,
            run.claim.tenant_id,
            run.claim.run_id,
            usage,
            price.micros if price else None,
            price.currency if price else None,
            run.estimated_tokens,
        )
        used: dict[str, Any] = {"measured": usage is not None}
        if usage is not None:
            used |= asdict(usage)
        if price is not None:
            used |= {"cost_micros": price.micros, "currency": price.currency}
            used["price_source"] = price.source
        return used

    def _join(self, work: Work, response: Response) -> Entry:
        run = self.run
        if len(self.call_ids) != len(response.calls):
            self.call_ids = tuple(ids.ulid() for _ in response.calls)
        calls = () if run.is_last_step else zip(self.call_ids, response.calls, strict=True)
        body = {
            "thoughts": [clean(thought) for thought in response.thoughts],
            "text": clean(response.text),
            "calls": [
                {
                    "id": call_id,
                    "provider_id": clean(call.provider_id)[:200],
                    "tool": clean(call.name)[:200],
                    "arguments": _bounded(clean(call.arguments)),
                }
                for call_id, call in calls
            ],
            "thought_id": self.thought_id,
        }
        return transcript.write(
            work,
            run.claim,
            run.transcript.next_seq,
            EntryKind.RESPONSE,
            body,
            turn=run.turn,
            provider=run.model.provider,
            provider_body=_storable(response.provider_body),
            tokens=response.usage.output_tokens if response.usage else 0,
        )

    def _end(self, work: Work, state: RequestState, **values: Any) -> None:
        _END.run(
            work.connection,
            tenant_id=self.run.claim.tenant_id,
            id=self.id,
            state=state.value,
            first_event_at=self.first_at,
            ended_at=clock.now(),
            **{**_NOTHING, "model_version": self.run.model.version, **values},
        )

    def _tell(self, work: Work) -> None:
        told.turn(work, self.run.facts.told, self.run.turn, self.thought_id)


def _plausible(usage: Usage | None) -> Usage | None:
    """What a provider counted, where it is a number of tokens that a column holds."""
    if usage is None or all(0 <= number <= MOST_TOKENS for number in asdict(usage).values()):
        return usage
    return None


def _bounded(arguments: str) -> str:
    """Arguments that can be kept; of longer ones the beginning, which no call can be made of."""
    if len(arguments) <= json.MAX_BYTES:
        return arguments
    return f"{arguments[:ECHO]}… [{len(arguments)} characters]"


def _storable(body: Any) -> Any:
    """A provider's own form; None where no database keeps it: then the neutral one goes back."""
    try:
        return None if b"\\u0000" in json.dumps(body) else body
    except (TypeError, ValueError):  # half a character
        return None
