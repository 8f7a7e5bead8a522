"""Whose an AID is, remembered: an AID is never given to anyone else, so it stays true."""

from collections import OrderedDict

from sqlmodel import Session

from app.aun import queries
from app.kernel import db

KEPT = 10_000

_hosted: OrderedDict[tuple[str, str], bool] = OrderedDict()


async def is_hosted(tenant_id: str, aid: str) -> bool:
    """Whether a user or an agent of this server is known by it; nobody is not."""
    key = (tenant_id, aid)
    if key not in _hosted:
        found = await db.read(_look, tenant_id, aid)
        if found is None:
            return False
        _hosted[key] = found
        if len(_hosted) > KEPT:
            _hosted.popitem(last=False)
    return _hosted[key]


def _look(session: Session, tenant_id: str, aid: str) -> bool | None:
    found = queries.identity(session, tenant_id, aid)
    return None if found is None else found.kind in queries.HOSTED
