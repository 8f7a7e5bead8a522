"""The one module that writes HTML in Python: times and foreign text with its invisible characters.

Everything else is a template. Values go through `Markup.format`, which escapes them.
"""

from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babel.dates import format_date, format_datetime
from babel.numbers import format_decimal
from babel.units import format_unit
from markupsafe import Markup, escape

from app.console import viewer
from app.kernel import clock, unseen
from app.kernel.i18n import gettext as _
from app.kernel.i18n import locale_name

# Patterns of Babel: (today, this year, another year). UI-97
MOMENTS = {
    "en": ("HH:mm", "d MMM HH:mm", "d MMM y HH:mm"),
    "zh_CN": ("HH:mm", "M月d日 HH:mm", "y年M月d日 HH:mm"),
}
CODE_ACTS = Markup(
    '<p class="code-acts"><span class="meta" data-copied hidden>{copied}</span>'
    '<span class="meta" data-copy-failed hidden>{failed}</span>'
    ' <button type="button" data-copy hidden>{copy}</button></p>'
)
DATES = {"en": ("d MMM", "d MMM y"), "zh_CN": ("M月d日", "y年M月d日")}


def moment(when: datetime) -> Markup:
    """A point in time as people say it, in the viewer's zone; the exact one is its title."""
    local = when.astimezone(zone())
    today = clock.now().astimezone(zone()).date()
    same_day, same_year, other = MOMENTS[locale_name()]
    pattern = other
    if local.date() == today:
        pattern = same_day
    elif local.year == today.year:
        pattern = same_year
    utc = when.astimezone(UTC)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
        utc.strftime("%Y-%m-%d %H:%M:%S"),
        format_datetime(local, pattern, locale=locale_name()),
    )


def day(when: date) -> Markup:
    """A calendar day; of a point in time, the day it has in the viewer's zone."""
    local = when.astimezone(zone()).date() if isinstance(when, datetime) else when
    this_year, other = DATES[locale_name()]
    is_this_year = local.year == clock.now().astimezone(zone()).year
    return Markup('<time datetime="{}">{}</time>').format(
        local.isoformat(),
        format_date(local, this_year if is_this_year else other, locale=locale_name()),
    )


def local_day(when: datetime) -> date:
    """The day that a point in time has in the viewer's zone."""
    return when.astimezone(zone()).date()


def cleaned(html: str) -> Markup:
    """HTML that `aun.markdown` made of a message and cleaned when it was stored.

    Each block of code gets a button that copies it; it appears where there is script. Text never
    begins a tag there, so that what looks like the beginning of a block is one.
    """
    acts = CODE_ACTS.format(copy=_("Copy the code"), copied=_("Copied"), failed=_("Press Ctrl+C"))
    drawn = html.replace("<pre>", f'<div class="code" dir="ltr">{acts}<pre data-copy-text>')
    return Markup(drawn.replace("</pre>", "</pre></div>"))  # noqa: S704 - nh3 let it through


def number(value: float) -> str:
    """A number with the separators of the reader."""
    return str(format_decimal(value, locale=locale_name()))


def duration(value: float | timedelta) -> str:
    """`1.2 s`, `4:32`, `2:05:09`, and whole days above that."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds < 60:
        return f"{number(round(seconds, 1))} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        return str(format_unit(hours // 24, "day", length="long", locale=locale_name()))
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def zone_offset(when: datetime | None = None) -> str:
    """The viewer's zone as it is named beside filtered and exported times: `UTC+08:00`."""
    text = (when or clock.now()).astimezone(zone()).strftime("%z")
    return f"UTC{text[:3]}:{text[3:5]}"


def visible(text: object) -> Markup:
    """Foreign text with every character that hides or reorders others drawn as a chip (UI-60)."""
    drawn = Markup("").join(map(_drawn, _with_neighbours(str(text))))
    return Markup("<bdi>{}</bdi>").format(drawn)


def zone() -> ZoneInfo:
    """The viewer's time zone; one this machine does not know is UTC."""
    return _zone(viewer.current().time_zone)


def _with_neighbours(text: str) -> list[tuple[str, str]]:
    return list(zip(" " + text[:-1], text, strict=True)) if text else []


def _drawn(pair: tuple[str, str]) -> Markup:
    before, character = pair
    if unseen.hides(before, character):
        return Markup('<span class="chip-invisible">⟨U+{}⟩</span>').format(f"{ord(character):04X}")
    return escape(character)


@cache
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")
