"""A bar chart of counts by day, and its table: what to draw where, for the template (UI-108)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from babel import Locale

WIDTH, HEIGHT = 640, 200
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 10, 22  # room for what stands around the bars
LINES = 4  # gridlines at the most
DAYS, WEEKS = 45, 60  # bars at the most, before each is a week, or a month
GAP = 1  # between the parts of a bar
LABELS = 6  # below the bars, at the most


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a bar."""

    series: str
    count: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One day, week or month: its first day, the day after its last, and its parts from below."""

    first: date
    end: date
    total: int
    x: float
    width: float
    parts: Sequence[Part]
    is_labelled: bool
    counts: Mapping[str, int]

    @property
    def last(self) -> date:
        """Its last day."""
        return self.end - timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything the template draws."""

    bars: Sequence[Bar]
    series: Sequence[str]  # in the order of the stack, from below
    lines: Sequence[tuple[int, float]]  # value, y
    step: str  # `day`, `week` or `month`
    totals: Mapping[str, int]

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.totals.values())

    @property
    def most(self) -> int:
        """The highest bar."""
        return max((bar.total for bar in self.bars), default=0)

    @property
    def least(self) -> int:
        """The lowest bar."""
        return min((bar.total for bar in self.bars), default=0)


def chart(
    counted: Iterable[tuple[int, str, int]],
    order: Sequence[str],
    zone: tzinfo,
    locale: str,
) -> Chart | None:
    """Bars of (epoch seconds, series, count), None where there is nothing to count.

    `order` are the series from below; what is not among them stands on top.
    """
    by_day: dict[date, dict[str, int]] = {}
    for at, series, count in counted:
        day = datetime.fromtimestamp(at, UTC).astimezone(zone).date()
        of_day = by_day.setdefault(day, {})
        of_day[series] = of_day.get(series, 0) + count
    if not by_day:
        return None
    first, last = min(by_day), max(by_day)
    step = _step(first, last)
    starts = _starts(first, last, step, Locale.parse(locale).first_week_day)
    counts = _gathered(by_day, starts)
    totals: dict[str, int] = {}
    for of_bar in counts:
        for series, count in of_bar.items():
            totals[series] = totals.get(series, 0) + count
    stack = [*(each for each in order if each in totals), *sorted({*totals} - {*order})]
    top, lines = _scale(max(sum(of_bar.values()) for of_bar in counts))
    return Chart(_bars(starts, counts, stack, top), stack, lines, step, totals)


def _step(first: date, last: date) -> str:
    days = (last - first).days + 1
    if days <= DAYS:
        return "day"
    return "week" if days <= WEEKS * 7 else "month"


def _starts(first: date, last: date, step: str, first_week_day: int) -> list[date]:
    """The first day of each bar, and of the one that would follow."""
    if step == "week":
        first -= timedelta(days=(first.weekday() - first_week_day) % 7)
    elif step == "month":
        first = first.replace(day=1)
    starts = [first]
    while starts[-1] <= last:
        starts.append(_next(starts[-1], step))
    return starts


def _next(day: date, step: str) -> date:
    if step == "month":
        return (day.replace(day=28) + timedelta(days=4)).replace(day=1)
    return day + timedelta(days=7 if step == "week" else 1)


def _gathered(by_day: dict[date, dict[str, int]], starts: list[date]) -> list[dict[str, int]]:
    gathered: list[dict[str, int]] = [{} for _ in starts[1:]]
    place = 0
    for day in sorted(by_day):
        while day >= starts[place + 1]:
            place += 1
        for series, count in by_day[day].items():
            gathered[place][series] = gathered[place].get(series, 0) + count
    return gathered


def _scale(most: int) -> tuple[int, list[tuple[int, float]]]:
    """A round value above every bar, and the gridlines up to it."""
    width = 1
    while width * LINES < most:
        digit = int(str(width)[0])
        width = width * 2 if digit != 2 else width // 2 * 5
    top = -(-most // width) * width
    values = range(0, top + 1, width)
    return top, [(value, round(_y(value, top), 2)) for value in values]


def _y(value: float, top: int) -> float:
    return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)


def _bars(
    starts: list[date], counts: list[dict[str, int]], stack: Sequence[str], top: int
) -> list[Bar]:
    room = (WIDTH - LEFT - RIGHT) / len(counts)
    width = min(room * 0.8, 40)
    every = -(-len(counts) // LABELS)
    bars = []
    for place, of_bar in enumerate(counts):
        parts, below = [], 0
        for series in (each for each in stack if of_bar.get(each)):
            count = of_bar[series]
            y, foot = _y(below + count, top), _y(below, top)
            parts.append(Part(series, count, round(y, 2), round(max(foot - y - GAP, 0.5), 2)))
            below += count
        x = round(LEFT + room * place + (room - width) / 2, 2)
        bars.append(
            Bar(
                starts[place],
                starts[place + 1],
                below,
                x,
                round(width, 2),
                parts,
                place % every == 0,
                of_bar,
            )
        )
    return bars
