"""Which language a person speaks, and what a sentence is: a request, a question, a refusal, a yes.

Rules of two languages, and of no command: whatever is asked for, it is asked for in these ways.
"""

import re
from dataclasses import dataclass

from app.identity.search import fold
from app.kernel.i18n import DEFAULT
from app.runs.models.planner import verbs

CHINESE = "zh-CN"
CHINESE_FROM = 0.2  # share of Han among the letters
MANY = 40  # denials that are looked at

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LETTER = re.compile(r"[^\W\d_]")
_QUOTED = re.compile(
    r"“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|\"[^\"\n]*\"|\u2018[^\u2019]*\u2019|```.*?```",
    re.DOTALL,
)
_QUOTE_LINE = re.compile(r"^[^\S\n]*[>|].*$", re.MULTILINE)
_IDIOM = re.compile(
    r"\b(?:don'?t|do not|never) forget to\b|别忘了|不要忘了?|不要忘记|别忘记", re.IGNORECASE
)
_STATES_NOT = re.compile(r"\bnot (?:yet )?\w+ed\b|\bnot (?:yet )?paid\b|还没|尚未|没有|未")
_NEGATION = re.compile(
    r"\b(?:don'?t|do not|doesn'?t|didn'?t|never|not|won'?t|shouldn'?t|mustn'?t|"
    r"cannot|can'?t|without|"
    r"stop|no need to|rather not)\b|"
    r"不要|不用|不必|不需要|无需|先不|暂不|不想|不能|不该|别|勿|请勿|停止|切勿|不(?=提交|付款|批准|删除)"
)
_CONDITION = re.compile(
    r"(?:^|[,;.]\s*|\b)(?:if|once|as soon as|unless|until|whenever|tomorrow|tonight|"
    r"later|next week)\b|"
    r"\bwhen\b(?=.*\b(?:is|are|has|have|gets?|comes?|approves?|arrives?)\b)|\bafter\b(?=.*\b(?:approves?|"
    r"approved|signs?)\b)|"
    r"如果|要是|假如|除非|一旦|等.{1,20}(?:再|之后|以后|后)|明天|后天|下周|晚点|稍后再|以后再"
)
_ASKING = re.compile(
    r"^(?:please )?(?:and |so |but |ok |then )?(?:which|what|whats|what's|who|"
    r"whose|when|where|why|how|did|has|have|was|were|is|are|"
    r"does|do i|do we|am i|should|may i|any)\b"
    r"|[吗么呢]\s*[?？]?$|哪|多少|几张|几个|什么|谁|为何|为什么|怎么|如何|怎样|是否|有没有|了没|还剩"
)
_HOW_TO = re.compile(
    r"\bhow (?:do|can|should|would|does) (?:i|we|one|you|somebody)\b|\bhow to\b|"
    r"怎么(?!样|回事)|如何|怎样"
)
_REQUEST = re.compile(
    r"\b(?:can|could|would|will) you\b|\bplease\b|帮我|替我|请|麻烦|你能|能帮|劳驾"
)
_UNDO = re.compile(
    r"\b(?:undo|revert|take (?:that|it|this) back|roll (?:that|it|this)? ?back|"
    r"put (?:that|it) back)\b"
    r"|撤销|撤消|撤回刚才|收回刚才|回退|恢复原状|还原"
)
_REFERRING = re.compile(
    r"\b(?:it|that|this|them|those|these|the last (?:one|thing)|the same(?: one)?|last)\b"
    r"|它们?|这张|这个|这笔|这条|这份|那张|那个|那笔|那条|刚才的?|刚刚的?|上一(?:个|步|次|张|条)|该单|此单|这单|那单|一下|操作"
)
_FILLER = re.compile(
    r"\b(?:please|ok|okay|now|again|just|so|the|my|a|an|i|want|to|would|like|"
    r"you|can|could|for|me|and|then|right|away|hi|hello|"
    r"hey|thanks|thank|sorry|oh|oops|change|action|step|command)\b"
    r"|请|帮我|我要|我想|麻烦|一下|吧|了|啊|呀|好的?|把|给|的|先|再|现在|立即|马上|替我|命令|不好意思|抱歉"
)
_THANKS = re.compile(
    r"(?:(?:thanks?(?: you| a lot| so much| very much)?|thx|cheers|great|perfect|ok(?:ay)?|good|"
    r"谢谢你?|多谢|好的?|辛苦了?|收到|明白了?|太好了|不错)\s*)+"
)
_GREETING = re.compile(
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening)|help|what can you do|"
    r"你好|您好|早上?好|下午好|晚上好|在吗|帮助|你会什么|你能做什么|能做什么)"
)
_YES = re.compile(
    r"(?:y|yes|yep|yeah|sure|ok|okay|right|correct|do it|go ahead|yes please|"
    r"please do|是的?|对的?|好的?|可以|确认|没错|嗯|行|就是它?|就这个|就是这张)"
)
_NO = re.compile(
    r"(?:n|no|nope|cancel|stop|never ?mind|forget it|leave it|no thanks?(?: you)?|"
    r"not now|none(?: of them)?|don'?t|"
    r"不|不是|不用了?|不要了?|算了|取消|停|不了|先不用|别弄了|都不是|没有)"
)
_TOLD_BESIDES = re.compile(
    r"\b(?:because|since|due to|called|named|titled|saying|with (?:the )?(?:note|message|title))\b|"
    r"因为|由于|原因|理由|备注|附言|名为|名叫|标题[是为:]|名称[是为:]"
)
_OWN = re.compile(r"\b(?:my|mine|our own|of mine)\b|我的?(?!们)|自己的")
_EDGES = re.compile(r"^[\s,.!?;:，。！？；：、~…-]+|[\s,.!?;:，。！？；：、~…-]+$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """What a text is, before anybody knows what it is about.

    Attributes:
        spoken: folded, without what is quoted.
    """

    text: str
    spoken: str
    is_negated: bool
    is_conditional: bool
    is_question: bool
    is_how_to: bool
    is_undo: bool
    is_thanks: bool
    is_greeting: bool


def of(text: str, locale: str) -> str:
    """`zh-CN` for a text with a fifth of Han or more, else what the user reads."""
    letters = len(_LETTER.findall(text))
    if letters and len(_HAN.findall(text)) / letters >= CHINESE_FROM:
        return CHINESE
    return CHINESE if locale.startswith("zh") else DEFAULT


def is_han(text: str) -> bool:
    """Whether there is a Chinese character in it."""
    return _HAN.search(text) is not None


def request(text: str) -> str:
    """The part that says what to do: folded, without quotations, reasons, names and notes."""
    spoken = fold(unquoted(text))
    found = _TOLD_BESIDES.search(spoken)
    return spoken[: found.start()] if found is not None and found.start() > 3 else spoken


def without_how(text: str) -> str:
    """What somebody wants to know how to do."""
    return _HOW_TO.sub(" ", fold(unquoted(text))).replace("?", " ")


def unquoted(text: str) -> str:
    """The text without what it only quotes."""
    return _QUOTED.sub(" ", _QUOTE_LINE.sub(" ", text))


def masked(text: str) -> str:
    """The text with blanks for what it only quotes, place by place."""
    return _QUOTED.sub(lambda found: " " * len(found[0]), text)


def read(text: str) -> Sentence:
    """What kind of sentence this is."""
    spoken = fold(unquoted(text)).strip()
    bare = _bare(spoken)
    asks = bool(_ASKING.search(bare)) or spoken.rstrip().endswith("?")
    return Sentence(
        text=text,
        spoken=spoken,
        is_negated=_is_negated(spoken),
        is_conditional=bool(_CONDITION.search(spoken)),
        is_question=asks and not _REQUEST.search(spoken),
        is_how_to=bool(_HOW_TO.search(spoken)) and not _REQUEST.search(spoken),
        is_undo=_is_undo(spoken),
        is_thanks=bool(_THANKS.fullmatch(_bare(_FILLED.sub(" ", spoken)) or "-")),
        is_greeting=bool(_GREETING.fullmatch(bare)),
    )


_FILLED = re.compile(r"[,.!?;:，。！？；：、~…]+")


def refers(spoken: str) -> bool:
    """Whether it points at something that was talked about: "it", 这张."""
    return _REFERRING.search(spoken) is not None


def is_own(text: str) -> bool:
    """Whether it is about the person's own things: "my", 我的."""
    return _OWN.search(fold(text)) is not None


def is_only(spoken: str, *names: str) -> bool:
    """Whether nothing is said besides verbs, pointers, small words and `names`."""
    rest = fold(spoken)
    for name in sorted(map(fold, names), key=len, reverse=True):
        rest = rest.replace(name, " ") if name else rest
    return not _left(verbs.without(rest))


def is_yes(text: str) -> bool:
    """Whether an answer agrees."""
    return _YES.fullmatch(_bare(fold(text))) is not None


def is_no(text: str) -> bool:
    """Whether an answer calls the whole thing off."""
    return _NO.fullmatch(_bare(fold(text))) is not None


def _bare(spoken: str) -> str:
    return _EDGES.sub("", spoken)


def _is_negated(spoken: str) -> bool:
    """Whether a verb is forbidden, not merely a state described: "not submitted yet" is one."""
    plain = _STATES_NOT.sub(" ", _IDIOM.sub(" ", spoken.replace("\u2019", "'")))
    for place, found in enumerate(_NEGATION.finditer(plain)):
        if place >= MANY:
            return True  # whoever denies so often hardly wants anything
        behind = plain[found.end() : found.end() + 40]
        clause = re.split(r"[,.;!?，。；！？]", behind)[0]
        if verbs.classes(clause) or _UNDO.search(clause) or not clause.strip():
            return True
    return False


def _is_undo(spoken: str) -> bool:
    return bool(_UNDO.search(spoken)) and not _left(_UNDO.sub(" ", spoken))


def _left(spoken: str) -> str:
    rest = _FILLER.sub(" ", _REFERRING.sub(" ", spoken))
    return re.sub(r"[\W_]+", "", rest)
