"""Dates and times as people type them, in their own zone."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator

from app.console import markup
from app.kernel.i18n import N_


def read(typed: datetime) -> datetime:
    """The point in time that was typed: what names no zone is in the viewer's.

    Raises:
        ValueError: there is no such time in UTC.
    """
    local = typed if typed.tzinfo else typed.replace(tzinfo=markup.zone())
    try:
        return local.astimezone(UTC)
    except OverflowError as fault:
        raise ValueError(N_("This value does not do.")) from fault


def typed(moment: datetime | None) -> str:
    """How `moment` stands in a field for a date and a time."""
    return moment.astimezone(markup.zone()).strftime("%Y-%m-%dT%H:%M") if moment else ""


Moment = Annotated[datetime, AfterValidator(read)]
