"""Words that mean nearly the same, in both languages: for values that only one of them writes."""

import re
from functools import lru_cache

from app.identity.search import fold
from app.kernel import i18n
from app.kernel.i18n import LANGUAGES

KEPT = 4_096  # words of a process

#: each line is a family; whoever says one of its words may mean a value that is another one
_FAMILIES = tuple(
    frozenset(line.split("/"))
    for line in (
        "travel/trip/journey/visit/flight/train/出差/差旅/机票/高铁/火车/拜访/行程/旅行",
        "lodging/hotel/accommodation/overnight/酒店/住宿/宾馆/旅馆",
        "meals/meal/lunch/dinner/breakfast/restaurant/餐饮/午餐/晚餐/早餐/聚餐/吃饭/用餐",
        "transport/taxi/cab/bus/subway/metro/parking/打车/出租车/的士/地铁/公交/停车/交通/网约车",
        "office/stationery/office supplies/办公/文具/办公用品",
        "draft/drafts/drafted/草稿/起草/未提交",
        "submitted/waiting/wait/pending/undecided/待审批/待批/等待/待审/审批中/已提交/待我审批",
        "approved/已批准/批准的/已通过/已审批",
        "rejected/declined/被退回/已退回/被驳回/退回的",
        "paid/已付款/已支付/付过",
        "voided/作废的/已作废",
        "ordered/on order/on the way/已下单/在途",
        "received/arrived/已收货/已到货",
        "cancelled/canceled/called off/已取消/已撤销",
        "retired/discontinued/停用的/已停用",
        "active/in use/在用",
        "closed/关闭的/已关闭",
        "damage/damaged/broken/损坏/破损/坏了",
        "loss/lost/丢失/遗失/丢了",
        "found/找到/多出来",
        "count/counted/stocktake/盘点/清点",
        "correction/wrong booking/更正/记错/录错",
        "minimum/最低/下限",
        "below/under/低于/不足",
        "transfer/移库/调拨",
        "receipt/入库",
        "issue/出库",
        "adjustment/调整",
        "fair/exhibition/展会",
        "training/course/培训",
        "customer/client/客户",
        "team/团队",
    )
)


def is_meant(value: str, text: str) -> bool:
    """Whether a text names a value: itself, its label in any language, or a word of its family."""
    return any(_stands(word, text) for word in words_of(value))


@lru_cache(maxsize=KEPT)
def words_of(value: str) -> tuple[str, ...]:
    """A value, its labels, and its family, folded."""
    plain = fold(value)
    words = {plain, plain.replace("_", " ")}
    label = plain.replace("_", " ").capitalize()
    for tag in LANGUAGES:
        with i18n.speaking(tag):
            words.add(fold(i18n.gettext(label)))
    for family in _FAMILIES:
        if words & family:
            words |= family
    return tuple(sorted(words))


@lru_cache(maxsize=KEPT)
def _pattern(word: str) -> re.Pattern[str]:
    if word.isascii():
        return re.compile(rf"(?<![a-z0-9]){re.escape(word)}(?:s|es)?(?![a-z0-9])")
    return re.compile(re.escape(word))


def _stands(word: str, text: str) -> bool:
    return _pattern(word).search(text) is not None
