"""The rule of a schedule as it was understood, in the reader's language."""

from datetime import timedelta

from babel.dates import get_day_names
from babel.lists import format_list

from app.kernel.i18n import gettext, locale_name, ngettext
from app.runs import schedule_rules
from app.runs.schedule_rules import At, Every

WEEK, WEEKDAYS, WEEKEND = frozenset(range(7)), frozenset(range(5)), frozenset({5, 6})
HOUR = timedelta(hours=1)


def understood(rule: str) -> str:
    """`mondays 9` as “Every Monday at 09:00”; what is no rule any more stays as it is."""
    try:
        parsed = schedule_rules.parse(rule)
    except ValueError:
        return rule
    return _every(parsed) if isinstance(parsed, Every) else _at(parsed)


def _every(rule: Every) -> str:
    hours, rest = divmod(rule.interval, HOUR)
    if not rest:
        return ngettext("Every hour", "Every %(num)d hours", hours) % {"num": hours}
    minutes = rule.interval // timedelta(minutes=1)
    return gettext("Every %(num)d minutes") % {"num": minutes}


def _at(rule: At) -> str:
    time = {"time": rule.time.strftime("%H:%M")}
    if rule.days == WEEK:
        return gettext("Every day at %(time)s") % time
    if rule.days == WEEKDAYS:
        return gettext("On weekdays at %(time)s") % time
    if rule.days == WEEKEND:
        return gettext("On weekends at %(time)s") % time
    names = get_day_names(locale=locale_name())
    days = format_list([names[day] for day in sorted(rule.days)], locale=locale_name())
    return gettext("Every %(days)s at %(time)s") % {"days": days, **time}
