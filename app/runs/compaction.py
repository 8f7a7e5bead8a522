"""Making room: old tool results shortened, then old turns replaced by one summary (RUN-27, RUN-79).

A cut falls between a whole batch and what follows, never inside; accepted inputs stay word for
word, and so do the messages the run sent.
"""

from collections.abc import Sequence

from app.kernel import json
from app.kernel.db import Work
from app.runs import budget, lease, summaries, transcript, writing
from app.runs.errors import RunFailed
from app.runs.models.protocol import Ask, Entry
from app.runs.session import RunSession
from app.runs.states import EntryKind

FULL = 0.8  # of the room
KEPT_TURNS, KEPT_AFTER_OVERFLOW = 6, 2
WORTH_IT = 0.9  # of what it was: more is no gain
SEND = "send_message"


async def fit(run: RunSession) -> Ask:
    """The next request, with room made for it where that is scarce.

    Raises:
        RunFailed: `context_overflow`; it does not fit whatever is left out.
    """
    limit = budget.room(run)
    ask = budget.ask_of(run)
    size = run.estimated_tokens
    if size <= FULL * limit:
        return ask
    await _shorten(run)
    if _size(run) > FULL * limit and run.compacted_at_turn != run.turn:
        await _fold(run, KEPT_TURNS)
        if _size(run) > WORTH_IT * size:
            run.compacted_at_turn = run.turn
    ask = budget.ask_of(run)
    if run.estimated_tokens > limit:
        raise RunFailed("context_overflow", "The conversation is too long for the model.")
    return ask


async def recover(run: RunSession) -> None:
    """After the provider said that it was too long: keep two turns."""
    await _shorten(run)
    await _fold(run, KEPT_AFTER_OVERFLOW)


async def _shorten(run: RunSession) -> None:
    turn = run.turn - budget.SHORTENED_AFTER - 1
    if turn > 0 and any(
        each.kind == EntryKind.RESULTS
        and each.turn <= turn
        and len(each.body["text"]) > budget.SHORT
        for each in budget.visible(list(run.transcript))
    ):
        await _write(run, {"shorten_until_turn": turn})


async def _fold(run: RunSession, keep: int) -> None:
    """Replace what is older than the newest `keep` turns by one summary."""
    until = cut_before(list(run.transcript), run.turn - keep - 1)
    if until is None:
        return
    old = [each for each in budget.visible(list(run.transcript)) if each.seq <= until]
    text = await summaries.of(run, old)
    said = "\n".join(f"- {text}" for text in _sent(old))
    if said:
        text = f"{text}\n\nMessages sent, word for word:\n{said}"
    await _write(run, {"text": text, "until_seq": until})


def cut_before(entries: Sequence[Entry], turn: int) -> int | None:
    """The number of the last entry up to a turn, whose batch is whole; None: nothing to fold."""
    folded = max((each.body.get("until_seq", 0) for each in entries), default=0)
    old = [
        each.seq
        for each in entries
        if each.kind in (EntryKind.RESPONSE, EntryKind.RESULTS) and each.turn <= turn
    ]
    return max(old) if old and max(old) > folded else None


def _sent(entries: Sequence[Entry]) -> list[str]:
    texts: list[str] = []
    for each in entries:
        for call in each.body.get("calls", []) if each.kind == EntryKind.RESPONSE else []:
            if call["tool"] == SEND:
                try:
                    texts.append(str(json.loads(call["arguments"].encode())["text"]))
                except (ValueError, KeyError, TypeError, json.BadJSON):
                    continue
    return texts


async def _write(run: RunSession, body: dict[str, object]) -> None:
    entry = await writing.now(run, _put, run, body)
    run.transcript.add(entry)


def _put(work: Work, run: RunSession, body: dict[str, object]) -> Entry:
    lease.hold(work, run.claim)
    seq = run.transcript.next_seq
    return transcript.write(work, run.claim, seq, EntryKind.SUMMARY, body, turn=run.turn)


def _size(run: RunSession) -> int:
    budget.ask_of(run)
    return run.estimated_tokens
