"""Which commands a sentence is about: BM25 over what commands say of themselves (RUN-107).

An index is made once for a set of commands and kept; a score is a share of the best that any
command could have reached with the query.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from app.commands import registry
from app.commands.descriptors import Descriptor
from app.identity.search import fold
from app.runs.models.planner import kin, language, verbs
from app.runs.models.planner.same import Same
from app.runs.models.planner.tokens import tokens

K1, B = 1.2, 0.5
NAME, HINT, CODE, RECORD, SCHEMA = 3.0, 2.0, 2.0, 2.0, 1.0
VERB = 3.0
UNKNOWN = 0.6  # of the mean weight of a word that no command knows
KEPT = 16  # indexes of a process
LONGEST = 1_000  # characters of a query that are looked at: what is asked for stands in these


class Index:
    """What a set of commands says of itself, by token."""

    def __init__(self, descriptors: Sequence[Descriptor]) -> None:
        self.descriptors = tuple(descriptors)
        told = [_kept(each.content_hash, Same(each)) for each in self.descriptors]
        self.topics = frozenset[str]().union(*(each.topics for each in told))
        counted = [each.counts for each in told]
        lengths = [sum(each.values()) for each in counted]
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        self.postings: dict[str, list[tuple[int, float]]] = {}
        for place, (counts, length) in enumerate(zip(counted, lengths, strict=True)):
            norm = K1 * (1 - B + B * length / (mean or 1.0))
            for token, count in counts.items():
                weight = count * (K1 + 1) / (count + norm)
                self.postings.setdefault(token, []).append((place, weight))
        self.weights = {token: self._idf(len(found)) for token, found in self.postings.items()}
        self.verbs = {token[1:] for token in self.postings if token[0] == "="}
        self.mean = sum(self.weights.values()) / len(self.weights) if self.weights else 1.0

    def scores(self, query: Sequence[tuple[str, float]]) -> list[float]:
        """The share of each command, in the order of the set."""
        reached = [0.0] * len(self.descriptors)
        possible = 0.0
        for token, weight in query:
            found = self.postings.get(token)
            if found is None:
                possible += weight * self.mean * UNKNOWN
                continue
            value = weight * self.weights[token]
            possible += value * max(each for _, each in found)
            for place, each in found:
                reached[place] += value * each
        return [each / possible if possible else 0.0 for each in reached]

    def _idf(self, found: int) -> float:
        return math.log(1 + (len(self.descriptors) - found + 0.5) / (found + 0.5))


def ranked(
    query: str, descriptors: Sequence[Descriptor], language: str
) -> list[tuple[Descriptor, float]]:
    """Every command with its score for `query`, the best first; those that contradict are last."""
    query, index = fold(query[:LONGEST])[:LONGEST], index_of(descriptors)
    said = _verbs(query)
    scores = index.scores(_query(query, said & index.verbs))
    pairs = [
        (each, 0.0 if verbs.contradicts(each.code, said) else score)
        for each, score in zip(index.descriptors, scores, strict=True)
    ]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0].code))


def index_of(descriptors: Sequence[Descriptor]) -> Index:
    """The index of a set of commands, made once for the same versions of the same commands."""
    return _index(_Set(descriptors))


class _Set:
    """Descriptors that are the same where codes, versions and contents are."""

    __slots__ = ("descriptors", "hashed", "key")

    def __init__(self, descriptors: Sequence[Descriptor]) -> None:
        self.descriptors = tuple(descriptors)
        self.key = tuple((each.code, each.version, each.content_hash) for each in descriptors)
        self.hashed = hash(self.key)

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Set) and self.key == other.key


@lru_cache(maxsize=KEPT)
def _index(commands: _Set) -> Index:
    return Index(commands.descriptors)


def _verbs(query: str) -> frozenset[str]:
    """What is to be done; who asks a question wants to be shown something."""
    if language.read(query).is_question:
        return frozenset({"show"})
    return verbs.classes(language.request(query))


def _query(query: str, said: Iterable[str]) -> list[tuple[str, float]]:
    asked = language.request(query)
    plain = _VALUE.sub(" ", verbs.without(asked, said))
    if "list" in asked.split():
        plain += " list"  # who says so wants many, and not one of them
    counted = dict(tokens(plain, codes=True))
    return [*counted.items(), *((f"={name}", 1.0) for name in sorted(said))]


#: what fills a command and says nothing of which: numbers, amounts, dates, codes of records
_VALUE = re.compile(
    r"(?<![a-z0-9])[a-z]{1,12}(?:-[a-z0-9]+)*-?\d[a-z0-9-]*|[¥$€]?\d[\d.,:/-]*\s*(?:yuan|"
    r"rmb|cny|usd|eur|euros?|dollars?)?"
    r"(?:[年月日号元块万]|块钱)*|(?<![a-z])(?:january|february|april|june|july|"
    r"august|september|october|november|december|"
    r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|today|yesterday|monday|tuesday|"
    r"wednesday|thursday|friday|saturday|"
    r"sunday)(?![a-z])|[一二三四五六七八九十]+月份?|今天|昨天|前天|上个?月|本月|这个月|上?周[一二三四五六日天]"
)


@dataclass(frozen=True, slots=True)
class _Words:
    """What one command says of itself; `topics` without the values of its example."""

    counts: Mapping[str, float]
    topics: frozenset[str]


@lru_cache(maxsize=8_192)
def _kept(content_hash: str, descriptor: Same) -> _Words:
    return _words(descriptor.descriptor)


def _words(descriptor: Descriptor) -> _Words:
    told = descriptor.definition
    counts: dict[str, float] = {}

    def count(text: str, weight: float, *, codes: bool = False) -> None:
        for token, share in tokens(text, codes=codes):
            counts[token] = counts.get(token, 0.0) + weight * share

    for text, weight in ((told.display_name, NAME), (told.agent_hint, HINT)):
        for words in {text.en: None, text.zh: None}:
            count(words, weight)
    count(told.code.replace(".", " "), CODE, codes=True)
    count(_record_words(told.record), RECORD)
    count(" ".join(_schema_words(told.input_schema)), SCHEMA)
    topics = frozenset(token for token in counts if len(token) > 1)
    count(" ".join(_example_words(told.example)), SCHEMA)
    return _Words({**counts, **_classes(descriptor)}, topics)


def _classes(descriptor: Descriptor) -> dict[str, float]:
    """What it does: surely by its code, a little by the verbs of its names."""
    told = descriptor.definition
    named = verbs.of_name(told.display_name.en) | verbs.of_name(told.display_name.zh)
    classes = {f"={name}": VERB / 4 for name in named}
    if (does := verbs.of_code(told.code)) is not None:
        classes[f"={does}"] = VERB
    return classes


def _record_words(record: str | None) -> str:
    model = registry.record_types().get(record or "")
    return " ".join(model.NAMES.values()) if model else (record or "").replace(".", " ")


def _schema_words(schema: dict[str, Any]) -> Iterator[str]:
    for name, told in schema.get("properties", {}).items():
        if name in {"targetRecordId", "operationType"}:
            continue
        yield str(told.get("title") or _split(name))
        for value in told.get("enum", ()):
            if isinstance(value, str):
                yield from kin.words_of(value)


def _example_words(example: dict[str, Any]) -> Iterator[str]:
    for name, value in example.items():
        if isinstance(value, str) and name not in {"targetRecordId", "operationType"}:
            yield value


def _split(name: str) -> str:
    return "".join(f" {each.lower()}" if each.isupper() else each for each in name)
