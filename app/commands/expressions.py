"""CEL: what an auditor can read, compiled once, asked with what the call knows (CMD-1).

An expression sees `record`, `before`, `input`, `user`, `agent`, `tenant`, `now`, `result` and
`related.<name>`; only what it names is handed to it. One that raises counts as failed.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import cel

from app.commands import registry
from app.commands.errors import Rejected
from app.commands.governed import GovernedRecord
from app.commands.rows import table_of

if TYPE_CHECKING:
    from app.commands.context import Context

NAMES = frozenset(
    {"record", "before", "input", "user", "agent", "tenant", "now", "result", "related"}
)
FUNCTIONS = frozenset(
    {
        *("size", "has", "all", "exists", "exists_one", "map", "filter", "contains", "startsWith"),
        *("endsWith", "matches", "int", "uint", "double", "string", "bool", "timestamp"),
        *("duration", "type", "min", "max", "getFullYear", "getMonth", "getDate", "getDayOfMonth"),
        *("getDayOfWeek", "getHours", "getMinutes", "getSeconds"),
    }
)
_WORD = re.compile(r"(?<![\w.'\"])([a-z_]\w*)\b(?!\s*\()")
_FUNCTION = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_BOUND = re.compile(r"\.(?:all|exists|exists_one|map|filter)\(\s*([a-z_]\w*)\s*,")
_LOOP = re.compile(r"\b(?:all|exists|exists_one|map|filter)\s*$")
# texts that end elsewhere than they seem to, so that what follows could hide: r'\', three quotes
_UNPLAIN = re.compile(r"//|''\s*''|\b[rRbB]{1,2}''")
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_LITERALS = frozenset({"true", "false", "null", "in"})
_MEMBER = re.compile(r"(?<![\w.])(record|before|input|result)\b(?:\.([a-z_]\w*)\b(\s*\()?)?")
_ALONE = re.compile(r"(record|before|input|result)\.([a-z_]\w*)")
_THEMSELVES = frozenset({str, bool})  # come out of an expression as they went in
# questions about two texts, or one among several: for them no interpreter is needed
_OPERAND = r"(?:record|before|input|result)\.[a-z_]\w*|user\.(?:id|org)|'[^'\\]*'"
_ALIKE = re.compile(rf"({_OPERAND})\s*(==|!=)\s*({_OPERAND})")
_AMONG = re.compile(rf"({_OPERAND})\s+in\s+\[\s*('[^'\\]*'(?:\s*,\s*'[^'\\]*')*)\s*\]")
_RELATED = re.compile(r"\brelated\.([a-z_]\w*)")


class BadExpression(ValueError):
    """The text is no expression we can ask; its words are those of the compiler, for its author."""


class Compiled:
    """One expression, and what it reads."""

    __slots__ = ("_members", "_program", "among", "compared", "member", "names", "related", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        alone = _ALONE.fullmatch(text)
        self.member = alone.groups() if alone else None
        alike, among = _ALIKE.fullmatch(text), _AMONG.fullmatch(text)
        self.compared = (_place(alike[1]), alike[2] == "==", _place(alike[3])) if alike else None
        self.among = (
            (_place(among[1]), frozenset(among[2][1:-1].split("'")[::2])) if among else None
        )
        bare = _TEXT.sub("''", text)
        bound = set(_BOUND.findall(bare))
        self.names = frozenset(_WORD.findall(bare)) - bound - _LITERALS
        self.related = frozenset(_RELATED.findall(bare))
        self._members = _members(bare)
        unknown = (self.names - NAMES) | (set(_FUNCTION.findall(bare)) - FUNCTIONS - {"in"})
        if unknown:
            raise BadExpression(f"unknown here: {', '.join(sorted(unknown))}")
        if _UNPLAIN.search(bare):
            raise BadExpression("no comments, and texts in plain quotes only")
        if _has_loop_in_loop(bare):
            raise BadExpression("no list is walked within another: it could take for ever")
        try:
            self._program = cel.compile(text)
        except ValueError as fault:
            raise BadExpression(str(fault)) from fault

    def read(self, name: str, whole: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """What of a map it reads, as CEL takes it: handing over the rest costs more than asking."""
        if whole is None:
            return None
        wanted = self._members.get(name)
        if wanted is None:
            return {each: _plain(value) for each, value in whole.items()}
        return {each: _plain(whole[each]) for each in wanted if each in whole}

    def reads(self, name: str, member: str) -> bool:
        """Whether it reads this member of a map, by itself or with all of it."""
        wanted = self._members.get(name, frozenset())
        return wanted is None or member in wanted

    def reads_only(self, name: str, member: str) -> bool:
        """Whether this member of a map is all it reads."""
        return self.names == {name} and self._members.get(name) == frozenset({member})

    def value(self, known: Mapping[str, Any]) -> Any:
        """What it comes to.

        Raises:
            Exception: whatever is wrong with it and these values; the caller says what that means.
        """
        return self._program.execute(dict(known))


def _place(operand: str) -> tuple[str, str]:
    """The name and member it reads; no name, and the text itself, where it is one."""
    name, _, member = ("", "", operand[1:-1]) if operand[0] == "'" else operand.partition(".")
    return name, member


def _members(text: str) -> dict[str, frozenset[str] | None]:
    """Name -> the members of it that are read; None where it is read as a whole."""
    found: dict[str, set[str] | None] = {}
    for name, member, is_called in _MEMBER.findall(text):
        known = found.setdefault(name, set())
        if not member or is_called:
            found[name] = None
        elif known is not None:
            known.add(member)
    return {name: None if each is None else frozenset(each) for name, each in found.items()}


def _has_loop_in_loop(text: str) -> bool:
    """Whether a macro stands in the body of another: the price is that of the lists, multiplied."""
    open_: list[bool] = []
    for place, letter in enumerate(text):
        if letter == "(":
            open_.append(_LOOP.search(text, max(0, place - 40), place) is not None)
            if open_[-1] and open_.count(True) > 1:
                return True
        elif letter == ")" and open_:
            open_.pop()
    return False


@lru_cache(maxsize=8192)
def compiled(text: str) -> Compiled:
    """`text`, ready to be asked.

    Raises:
        BadExpression: it is none.
    """
    return Compiled(text)


class Scope:
    """What the expressions of one call may read; computed when first named."""

    def __init__(self, ctx: "Context") -> None:
        self._ctx = ctx

    def evaluate(self, text: str, **more: Any) -> Any:
        """The value of an expression now; `more` are names besides."""
        expression = compiled(text)
        if expression.member and not more:
            value = self._member(*expression.member)
            if type(value) in _THEMSELVES:
                return value
        elif not more and (answer := self._compared(expression)) is not None:
            return answer
        known = {
            name: more[name] if name in more else self._named(name, expression)
            for name in expression.names
        }
        return expression.value(known)

    def computed(self, text: str, **facts: Any) -> Any:
        """The value of a formula; `facts` say where it stands.

        Raises:
            Rejected: `computation_failed`, with the expression (CMD-1).
        """
        try:
            return self.evaluate(text)
        except Exception as fault:  # whatever a formula cannot compute, it is the formula's failure
            raise Rejected("computation_failed", **facts, expression=text) from fault

    def holds(self, text: str) -> bool:
        """Whether an expression comes to `true`; one that raises does not (CMD-1)."""
        try:
            return self.evaluate(text) is True
        except Exception:  # noqa: BLE001 - a rule that cannot be asked has failed, whatever it is
            return False

    def _compared(self, expression: Compiled) -> bool | None:
        """What it comes to if it only compares texts; None where it does more than that."""
        if expression.compared is not None:
            left, is_alike, right = expression.compared
            one, other = self._text(*left), self._text(*right)
            return None if one is None or other is None else (one == other) is is_alike
        if expression.among is not None:
            left, known = expression.among
            one = self._text(*left)
            return None if one is None else one in known
        return None

    def _text(self, name: str, member: str) -> str | None:
        if not name:
            return member
        if name == "user":
            value = self._ctx.user.id if member == "id" else self._ctx.user.org_id
        else:
            value = self._member(name, member)
        return value if type(value) is str else None

    def _member(self, name: str, member: str) -> Any:
        """What `record.title` comes to, where no interpreter is needed to say so; else None."""
        ctx = self._ctx
        match name:
            case "record":
                whole = None if ctx.record is None else ctx.record.__dict__
            case "before":
                whole = ctx.before
            case "input":
                whole = ctx.values
            case _:
                whole = ctx.result
        return None if whole is None else whole.get(member)

    def _named(self, name: str, expression: Compiled) -> Any:
        ctx = self._ctx
        match name:
            case "record":
                held = None if ctx.record is None else ctx.record.__dict__
                return expression.read(name, held)
            case "before":
                return expression.read(name, ctx.before)
            case "input":
                return expression.read(name, ctx.values)
            case "user":
                user = {"id": ctx.user.id, "org": ctx.user.org_id}
                return (
                    {**user, "roles": list(ctx.user.roles)} if "roles" in expression.text else user
                )
            case "agent":
                return ctx.call.principal.agent_id
            case "tenant":
                return ctx.call.principal.tenant_id
            case "now":
                return ctx.now
            case "result":
                return expression.read(name, ctx.result)
        return {
            each: [plain_row(row) for row in related_rows(ctx, each)] for each in expression.related
        }


def related_rows(ctx: "Context", name: str) -> list[Any]:
    """The rows of a list that the record's type declares.

    Raises:
        Rejected: `record_not_found`, there is no record whose list it could be.
    """
    if ctx.record is None:
        raise Rejected("record_not_found")
    declared = ctx.record.RELATED[name]
    model = registry.record_type(declared.record)
    return ctx.records.all(model, **{declared.by: getattr(ctx.record, declared.of)})


def plain_row(row: GovernedRecord | None) -> dict[str, Any] | None:
    """A row as expressions read it."""
    return None if row is None else plain_values(table_of(type(row)).values(row))


def plain_values(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Columns as expressions read them: times stay times, other foreign types become text."""
    if values is None:
        return None
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str | datetime | list | dict):
        return value
    return str(value)
