"""Governed records by words, through the filter of whoever acts (RUN-94).

What a principal may read is what the read commands of their catalogue reach; of a record type that
has none of these, what its other commands reach, by label and state alone. Nothing else exists.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, and_, case, false, func, or_
from sqlmodel import Session, col, select

from app.access import scope
from app.audit import chain
from app.commands import catalogue, expressions, published, registry
from app.commands.catalogue import Catalogue
from app.commands.definition import Operation
from app.commands.descriptors import Descriptor
from app.commands.governed import GovernedRecord
from app.identity.principal import Principal
from app.identity.search import LONGEST, TERMS_AT_MOST, fold
from app.kernel import clock, i18n
from app.kernel.errors import NotFound

MOST = 10
HIDDEN = frozenset({"tenant_id", "id", "state", "version", "created_by", "updated_by"})
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
HAN = dict(zip("一二三四五六七八九十", range(1, 11), strict=True)) | {"十一": 11, "十二": 12}
STOP = frozenset(
    {
        *("a", "an", "the", "of", "for", "from", "in", "on", "at", "to", "and", "or", "with"),
        *("my", "our", "me", "which", "that", "this", "these", "those", "all", "any"),
        *("last", "latest", "newest", "recent", "current"),
    }
)
HAN_STOP = ("我的", "我们的", "最近的", "最新的", "所有的", "那个", "这个", "的", "张", "份")
_LONG = "|".join(MONTHS)
_MONTH = re.compile(
    r"(?P<year>\d{4})[-/年](?P<number>\d{1,2})(?!\d)(?:月份?)?"
    r"|(?:(?P<han_year>\d{4})年)?(?P<han>十[一二]?|[一二三四五六七八九])月份?"
    r"|(?:(?P<digit_year>\d{4})年)?(?P<digit>1[0-2]|0?[1-9])月份?"
    rf"|(?<![a-z])(?P<word>{_LONG}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)(?![a-z])"
    r"(?:\s+(?P<word_year>\d{4}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What is looked for: `id`, or words.

    Attributes:
        timezone: in which a month begins and ends.
    """

    type: str
    id: str | None = None
    query: str = ""
    limit: int = MOST
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class _Sight:
    """What a principal may see of a record type."""

    model: type[GovernedRecord]
    reached: ColumnElement[bool]
    commands: tuple[Descriptor, ...]
    fields: tuple[str, ...]


def find(session: Session, principal: Principal, looked: Looked) -> dict[str, Any]:
    """`{"records", "more"}`: one's own first, then the newest first.

    Raises:
        NotFound: no such record or type, or not for this principal; they look alike.
    """
    sight = _sight(session, principal, catalogue.of(session, principal), looked.type)
    model = sight.model
    wanted = [sight.reached]
    wanted.append(col(model.id) == looked.id if looked.id else _holds(model, looked))
    is_own = case((col(model.owner_id) == principal.user_id, 0), else_=1)
    query = (
        select(model)
        .where(and_(*wanted))
        .order_by(is_own, col(model.created_at).desc(), col(model.id).desc())
        .limit(looked.limit + 1)
    )
    rows = list(session.exec(query))
    if looked.id and not rows:
        raise NotFound
    shown = [_told(sight, row) for row in rows[: looked.limit]]
    return {"records": shown, "more": len(rows) > looked.limit}


def _sight(session: Session, principal: Principal, found: Catalogue, type: str) -> _Sight:
    model = registry.record_types().get(type)
    commands = tuple(each for each in found.entries if each.definition.record == type)
    if model is None or not commands:
        raise NotFound
    reading = [each for each in commands if each.definition.operation is Operation.READ]
    permissions = sorted({each.definition.permission for each in reading or commands})
    reached = or_(false(), *(scope.within(principal, each, model) for each in permissions))
    columns: tuple[str, ...] = ()
    if reading:
        secret = _secret_columns(session, principal.tenant_id)
        columns = tuple(name for name in model.model_fields if name not in HIDDEN | secret)
    return _Sight(model, reached, commands, columns)


def _secret_columns(session: Session, tenant_id: str) -> frozenset[str]:
    """Columns that some command fills from a field that no reader may see (CMD-20)."""
    names: set[str] = set()
    for each in catalogue.published(session, tenant_id):
        definition = each.definition
        for pointer in definition.secrets:
            own = published.python_name(pointer.partition("/")[0])
            mapped = {column for column, field in definition.map.items() if field == own}
            names |= {own, definition.map.get(own, own), *mapped}
    return frozenset(names)


def _told(sight: _Sight, row: GovernedRecord) -> dict[str, Any]:
    told = {
        "id": row.id,
        "type": row.RECORD,
        "label": row.label,
        "state": row.state,
        "version": row.version,
        "fields": {name: chain.plain(getattr(row, name)) for name in sight.fields},
        "may": [each.code for each in sight.commands if _takes(each, row)],
    }
    if isinstance(number := getattr(row, "number", None), str):
        told["number"] = number
    return told


def _takes(command: Descriptor, row: GovernedRecord) -> bool:
    """Whether a command is about one record, and begins where this one stands."""
    definition = command.definition
    if not definition.targeted:
        return False
    change = definition.transition
    if change is not None and getattr(row, change.field) not in change.from_:
        return False
    rules = (*definition.rules.asserts, *definition.rules.pre_invariants)
    asked = [expressions.compiled(rule.expr) for rule in rules]
    return all(_holds_now(each, row.state) for each in asked if each.reads_only("record", "state"))


def _holds_now(rule: expressions.Compiled, state: str) -> bool:
    try:
        return rule.value({"record": {"state": state}}) is True
    except Exception:  # noqa: BLE001 - a rule that cannot be asked has failed, as in the pipeline
        return False


def _holds(model: type[GovernedRecord], looked: Looked) -> ColumnElement[bool]:
    """The records that have every word: in their texts, their state, or as the month of a date."""
    text = fold(looked.query[:LONGEST]).replace("\0", "")
    zone = ZoneInfo(looked.timezone)
    months = [month for each in _MONTH.finditer(text) if (month := _month(each)) is not None]
    conditions = [_in_month(model, month, zone) for month in months]
    rest = _MONTH.sub(" ", text)
    for term in _terms(model, rest):
        texts = [func.lower(column).contains(term, autoescape=True) for column in _texts(model)]
        states = _states(model, term)
        conditions.append(or_(false(), *texts, col(model.state).in_(states)))
    return and_(True, *conditions)


def _terms(model: type[GovernedRecord], text: str) -> Iterator[str]:
    """Words that say which one: not the type's own name, nor words that fit all."""
    kin = {fold(name) for name in model.NAMES.values()}
    for name in sorted(kin, key=len, reverse=True):
        text = text.replace(name, " ")
    plain = {word for name in kin for word in name.split()}
    plain |= {f"{word}s" for word in plain}
    count = 0
    for word in re.split(r"[\s,;:!?，。；：！？、'\"“”]+", text):
        bare = word
        for stop in HAN_STOP:
            bare = bare.replace(stop, "")
        if bare and bare not in STOP and bare not in plain and count < TERMS_AT_MOST:
            count += 1
            yield bare


def _texts(model: type[GovernedRecord]) -> list[Any]:
    """Columns with words in them; ids of other rows and codes of people say nothing."""
    return [
        column
        for name, column in _columns(model, str)
        if name not in HIDDEN and not name.endswith(("_id", "_by"))
    ]


def _columns(model: type[GovernedRecord], python: type) -> list[tuple[str, Any]]:
    table = model.__table__  # type: ignore[attr-defined]
    return [(name, column) for name, column in table.columns.items() if _python(column) is python]


def _python(column: Any) -> type | None:
    kind = getattr(column.type, "impl_instance", column.type)  # of a type that decorates another
    try:
        found: type = kind.python_type
    except NotImplementedError:  # JSON, and what only a database knows
        return None
    return found


def _states(model: type[GovernedRecord], term: str) -> list[str]:
    """The states that are called so, in either language."""
    called: list[str] = []
    for state in model.STATES:
        names = {state}
        for tag in i18n.LANGUAGES:
            with i18n.speaking(tag):
                names.add(fold(i18n.gettext(state.replace("_", " ").capitalize())))
        if term in names or any(name.startswith(term) for name in names if len(term) > 1):
            called.append(state)
    return called


def _month(found: re.Match[str]) -> date | None:
    said = found.groupdict()
    year = said["year"] or said["han_year"] or said["digit_year"] or said["word_year"]
    if said["number"] or said["digit"]:
        number = int(said["number"] or said["digit"])
    elif said["han"]:
        number = HAN[said["han"]]
    else:
        number = next(
            place for place, name in enumerate(MONTHS, 1) if name.startswith(said["word"][:3])
        )
    if not 1 <= number <= 12:
        return None
    today = clock.now().date()
    if year is not None:
        return date(int(year), number, 1) if 1 <= int(year) <= 9998 else None
    return date(today.year if number <= today.month else today.year - 1, number, 1)


def _in_month(model: type[GovernedRecord], first: date, zone: ZoneInfo) -> ColumnElement[bool]:
    """Texts that are a date of it; where a type has none, moments in it."""
    written = f"{first.year:04}-{first.month:02}"
    dates = [
        column.startswith(written)
        for name, column in _columns(model, str)
        if _is_date(name, column)
    ]
    if dates:
        return or_(false(), *dates)
    after = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    begin, end = (datetime.combine(each, time(), zone).astimezone(UTC) for each in (first, after))
    moments = [column for _, column in _columns(model, datetime)]
    return or_(false(), *(and_(each >= begin, each < end) for each in moments))


def _is_date(name: str, column: Any) -> bool:
    """Whether a text column is a date or a month by its name and size, as packs write them."""
    length = getattr(column.type, "length", None)
    return length in {7, 10} and (
        name in {"period", "month", "day", "date"} or name.endswith(("_on", "_date"))
    )
