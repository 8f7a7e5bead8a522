"""The counts of the rail, drawn again after a gap."""

from sqlmodel import Session

from app.console.live import families
from app.console.live.rendering import Asked, Regions, html_of


def _badge(session: Session, asked: Asked) -> str | None:
    count = families.found().badges.get(asked.key)
    if count is None:
        return None
    return html_of("live/_badge.html", name=asked.key, count=count(session, asked.person))


REGIONS: Regions = {"badges": _badge}
