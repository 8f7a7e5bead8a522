"""What a sentence asks for first, where it asks for several things: "approve it and pay it"."""

import re
from dataclasses import dataclass
from itertools import islice

from app.identity.search import fold
from app.runs.models.planner import language, verbs

JOINED = 8  # places that are looked at
_JOINED = re.compile(
    r"(?:[,，;；]\s*)?(?:\b(?:and then|and also|and|then)\b|然后|接着|并且|并|再|同时)\s*|"
    r"[;；。\n]\s*|\.\s+",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"(?:\s|[,，]|\b(?:no|please|ok|okay|actually|instead|rather|just|then|also|now|can you|"
    r"could you|would you)\b|请|帮我|那就?|还是|先|就|也)*"
)
_MARKS = " \n.,;!?。，；！？"
#: an object of English, or none at all: "pay it", "pay EXP-25", "pay", and not "pay slips"
_OBJECT = re.compile(
    r"\s*(?:$|[.!?;,]|(?:it|them|that|this|these|those|the|my|a|an|all|both)\b|[a-z]{1,10}-?\d|\d)"
)


@dataclass(frozen=True, slots=True)
class Clauses:
    """A request and what is asked for besides, in the words of the person; mostly nothing."""

    first: str
    rest: str = ""


def of(text: str, *, is_answer: bool = False) -> Clauses:
    """The first request of a text, complete, and all that comes behind it; or an answer first."""
    masked = language.masked(text)
    folded = fold(masked)
    if len(folded) != len(text) or ":" in folded:
        return Clauses(text)
    for joined in islice(_JOINED.finditer(masked), JOINED):
        before, behind = folded[: joined.start()], folded[joined.end() :]
        begin = joined.end() + _ends(_POLITE, behind)
        found, length = verbs.leading_classes(folded[begin:])
        end, then = begin + length, found - {"show"}
        if not then or (folded[end - 1].isascii() and not _OBJECT.match(folded, end)):
            continue
        if language.request(before) != before:
            break  # a reason or a note goes on to the end
        done = verbs.classes(before) - {"show"}
        if not (done or is_answer) or any(verbs.is_near(a, b) for a in done for b in then):
            continue
        first, rest = text[: joined.start()].strip(), text[begin:].strip(_MARKS)
        if done and language.is_only(before):  # "approve and pay EXP-25"
            first = f"{first} {text[end:].strip(_MARKS)}"
        return Clauses(first, rest)
    return Clauses(text)


def is_order(text: str) -> bool:
    """Whether a text begins with what is to be done, as nobody begins an explanation."""
    folded = fold(language.masked(text)).strip()
    rest = folded[_ends(_POLITE, folded) :]
    return bool(verbs.leading_classes(rest)[0]) or rest.startswith(("把", "将"))


def _ends(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found is not None else 0
