"""Which command a sentence asks for: one that stands out, a few to choose from, or none."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.commands import registry
from app.commands.definition import Operation
from app.commands.descriptors import Descriptor
from app.identity.search import fold
from app.runs.models.planner import language, verbs
from app.runs.models.planner.language import Sentence
from app.runs.models.planner.ranking import index_of, ranked
from app.runs.models.planner.slots import codes, schema
from app.runs.models.planner.slots.said import Said
from app.runs.models.planner.slots.schema import Kind
from app.runs.models.planner.tokens import tokens

CHOSEN, MARGIN, NOTHING = 0.35, 1.25, 0.15
CHOICES = 4
RIVAL = 0.5  # share of the best score
ASIDE = 0.75  # what remains of a score where something has a place, and not the first
LOOSE = 0.6  # what remains of a score where something does not fit


@dataclass(frozen=True, slots=True)
class Choice:
    """What was found: `chosen`, or several, or neither."""

    ranked: tuple[tuple[Descriptor, float], ...]
    chosen: Descriptor | None = None
    several: tuple[Descriptor, ...] = ()


def choose(
    sentence: Sentence,
    known: Sequence[Descriptor],
    spoken_in: str,
    *,
    reads_only: bool = False,
    focus: Sequence[str] = (),
) -> Choice:
    """The best command for a sentence; `focus` are the types of records that were talked about."""
    said = Said(sentence.text)
    is_named = any(codes.ids(said)) or any(codes.codes(said))
    points = language.is_only(sentence.spoken)  # says no more than a verb and a pointer
    scored = [
        (each, score * _fit(each, sentence, is_named, points, focus) if score else 0.0)
        for each, score in ranked(sentence.text, known, spoken_in)
        if not (reads_only and each.definition.writes)
    ]
    scored.sort(key=lambda pair: (-pair[1], pair[0].code))
    if not _is_about(sentence, known):
        return Choice(tuple(scored))
    return _begun(sentence, _of(tuple(scored)))


def _begun(sentence: Sentence, choice: Choice) -> Choice:
    """Of several, the one that begins what is named: a report, where only its line is near."""
    said = verbs.classes(language.request(sentence.text))
    begins = [
        each
        for each in choice.several
        if each.definition.operation is Operation.CREATE
        and verbs.of_code(each.code) in said
        and is_kind_named(each, sentence.spoken)
    ]
    return Choice(choice.ranked, chosen=begins[0]) if len(begins) == 1 else choice


def is_kind_named(command: Descriptor, spoken: str) -> bool:
    """Whether the kind of record a command is about is said: "report", 报销单."""
    model = registry.record_types().get(command.definition.record or "")
    if model is None:
        return False
    noun = fold(model.NAMES.get("en", "")).rpartition(" ")[2]
    in_english = bool(noun) and re.search(rf"(?<![a-z0-9]){re.escape(noun)}s?(?![a-z0-9])", spoken)
    return bool(in_english) or fold(model.NAMES.get("zh-CN", "-")) in spoken


def _of(found: tuple[tuple[Descriptor, float], ...]) -> Choice:
    if not found or found[0][1] < NOTHING:
        return Choice(found)
    best = found[0][1]
    second = found[1][1] if len(found) > 1 else 0.0
    if best >= CHOSEN and best >= MARGIN * second:
        return Choice(found, chosen=found[0][0])
    several = tuple(each for each, score in found[:CHOICES] if score >= max(NOTHING, best * LOOSE))
    if len(several) == 1 and not several[0].definition.writes:
        return Choice(found, chosen=several[0])  # looking is no risk
    return Choice(found, several=several)


def rivals(choice: Choice) -> list[Descriptor]:
    """Those that the record decides between, where one is named."""
    best = choice.ranked[0][1] if choice.ranked else 0.0
    return [each for each, score in choice.ranked if score >= max(NOTHING, best * RIVAL)]


def types_of(command: Descriptor) -> set[str]:
    """The types of records that a command has a place for."""
    places = {Kind.TARGET, Kind.REFERENCE}
    return {each.record for each in schema.fields(command) if each.kind in places and each.record}


def has_place(command: Descriptor) -> bool:
    """Whether a record that is named can be said to a command, or one that is to be begun."""
    return bool(types_of(command)) or _takes_code(command)


def weighed(choice: Choice, wanted: Sequence[set[str]]) -> Choice:
    """Chosen anew, now that it is known of which types the named records are."""
    found = [(each, score * _places(each, wanted)) for each, score in choice.ranked]
    return _of(tuple(sorted(found, key=lambda pair: (-pair[1], pair[0].code))))


def beginning(choice: Choice) -> Choice:
    """Chosen anew, where nothing has the code that is named: something new may get it."""
    if not any(_takes_code(each) for each in rivals(choice)):
        return choice
    found = [(each, score * (1.0 if _takes_code(each) else ASIDE)) for each, score in choice.ranked]
    return _of(tuple(sorted(found, key=lambda pair: (-pair[1], pair[0].code))))


def _takes_code(command: Descriptor) -> bool:
    is_code = any(each.is_required and each.kind is Kind.CODE for each in schema.fields(command))
    return is_code and command.definition.operation is Operation.CREATE


def _places(command: Descriptor, wanted: Sequence[set[str]]) -> float:
    """Whether each named record has a place in the command, and whether one has to stand there."""
    told, fields = command.definition, schema.fields(command)
    if told.targeted and told.record in set().union(*wanted):
        return 1.0
    own = types_of(command)
    if told.targeted and own == {told.record}:
        return LOOSE * LOOSE if _is_named(told.record or "") else 1.0
    needed = {each.record for each in fields if each.is_required and each.kind is Kind.REFERENCE}
    if any(needed & each for each in wanted):
        return 1.0
    return ASIDE if all(own & each for each in wanted) else LOOSE * LOOSE


def _is_named(type: str) -> bool:
    """Whether records of a type have names of their own; others are known by their parts."""
    model = registry.record_types().get(type)
    return model is None or model.LABEL != "id"


def _fit(
    command: Descriptor, sentence: Sentence, is_named: bool, points: bool, focus: Sequence[str]
) -> float:
    """Whether what is named, or pointed at, is something the command has a place for."""
    told = command.definition
    kinds = {
        each.kind
        for each in schema.fields(command)
        if each.kind is not Kind.REFERENCE or each.record  # a record's, not a person's
    }
    places = kinds & {Kind.TARGET, Kind.REFERENCE}
    if is_named and not places and not (Kind.CODE in kinds and told.operation is Operation.CREATE):
        return LOOSE
    if not is_named and focus and points and told.record not in focus:
        return LOOSE
    if not told.writes and told.targeted and not is_named and not language.refers(sentence.spoken):
        return ASIDE
    return 1.0


def _is_about(sentence: Sentence, known: Sequence[Descriptor]) -> bool:
    """Whether any word besides verbs is one that commands use, or there is a verb of its own."""
    spoken = language.request(sentence.text)
    said = verbs.classes(spoken)
    if said - {"show", "set", "change", "send", "receive", "reserve"}:
        return True
    rest = _VALUES.sub(" ", verbs.without(spoken))
    content = [token for token, weight in tokens(rest) if weight >= 1]
    if not content or any(codes.codes(Said(sentence.text))):
        return bool(said or sentence.is_question)
    topics = index_of(known).topics
    return any(token in topics for token in content)


_VALUES = re.compile(r"[a-z]{1,12}(?:-[a-z0-9]+)*-?\d[a-z0-9-]*|\d[\d.,:/-]*")
