"""Regions of a page, drawn again after a gap: all as of one cursor (UI-46)."""

import re
from collections.abc import Sequence

from sqlmodel import Session

from app.console.live import families
from app.console.live.rendering import Asked, Partial
from app.console.viewer import Viewer, viewing
from app.identity.principal import Principal
from app.kernel import event_log
from app.kernel.event_log import Position

AT_MOST = 50  # in one request
_FORM = re.compile(r"([a-z-]{1,40})(?::([\w-]{1,64}))?(?:@(\d{1,18}(?:\.\d{1,9})?))?")


def asked(person: Principal, texts: Sequence[str]) -> list[Asked]:
    """What the tab wants drawn; what has another form, or a name nobody draws, is left out."""
    wanted = []
    for found in filter(None, map(_FORM.fullmatch, texts[:AT_MOST])):
        name, key, oldest = found.groups()
        if name in families.found().regions:
            wanted.append(Asked(person, name, key or "", int(float(oldest)) if oldest else None))
    return wanted


def draw(session: Session, reader: Viewer, wanted: Sequence[Asked]) -> tuple[Position, str]:
    """The regions, each a partial, and the cursor: read before the data, so nothing is missed."""
    cursor = event_log.newest(session, reader.tenant_id)
    with viewing(reader):
        return cursor, "".join(str(_region(session, each)) for each in wanted)


def _region(session: Session, wanted: Asked) -> Partial:
    inner = families.found().regions[wanted.name](session, wanted)
    name = f"{wanted.name}:{wanted.key}" if wanted.key else wanted.name
    return Partial(f"[data-region='{name}']", "innerMorph", inner or "")
