"""Free text in a sentence: what is quoted, what a connector introduces, what nothing else took."""

import re
from collections.abc import Iterable, Iterator

from app.identity.search import fold
from app.runs.models.planner import verbs
from app.runs.models.planner.slots.said import Said
from app.runs.models.planner.tokens import STOP

_QUOTED = re.compile(
    r"“([^”]+)”|「([^」]+)」|『([^』]+)』|《([^》]+)》|\"([^\"\n]+)\"|\u2018([^\u2019]+)\u2019|"
    r"(?<!\w)'([^'\n]+)'(?!\w)"
)
_REASON = re.compile(
    r"\b(?:because|since|as the|reason(?: is| being)?:?|due to)\b\s*|(?:因为|"
    r"由于|原因[是为：:]?|理由[是为：:]?)\s*"
)
_MESSAGE = re.compile(
    r"\b(?:saying|with (?:a |the )?(?:note|message|comment)(?: that)?:?|note "
    r"that|and (?:say|tell (?:him|her|them)))\s+|"
    r"(?:备注[是为：:]?|附言[是为：:]?|留言[是为：:]?|并说|说明[是为：:]|说一声)\s*"
)
_TITLE = re.compile(
    r"\b(?:called|named|titled|entitled|title(?: is)?|with (?:the )?(?:title|"
    r"name))\s+|\b(?:for|about)\s+(?:the |my |our |a |an )?|"
    r"(?:叫做?|名为|名叫|标题[是为叫]?|名称[是为叫]?|题为|关于|改名为|改成|改为)\s*[：:]?\s*"
)
_PURPOSE = re.compile(r"\b(?:for|because of)\s+|(?:用于|为了|给)\s*")
_COLON = re.compile(r"[:：]\s*")
_CLAUSE = re.compile(r"[,，;；。\n]|\.(?=\s|$)")
_PIECES = re.compile(r"[\n,，;；。!！?？：:、]|\.(?=\s|$)")
_TAIL = re.compile(r"[,，:：;；]\s*|\s[-\u2013—]+\s")
MANY, LONGEST = 40, 300  # pieces that are looked at, and characters of one that is stripped
REASONS, MESSAGES = frozenset({"reason", "why"}), frozenset({"message", "note", "comment"})
TITLES, PURPOSES = frozenset({"title", "name", "subject"}), frozenset({"purpose"})
_EDGE = re.compile(r"^[\s,，.。;；:：!！?？、~…()（）-]+|[\s,，.。;；:：!！?？、~…()（）-]+$")
_EDGES_HAN = """
请 帮我 帮忙 我要 我想 麻烦 替我 给 把 将 为 向 往 到 在 从 对 的
了 吧 一下 一笔 一条 一张 一个 一份 里面 我 和 并 个 元 块 块钱 号
日 月份 共 花了 花 金额 日期 用 新的 空白 明细 那笔 这笔 这张 那张
费用 费 今天 公司 加 再
"""
_HAN_EDGE = tuple(_EDGES_HAN.split())


def quoted(said: Said) -> Iterator[tuple[str, re.Match[str]]]:
    """Every quoted text."""
    for match in said.find(_QUOTED, cased=True):
        yield next(each for each in match.groups() if each).strip(), match


def introduced(said: Said, name: str) -> str | None:
    """What a connector that fits the field's name introduces: "because", 备注."""
    for names, pattern, is_long in (
        (REASONS, _REASON, True),
        (MESSAGES, _MESSAGE, True),
        (TITLES, _TITLE, False),
        (PURPOSES, _PURPOSE, False),
    ):
        if name.lower() in names:
            found = _behind(said, pattern, is_long)
            if found is None and name.lower() == "note":
                found = _behind(said, _REASON, True)
            return found
    return None


def tail(said: Said) -> str | None:
    """What stands behind the first comma or colon, if it is two words or more."""
    for match in said.find(_TAIL):
        text = trimmed(said.text[match.end() :])
        if len(text.split()) >= 2 or (len(text) >= 4 and not text.isascii()):
            return text
    return None


def left(said: Said, names: Iterable[str]) -> str:
    """The longest piece that nobody took, without verbs, small words and `names` at its edges."""
    names = tuple(names)
    known = {word for name in names for word in fold(name).split()}
    whole = sorted({fold(name) for name in names} | set(_HAN_EDGE), key=len, reverse=True)
    parts = (trimmed(each) for each in _PIECES.split(said.rest()))
    pieces = list(dict.fromkeys(each for each in parts if each))[:MANY]
    return max((_stripped(each, known, whole) for each in pieces), key=len, default="")


def trimmed(text: str) -> str:
    """A text without blanks and marks at its edges."""
    return _EDGE.sub("", text).strip()


def _behind(said: Said, pattern: re.Pattern[str], is_long: bool) -> str | None:
    for match in said.find(pattern):
        text = said.text[match.end() :]
        end = len(text)
        if not is_long:
            end = min(
                [
                    end,
                    *(
                        b - match.end()
                        for b, _ in said.taken
                        if b > match.end() and said.is_hard(b)
                    ),
                ]
            )
            if clause := _CLAUSE.search(text):
                end = min(end, clause.start())
        found = trimmed(re.sub(r"\s(?:on|to|at|in|of|from)\s*$", "", text[:end]))
        if found:
            return found
    return None


def _stripped(piece: str, known: set[str], whole: list[str]) -> str:
    """Strip from both ends until nothing of the sentence's own is left."""
    text = trimmed(piece)
    while len(text) <= LONGEST:
        before = text
        text = _without_word(text, known, at_end=False)
        text = _without_word(text, known, at_end=True)
        text = _without_han(text, whole)
        text = trimmed(text)
        if text == before:
            break
    return text


def _without_word(text: str, known: set[str], *, at_end: bool) -> str:
    found = re.search(r"[A-Za-z']+$" if at_end else r"^[A-Za-z']+", text)
    if found is None or (found[0] == text and len(text) > 30):
        return text
    word = fold(found[0])
    is_small = word in STOP or word in known or word.rstrip("s") in known
    if is_small or (not at_end and verbs.classes(word)):
        return text[: found.start()] if at_end else text[found.end() :]
    return text


def _without_han(text: str, whole: list[str]) -> str:
    folded = fold(text)
    for word in whole:
        if not word or word.isascii():
            continue
        if folded.startswith(word):
            return text[len(word) :]
        if folded.endswith(word):
            return text[: -len(word)]
    stripped = verbs.leading(folded)
    return text[stripped:] if stripped else text
