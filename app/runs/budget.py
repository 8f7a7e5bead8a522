"""How much a request may hold, how much it holds, and what of the transcript goes into it (RUN-79).

An estimate starts from characters: one token for a Chinese character, else one for 3.5; the last
measurement corrects it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from app.kernel import clock, json
from app.runs import offering
from app.runs.models.protocol import Ask, Entry, Offered, Response
from app.runs.outcome import shortened
from app.runs.session import RunSession
from app.runs.states import EntryKind

SPARE = 1_024  # tokens
PER_TOKEN = 3.5  # characters
SHORT = 600  # characters of a tool result that is older than two turns
SHORTENED_AFTER = 2  # turns

_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_FOLDED = frozenset({EntryKind.RESPONSE, EntryKind.RESULTS, EntryKind.NOTE, EntryKind.SUMMARY})


def ask_of(run: RunSession) -> Ask:
    """The request as it goes out now."""
    ask = Ask(
        entries=visible(list(run.transcript)),
        tools=run.offered.of(partial(offering.offered, run.tools), run.tools),
        recent=run.recent,
        tools_on=not run.is_last_step,
        output_limit=output_limit(run),
        locale=run.facts.locale,
        now=clock.now(),
        timezone=run.facts.timezone,
    )
    run.estimated_tokens = estimate(run, ask)
    return ask


def output_limit(run: RunSession) -> int:
    """Tokens of one answer."""
    return min(run.content.limits.output_tokens, run.profile.output_tokens)


def room(run: RunSession) -> int:
    """Tokens that a request may hold."""
    return max(run.model.context_tokens - output_limit(run) - SPARE, SPARE)


def estimate(run: RunSession, ask: Ask) -> int:
    """Tokens of a request, corrected by the last measurement."""
    text = run.sizes.entries.of(list(ask.entries), int, _add_tokens)
    tools = run.sizes.tools.of(partial(_tokens_of_tools, ask.tools), ask.tools)
    return int((text + tools) * run.token_ratio)


def _add_tokens(tokens: int, entry: Entry) -> int:
    return tokens + tokens_of(_text_of(entry))


def _tokens_of_tools(tools: Sequence[Offered]) -> int:
    return sum(
        tokens_of(tool.description) + tokens_of(json.dumps(dict(tool.schema)).decode())
        for tool in tools
    )


def measure(run: RunSession, ask: Ask, response: Response) -> None:
    """Take the provider's count as the measure of the next estimate."""
    usage = response.usage
    if usage is not None and usage.input_tokens > 0 and run.estimated_tokens > 0:
        plain = run.estimated_tokens / run.token_ratio
        run.token_ratio = min(max(usage.input_tokens / plain, 0.25), 4.0)


def tokens_of(text: str) -> int:
    """Tokens of a text, roughly."""
    wide = len(_WIDE.findall(text))
    return wide + int((len(text) - wide) / PER_TOKEN) + 1


def visible(entries: Sequence[Entry]) -> list[Entry]:
    """What the model sees of a transcript: summaries in the place of what they sum up.

    Accepted inputs and the system text stay, word for word.
    """
    folds = [each for each in entries if each.kind == EntryKind.SUMMARY]
    if not folds:
        return list(entries)
    until = max((each.body.get("until_seq", 0) for each in folds), default=0)
    shorten = max((each.body.get("shorten_until_turn", 0) for each in folds), default=0)
    shown: list[Entry] = []
    summary = next((each for each in reversed(folds) if each.body.get("until_seq") == until), None)
    is_told = not until
    for each in entries:
        if each.kind == EntryKind.SUMMARY or (each.seq <= until and each.kind in _FOLDED):
            continue
        if not is_told and each.seq > until and summary is not None:
            shown.append(summary)
            is_told = True
        shown.append(_short(each) if each.turn <= shorten else each)
    if not is_told and summary is not None:
        shown.append(summary)
    return shown


def _short(entry: Entry) -> Entry:
    if entry.kind != EntryKind.RESULTS or len(entry.body["text"]) <= SHORT:
        return entry
    text = shortened(json.of_column(entry.body["text"]), SHORT)
    return replace(entry, body={**entry.body, "text": text})


def _text_of(entry: Entry) -> str:
    return "\n".join(_texts(entry.body.values()))


def _texts(values: Iterable[object]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from _texts(value.values())
        elif isinstance(value, list):
            yield from _texts(value)
