"""What people call what can be done: a small lexicon, by which a command that contradicts is out.

A class is a word that the codes of commands end in, or one that means the same.
"""

import re
from collections.abc import Iterable

from app.identity.search import fold

# class -> words of English, words of Chinese
_LEXICON: dict[str, tuple[str, str]] = {
    "create": (
        "create new start begin make draft set_up open_a",
        "新建 创建 起草 建立 新增 开一张 建一张 建一个 做一张",
    ),
    "add": ("add put enter record book_a", "添加 加上 加一 增加 记一 录入 补一 加入 加"),
    "submit": ("submit hand_in send_in file turn_in", "提交 送审 递交 上交 交上去"),
    "recall": ("recall withdraw take_back pull_back", "撤回 收回 召回"),
    "approve": ("approve accept agree sign_off", "批准 同意 通过 审批通过 核准 批了 批一下"),
    "reject": ("reject decline refuse send_back turn_down", "驳回 退回 拒绝 打回"),
    "delete": ("delete discard throw_away trash scrap get_rid_of", "删除 丢弃 删掉 扔掉 删了"),
    "remove": ("remove take_out drop strike", "移除 去掉 拿掉"),
    "pay": (
        "pay payment disburse transfer_money reimburse",
        "付款 支付 打款 付钱 转账 汇款 付掉 付了 付",
    ),
    "show": (
        "show list see view display find look check which what who how_much how_many tell_me get",
        "查看 查询 看看 看一下 显示 列出 查一下 哪些 多少 有什么 有没有 查 看 几张 哪里 还剩",
    ),
    "change": (
        "update change edit rename correct fix modify",
        "修改 更改 改成 改为 改一下 更正 更新 改",
    ),
    "move": ("move transfer carry shift", "移库 移动 转移 搬到 移到 调拨 搬"),
    "receive": ("receive arrived delivered", "入库 收货 收到 到货"),
    "issue": ("issue take_from hand_out ship", "出库 发出 领用 领料"),
    "reserve": ("reserve set_aside hold keep", "预留 保留 留出"),
    "release": ("release free_up let_go unreserve", "解除 释放"),
    "remind": ("remind nudge chase ping", "催办 催一下 提醒 催"),
    "void": ("void annul write_off", "作废 废止"),
    "reopen": ("reopen re-open open_again", "重新审批 重新启用 重新打开 重开 重审"),
    "close": ("close shut", "关闭 关掉 结账 封"),
    "place": ("place send_the_order order_from", "下单 发给供应商"),
    "cancel": ("cancel call_off", "取消 撤销 撤单"),
    "adjust": ("adjust correct_the_stock", "调整 盘点 盘亏 盘盈"),
    "restore": ("restore bring_back reactivate", "恢复"),
    "retire": ("retire phase_out discontinue", "停用 淘汰"),
    "set": ("set define", "设置 设定 设为 定为"),
    "reverse": ("reverse take_back", "撤回 冲回 冲销"),
    "send": ("send", "发送 发起 发出"),
    "assign": ("assign grant give", "分配 授予"),
    "unassign": ("unassign revoke take_away", "收回"),
    "invite": ("invite", "邀请"),
    "disable": ("disable deactivate block", "停用 禁用"),
    "enable": ("enable activate unblock", "启用"),
    "publish": ("publish release_the", "发布"),
    "rotate": ("rotate renew", "轮换 更换"),
}
#: what the last word of a code is a word for, where it is none itself
_SAME = {
    "get": "show",
    "list": "show",
    "view": "show",
    "search": "show",
    "read": "show",
    "discard": "delete",
    "update": "change",
    "edit": "change",
    "new": "create",
    "draft": "create",
    "set_minimum": "set",
    "withdraw": "recall",
    "decline": "reject",
}
#: classes between which people do not tell apart; a command of one is not out for the other
_NEAR = (
    {"delete", "remove", "cancel", "void"},
    {"recall", "reverse", "cancel", "unassign"},
    {"pay", "send"},
    {"place", "send", "create"},
    {"create", "add"},
    {"change", "set", "adjust", "move"},
    {"receive", "add"},
    {"retire", "delete", "disable", "close"},
    {"restore", "reopen", "enable"},
    {"move", "issue"},
    {"close", "set"},
    {"submit", "send"},
)


def _pattern(english: str, chinese: str) -> re.Pattern[str]:
    """As it is told to somebody: no participle, no noun (the draft), no attribute (停用的物料)."""
    latin = "|".join(re.escape(word).replace("_", r"\s+") for word in english.split())
    han = "|".join(sorted(map(re.escape, chinese.split()), key=len, reverse=True))
    told = rf"(?<![a-z0-9-])(?<!the )(?<!my )(?<!\ba )(?:{latin})(?![a-z0-9-])"
    return re.compile(rf"{told}|(?<![被已待未])(?:{han})(?!的)")


_PATTERNS = {name: _pattern(*words) for name, words in _LEXICON.items()}


def classes(spoken: str) -> frozenset[str]:
    """The classes of every verb in a folded text; a longer verb hides the shorter one in it."""
    found = sorted(
        (match.start(), -match.end(), name)
        for name, pattern in _PATTERNS.items()
        for match in pattern.finditer(spoken)
    )
    kept, within = set(), (-1, -1)
    for begin, ending, name in found:  # the longest of one beginning comes first
        if -ending > within[1] or (begin, -ending) == within:
            kept.add(name)
            within = (begin, -ending)
    return frozenset(kept)


def of_code(code: str) -> str | None:
    """The class of what a command does, by the last word of its code."""
    last = code.rpartition(".")[2]
    name = _SAME.get(last, last)
    return name if name in _LEXICON else None


def of_name(name: str) -> frozenset[str]:
    """The classes of the verbs in a command's name, and of what its nouns were made from."""
    return classes(fold(name))


def contradicts(code: str, said: Iterable[str]) -> bool:
    """Whether a command does another thing than each verb that was said."""
    asked, does = set(said), of_code(code)
    if not asked or does is None or does in asked:
        return False
    return not any(does in near and asked & near for near in _NEAR)


def leading(spoken: str) -> int:
    """How many characters the verb of Chinese takes that a folded text begins with."""
    ends = [
        found.end()
        for pattern in _PATTERNS.values()
        if (found := pattern.match(spoken)) and not found[0].isascii()
    ]
    return max(ends, default=0)


def leading_classes(spoken: str) -> tuple[frozenset[str], int]:
    """The classes of the longest verb that a folded text begins with, and where it ends."""
    matches = {name: pattern.match(spoken) for name, pattern in _PATTERNS.items()}
    ends = {name: found.end() for name, found in matches.items() if found is not None}
    longest = max(ends.values(), default=0)
    return frozenset(name for name, end in ends.items() if end == longest), longest


def is_near(one: str, other: str) -> bool:
    """Whether people do not tell two classes apart."""
    return one == other or any({one, other} <= near for near in _NEAR)


def without(spoken: str, of: Iterable[str] = _LEXICON) -> str:
    """A folded text without its verbs, or those of some classes."""
    for name in sorted(of):
        spoken = _PATTERNS[name].sub(" ", spoken)
    return spoken


def words(name: str) -> tuple[str, ...]:
    """The words of a class, in both languages."""
    english, chinese = _LEXICON[name]
    return tuple(english.replace("_", " ").split()) + tuple(chinese.split())
