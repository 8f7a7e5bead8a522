"""A person is there while a stream of theirs is open: for display, and nothing follows from it."""

import anyio

from app.aun.gateway import registry
from app.identity.models import User
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work

Place = tuple[str, str] | None  # who came: what is given back when they go


async def come(person: Principal) -> Place:
    """Whoever looks sees `person` online from now on, if nothing else shows them so."""
    return await db.transaction(_come, person)


async def go(person: Principal, place: Place) -> None:
    """`person` is there no more, whatever ended it."""
    if place is not None:
        with anyio.CancelScope(shield=True):
            await db.transaction(_go, person, *place)


def _come(work: Work, person: Principal) -> Place:
    user = work.session.get(User, (person.tenant_id, person.user_id))
    if user is None or user.aid is None:
        return None
    return registry.looked_in(work, person.tenant_id, user.aid), user.aid


def _go(work: Work, person: Principal, row_id: str, aid: str) -> None:
    registry.closed(work, person.tenant_id, row_id, aid)
