"""Texts as the ranking reads them: folded words of Latin scripts, bigrams of Han."""

import re
from collections.abc import Iterator

from app.identity.search import fold

SINGLE = 0.3  # what one Han character counts against a bigram

_RUN = re.compile(r"[a-z0-9]+|[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_CODE = re.compile(r"\b[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+\b")
_STOP = """
a an the of to for from in on at by with and or but as is are was were be been it its this
that these those i me my mine you your he his she her they their them we our us do does did
have has had can could will would shall should may might must if then than so not no nor any
some each one ones when where while before after until there here what which who whom whose
how why use used please want need like just also too very only own someone somebody anybody
nobody everybody every out up down into over under again more most less least about let hi
hello now am put go got s t ll ve re d m
"""
STOP = frozenset(_STOP.split())
_STOP_HAN = frozenset("的了是在我你他她它把被给和与或及请帮吧吗呢啊这那个张条笔有就也都从到将时")


def tokens(text: str, *, codes: bool = False) -> Iterator[tuple[str, float]]:
    """Each token with its weight; codes of commands inside a text are left out unless asked for."""
    folded = fold(text)
    if not codes:
        folded = _CODE.sub(" ", folded)
    for run in _RUN.findall(folded.replace("_", " ")):
        if run[0].isascii():
            if run not in STOP:
                yield _folded_word(run), 1.0
        else:
            yield from _of_han(run)


def _of_han(run: str) -> Iterator[tuple[str, float]]:
    for place, character in enumerate(run):
        if character not in _STOP_HAN:
            yield character, SINGLE
        if place + 1 < len(run) and not {character, run[place + 1]} & _STOP_HAN:
            yield run[place : place + 2], 1.0


def _folded_word(word: str) -> str:
    """Plural, -ed and -ing are folded: `submitted` and `submitting` are `submit`."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return _stem(word[: -len(ending)])
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return _stem(word[:-1])
    return _stem(word)


def _stem(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsaeiou":
        return word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word
