"""Numbers in a row, without gaps: taken in the call's transaction, given back by a rollback."""

from app.kernel.db import Work
from app.kernel.prepared import Prepared

_TAKE = Prepared(
    "INSERT INTO command_number (tenant_id, name, value) VALUES (:tenant_id, :name, 1) "
    "ON CONFLICT (tenant_id, name) DO UPDATE SET value = command_number.value + 1 RETURNING value"
)


def take(work: Work, tenant_id: str, name: str) -> str:
    """The next number of a tenant's sequence, as people read it: `EXP-2041`."""
    (value,) = _TAKE.run(work.connection, tenant_id=tenant_id, name=name).one()
    return f"{name}-{value}"
