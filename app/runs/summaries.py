"""What stands in the place of old turns: a model's words, or a digest where there is no model."""

from collections.abc import Sequence

from app.kernel import clock, db, json
from app.runs import attempts, guards, streaming
from app.runs.attempts import Attempt
from app.runs.errors import LimitReached
from app.runs.models.foreign import clean
from app.runs.models.protocol import Ask, Entry, ModelFault
from app.runs.session import RunSession
from app.runs.states import EntryKind, Purpose

OFFLINE = "offline"
LONGEST = 6_000  # characters
ASKED = (
    "Summarise what happened so far for yourself: what was asked, what was found, what was done "
    "with which record and its number, what was refused and why, what is still open. Facts only, "
    "no more than 300 words."
)


async def of(run: RunSession, old: Sequence[Entry]) -> str:
    """A summary of old entries; a model that gives none, or no step for it, leaves the digest."""
    if run.model.provider == OFFLINE:
        return digest(old)
    try:
        await guards.before_request(run)
        return await _asked(run, old) or digest(old)
    except (ModelFault, LimitReached):
        return digest(old)


def digest(old: Sequence[Entry]) -> str:
    """A line for each call and what came of it: the same for the same entries."""
    lines = []
    for each in old:
        if each.kind == EntryKind.SUMMARY and each.body.get("text"):
            lines.append(str(each.body["text"]))
        elif each.kind == EntryKind.RESULTS:
            lines.append(f"- {each.body['tool']}: {_told(each.body['text'])}")
    return "\n".join(lines)[-LONGEST:]


def _told(text: str) -> str:
    result = json.of_column(text)
    record = result.get("record") or {}
    parts = [result.get("outcome"), result.get("reason"), record.get("id"), record.get("state")]
    return " ".join(str(part) for part in parts if part)


async def _asked(run: RunSession, old: Sequence[Entry]) -> str:
    seq = run.transcript.next_seq
    note = Entry(seq=seq, kind=EntryKind.NOTE, body={"kind": "summarise", "text": ASKED})
    ask = Ask(
        entries=[*old, note],
        tools=(),
        tools_on=False,
        output_limit=1_024,
        locale=run.facts.locale,
        now=clock.now(),
        timezone=run.facts.timezone,
    )
    number = await db.read(attempts.tried_for, run.claim, run.turn, Purpose.COMPACTION)
    attempt = Attempt(run, ask, attempts.new_thought(), number + 1, Purpose.COMPACTION)
    response = await streaming.response_of(run, attempt, ask)
    await db.transaction(attempt.accept_aside, response)
    return clean(response.text).strip()[:LONGEST]
