"""Reading the trail: its head, pages of what filters leave, and how many those are (CMD-21).

Entries are listed by time. Whatever the filters, the one that is likely to leave least says through
which index they are read, and the rest are looked at row by row; so the newest fifty are found
without reading what is not among them (performance.md, C7).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    UnaryExpression,
    cast,
    false,
    literal,
    literal_column,
    tuple_,
    union_all,
)
from sqlalchemy import select as sql_select
from sqlalchemy.sql import operators
from sqlmodel import Session, col, func, select

from app.audit import chain
from app.audit.models import AuditEntry, AuditHead
from app.identity import paging
from app.kernel import keyring

COUNTED = 10_000  # hits beyond it are "more than"
TOGETHER = 60  # codes of a prefix or a tag that are each read through the index
CODES = 5_000  # different commands in a trail
QUARTER_S = 900  # every zone's days begin at a quarter of an hour
BACK, ON = "b", "n"


@dataclass(frozen=True, slots=True)
class Head:
    """Where a tenant's chain stands."""

    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Sight:
    """What of the trail somebody sees: all of the tenant's, unless one of these narrows it.

    `own` names whose entries alone; `where` is a condition, such as `access.scope.reaches(…,
    owner=AuditEntry.user_id, org=AuditEntry.org_id)`.
    """

    own: str | None = None
    where: ColumnElement[bool] | None = None

    @property
    def is_everything(self) -> bool:
        """Whether nothing narrows it."""
        return self.own is None and self.where is None

    def conditions(self) -> list[ColumnElement[bool]]:
        """What has to hold for an entry."""
        own = [] if self.own is None else [col(AuditEntry.user_id) == self.own]
        return own if self.where is None else [*own, self.where]


EVERYTHING = Sight()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What to look for; what is None or empty narrows nothing."""

    since: datetime | None = None
    until: datetime | None = None  # exclusive
    user_id: str | None = None
    agent_id: str | None = None
    agent_release: str | None = None
    model: str | None = None
    model_version: str | None = None
    command: str | None = None  # a code, or the beginning of codes: `expense`, `expense.`
    commands: tuple[str, ...] | None = None  # codes that have a tag; none of them: no entry
    risks: tuple[str, ...] = ()
    irreversible: bool = False
    outcomes: tuple[str, ...] = ()
    stage: str | None = None
    reason: str | None = None
    approved_by: str | None = None
    target_id: str | None = None
    conversation_id: str | None = None
    prompt_ref: str | None = None  # the source message
    run_id: str | None = None
    channel: str | None = None
    by: Literal["agent", "person"] | None = None
    consent: Literal["other", "own", "none"] | None = None  # who approved: another, oneself, nobody


@dataclass(frozen=True, slots=True)
class Counted:
    """How many hits there are, in all, and by quarter of an hour and a column's value.

    Of more than `COUNTED` hits the newest are counted, and `is_more` says so.
    """

    total: int
    is_more: bool
    parts: Sequence[tuple[int, str, int]]  # epoch seconds, value, how many


@dataclass(frozen=True, slots=True)
class Place:
    """An entry in the order of the list, and the direction in which to go on from it."""

    direction: str
    at: datetime
    seq: int


# Columns that are held against values, by the name of their filter. Whose filter is likely to
# leave least comes first: it leads, through its index.
_SELECTIVE = (
    *("run_id", "conversation_id", "prompt_ref", "target_id", "approved_by", "agent_release"),
    *("reason", "stage", "model_version", "risk", "command", "user_id", "agent_id", "model"),
    *("outcome", "channel"),
)


def head(session: Session, tenant_id: str) -> Head | None:
    """The end of a tenant's chain, None while it has no entry."""
    query = select(AuditHead.seq, AuditHead.hash).where(AuditHead.tenant_id == tenant_id)
    found = session.exec(query).first()
    return Head(*found) if found and found[0] else None


def latest(session: Session, tenant_id: str, limit: int = 20) -> Sequence[AuditEntry]:
    """The newest entries of a tenant."""
    return page(session, tenant_id, Filters(), size=limit).rows


def one(session: Session, tenant_id: str, seq: int, sight: Sight = EVERYTHING) -> AuditEntry | None:
    """One entry, if there is one with this number that can be seen."""
    query = select(AuditEntry).where(AuditEntry.tenant_id == tenant_id, AuditEntry.seq == seq)
    return session.exec(query.where(*sight.conditions())).first()


def of_call(
    session: Session, tenant_id: str, call_id: str, sight: Sight = EVERYTHING
) -> Sequence[AuditEntry]:
    """The entries of one call, the oldest first: what it did, and what became of it outside."""
    query = select(AuditEntry).where(
        AuditEntry.tenant_id == tenant_id, AuditEntry.call_id == call_id, *sight.conditions()
    )
    return session.exec(query.order_by(col(AuditEntry.seq)).limit(20)).all()


def hash_before(session: Session, entry: AuditEntry) -> str | None:
    """The hash of the entry whose number comes before, None where it is gone."""
    if entry.seq == 1:
        return chain.GENESIS
    query = select(AuditEntry.hash).where(
        AuditEntry.tenant_id == entry.tenant_id, AuditEntry.seq == entry.seq - 1
    )
    return session.exec(query).first()


def neighbours(
    session: Session, entry: AuditEntry, sight: Sight = EVERYTHING
) -> tuple[int | None, int | None]:
    """The numbers of the entries before and after `entry` in time that can be seen."""
    found = []
    for direction in (ON, BACK):
        place = Place(direction, entry.at, entry.seq)
        seqs = _seqs(session, entry.tenant_id, Filters(), sight, place, 1)
        found.append(seqs[0] if seqs else None)
    return found[0], found[1]


def page(
    session: Session,
    tenant_id: str,
    filters: Filters,
    *,
    cursor: str | None = None,
    size: int = paging.SIZE,
    sight: Sight = EVERYTHING,
) -> paging.Page[AuditEntry]:
    """Entries at `cursor`, the newest first."""
    place = _parsed(session, tenant_id, cursor)
    seqs = _seqs(session, tenant_id, filters, sight, place, size + 1)
    has_more, seqs = len(seqs) > size, seqs[:size]
    is_back = place is not None and place.direction == BACK
    if is_back:
        seqs.reverse()
    has_previous = has_more if is_back else place is not None and bool(seqs)
    has_next = bool(seqs) if is_back else has_more
    return paging.Page(
        rows=_entries(session, tenant_id, seqs),
        previous=_cursor(BACK, seqs[0]) if has_previous else None,
        next=_cursor(ON, seqs[-1]) if has_next else None,
    )


def older(
    session: Session,
    tenant_id: str,
    filters: Filters,
    sight: Sight,
    *,
    than: Place | None,
    up_to: int,
    size: int,
) -> Sequence[AuditEntry]:
    """The next entries of an export, the newest first: behind `than`, numbered up to `up_to`."""
    seqs = _seqs(session, tenant_id, filters, sight, than, size, up_to)
    return _entries(session, tenant_id, seqs)


def count(
    session: Session,
    tenant_id: str,
    filters: Filters,
    sight: Sight = EVERYTHING,
    *,
    by: Literal["outcome", "stage"] = "outcome",
) -> Counted:
    """How many hits, and when: for the button of the export and for the chart."""
    kind = getattr(AuditEntry, by).label("kind")
    rows = _hits(session, tenant_id, filters, sight, None, COUNTED + 1, kind).subquery()
    seconds: Any = (
        cast(func.strftime("%s", rows.c.at), Integer)
        if _is_sqlite(session)
        else cast(func.floor(func.extract("epoch", rows.c.at)), BigInteger)
    )
    quarter = (seconds - seconds % literal_column(str(QUARTER_S))).label("quarter")
    query = sql_select(quarter, rows.c.kind, func.count()).group_by(quarter, rows.c.kind)
    parts = [(int(at), value or "", many) for at, value, many in session.execute(query)]
    total = sum(many for _, _, many in parts)
    return Counted(min(total, COUNTED), total > COUNTED, parts)


def values(
    session: Session,
    tenant_id: str,
    column: str,
    sight: Sight = EVERYTHING,
    *,
    limit: int = 200,
    recent: int = 2_000,
) -> list[str]:
    """Values that occur in an indexed column, for what a filter offers.

    Of everything, each is jumped to in the index, so it takes as long as there are values; of what
    somebody else may see, those of the most recent entries.
    """
    of_column = getattr(AuditEntry, column)
    if not sight.is_everything:
        kind = of_column.label("kind")
        rows = _hits(session, tenant_id, Filters(), sight, None, recent, kind).subquery()
        recently = sql_select(rows.c.kind).where(rows.c.kind.is_not(None)).distinct()
        return sorted(session.scalars(recently.limit(limit)))
    of_tenant = (col(AuditEntry.tenant_id) == tenant_id, of_column.is_not(None))
    steps = (
        sql_select(func.min(of_column).label("value"))
        .where(*of_tenant)
        .cte("steps", recursive=True)
    )
    following = sql_select(func.min(of_column)).where(*of_tenant, of_column > steps.c.value)
    steps = steps.union_all(
        sql_select(following.scalar_subquery()).where(steps.c.value.is_not(None))
    )
    found = sql_select(steps.c.value).where(steps.c.value.is_not(None)).limit(limit)
    return sorted(session.scalars(found))


def _seqs(
    session: Session,
    tenant_id: str,
    filters: Filters,
    sight: Sight,
    place: Place | None,
    limit: int,
    up_to: int | None = None,
) -> list[int]:
    query = _hits(session, tenant_id, filters, sight, place, limit, up_to=up_to)
    return [row[0] for row in session.execute(query)]


def _entries(session: Session, tenant_id: str, seqs: Sequence[int]) -> list[AuditEntry]:
    query = select(AuditEntry).where(
        AuditEntry.tenant_id == tenant_id, col(AuditEntry.seq).in_(seqs)
    )
    found = {entry.seq: entry for entry in session.exec(query)} if seqs else {}
    return [found[seq] for seq in seqs]


def _hits(
    session: Session,
    tenant_id: str,
    filters: Filters,
    sight: Sight,
    place: Place | None,
    limit: int,
    *further: Any,
    up_to: int | None = None,
) -> Select[Any]:
    """(seq, at, …) of at most `limit` entries in their order, which is backwards behind `BACK`."""
    besides = [col(AuditEntry.tenant_id) == tenant_id, *_scattered(filters)]
    if sight.own is not None:
        if filters.user_id not in {None, sight.own}:
            besides.append(false())
        filters = replace(filters, user_id=sight.own)
    if sight.where is not None:
        besides.append(sight.where)
    if up_to is not None:
        besides.append(_aside(session, col(AuditEntry.seq)) <= up_to)
    if place is not None:
        besides += _beyond(place)
    leading, rest = _led(_wanted(session, tenant_id, filters))
    besides += [
        _aside(session, getattr(AuditEntry, name)).in_(values) for name, values in rest.items()
    ]
    is_back = place is not None and place.direction == BACK
    columns = (col(AuditEntry.seq).label("seq"), col(AuditEntry.at).label("at"), *further)
    order = (col(AuditEntry.at), col(AuditEntry.seq))
    parts = [
        sql_select(*columns)
        .where(*besides, *branch)
        .order_by(*(each.asc() if is_back else each.desc() for each in order))
        .limit(limit)
        for branch in leading
    ]
    if len(parts) == 1:
        return parts[0]
    merged = union_all(*(sql_select(part.subquery()) for part in parts)).subquery()
    both = (merged.c.at, merged.c.seq)
    in_order = (each.asc() if is_back else each.desc() for each in both)
    return sql_select(merged).order_by(*in_order).limit(limit)


Wanted = dict[str, tuple[str, ...]]


def _wanted(session: Session, tenant_id: str, filters: Filters) -> Wanted:
    """The values each column has to have one of, the leading filter first."""
    several: dict[str, tuple[str, ...] | None] = {
        "risk": filters.risks or None,
        "outcome": filters.outcomes or None,
        "command": _codes(session, tenant_id, filters),
    }
    found = {}
    for name in _SELECTIVE:
        if name in several:
            values = several[name]
        else:
            value = getattr(filters, name)
            values = None if value is None else (value,)
        if values is not None:
            found[name] = values
    return found


def _codes(session: Session, tenant_id: str, filters: Filters) -> tuple[str, ...] | None:
    """The commands that are meant; None where all are."""
    tagged, typed = filters.commands, filters.command
    if not typed:
        return tagged
    stem = typed.rstrip(".")
    known = values(session, tenant_id, "command", limit=CODES) if tagged is None else tagged
    return tuple(
        code
        for code in known
        if code.startswith(f"{stem}.") or (code == stem and not typed.endswith("."))
    )


def _led(wanted: Wanted) -> tuple[list[list[ColumnElement[bool]]], Wanted]:
    """A branch for each value of the filter that leads, and the filters that do not."""
    name = next((name for name, values in wanted.items() if _may_lead(name, values)), None)
    if name is None:
        return [[]], wanted
    column = getattr(AuditEntry, name)
    branches = [[column == value, *_known_of(name)] for value in dict.fromkeys(wanted[name])]
    return branches, {other: values for other, values in wanted.items() if other != name}


def _may_lead(name: str, values: tuple[str, ...]) -> bool:
    if name == "outcome":
        return "done" not in values  # has no index: most entries are
    return 0 < len(values) <= TOGETHER


def _known_of(name: str) -> list[ColumnElement[bool]]:
    # said as the index says it, so that the database knows that the index holds every hit
    return [col(AuditEntry.outcome) != literal_column("'done'")] if name == "outcome" else []


def _scattered(filters: Filters) -> Iterable[ColumnElement[bool]]:
    """What is more than a column that has one of some values."""
    if filters.since is not None:
        yield col(AuditEntry.at) >= filters.since
    if filters.until is not None:
        yield col(AuditEntry.at) < filters.until
    if filters.irreversible:
        yield col(AuditEntry.reversible).is_(False)
    if filters.by is not None:
        acted = col(AuditEntry.agent_id)
        yield acted.is_not(None) if filters.by == "agent" else acted.is_(None)
    approver = col(AuditEntry.approved_by)
    match filters.consent:
        case "none":
            yield approver.is_(None)
        case "own" | "other" as who:
            yield approver.is_not(None)
            asked = col(AuditEntry.user_id)
            yield approver == asked if who == "own" else approver != asked


def _beyond(place: Place) -> list[ColumnElement[bool]]:
    here = tuple_(col(AuditEntry.at), col(AuditEntry.seq))
    there = tuple_(literal(place.at, AuditEntry.at.type), literal(place.seq))  # type: ignore[attr-defined]
    if place.direction == BACK:
        return [here > there]
    return [here < there]


def _aside(session: Session, column: Any) -> Any:
    """The column so that SQLite, which knows nothing of what is in it, does not lead by it."""
    if not _is_sqlite(session):
        return column
    return UnaryExpression(column, operator=operators.custom_op("+"), type_=column.type)


def _is_sqlite(session: Session) -> bool:
    return session.get_bind().dialect.name == "sqlite"


def _cursor(direction: str, seq: int) -> str:
    place = f"{direction}{seq}"
    return f"{place}.{keyring.sign(paging.PURPOSE, place)}"


def _parsed(session: Session, tenant_id: str, cursor: str | None) -> Place | None:
    """The place a cursor names; one that is not ours is the first page."""
    signed, _, mac = (cursor or "").rpartition(".")
    direction, number = signed[:1], signed[1:]
    if direction not in {BACK, ON} or not keyring.verifies(paging.PURPOSE, signed, mac):
        return None
    query = select(AuditEntry.at).where(
        AuditEntry.tenant_id == tenant_id, AuditEntry.seq == int(number)
    )
    at = session.exec(query).first()
    return None if at is None else Place(direction, at, int(number))
