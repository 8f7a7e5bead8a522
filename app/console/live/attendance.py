"""A person is there while a stream of theirs is open: for display, and nothing follows from it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from app.aun.gateway import registry
from app.identity.models import User
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work


@asynccontextmanager
async def there(person: Principal) -> AsyncIterator[None]:
    """Whoever looks sees `person` online inside the block, if nothing else shows them so."""
    row = await db.transaction(_come, person)
    try:
        yield
    finally:
        if row is not None:
            with anyio.CancelScope(shield=True):
                await db.transaction(_go, person, *row)


def _come(work: Work, person: Principal) -> tuple[str, str] | None:
    user = work.session.get(User, (person.tenant_id, person.user_id))
    if user is None or user.aid is None:
        return None
    return registry.looked_in(work, person.tenant_id, user.aid), user.aid


def _go(work: Work, person: Principal, row_id: str, aid: str) -> None:
    registry.closed(work, person.tenant_id, row_id, aid)
