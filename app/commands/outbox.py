"""The outbox: what a call has to tell, written in the call's own transaction, told after it.

`put` belongs to stage `effect`; a command that tells one thing costs one statement, one that tells
nothing costs none. A crash after the commit only delays what is in here (CMD-24).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from app.commands import external, told
from app.commands.definition import Operation
from app.kernel import ids
from app.kernel.prepared import Prepared

if TYPE_CHECKING:
    from app.commands.context import Context

_COLUMNS = (
    *("tenant_id", "id", "kind", "name", "line", "seq", "place", "call_id", "record_type"),
    *("record_id", "org_id", "owner_id", "permission", "is_for_receivers", "data", "at"),
    "due_at",
)
_INSERT = Prepared(
    f"INSERT INTO outbox_event ({', '.join(_COLUMNS)}, state, attempts, last_error) "  # noqa: S608 - our columns
    f"VALUES ({', '.join(':' + name for name in _COLUMNS)}, 'pending', 0, '')"
)

_wakers: set[Callable[[], None]] = set()


def put(ctx: "Context") -> None:
    """Write down what the call has to tell; its audit entry, which gives the order, comes first."""
    tellings = list(told.by(ctx))
    permission = _permission(ctx) if tellings else ""
    for place, telling in enumerate(tellings):
        _INSERT.run_with(ctx.work.connection, _row(ctx, place, telling, permission))
    if ctx.command.operation is Operation.EXTERNAL:
        external.put(ctx)
    elif not tellings:
        return
    ctx.work.after_commit(wake)


def preview(ctx: "Context") -> list[dict[str, Any]]:
    """What would leave the house, for a person to see before: kind, name, data (CMD-16)."""
    found = [
        {"kind": each.kind, "name": each.name, "data": each.data}
        for each in told.by(ctx, is_preview=True)
        if each.kind != told.DOMAIN_EVENT  # which stays inside
    ]
    if ctx.command.operation is Operation.EXTERNAL:
        request = external.shown(ctx)
        found.append({"kind": told.EXTERNAL, "name": told.performer(ctx.command), "data": request})
    return found


def wake() -> None:
    """Let the dispatchers of this process look at once; from any thread."""
    for waker in list(_wakers):
        waker()


def on_wake(waker: Callable[[], None]) -> Callable[[], None]:
    """Call `waker` whenever there may be something to tell; returns what ends that."""
    _wakers.add(waker)
    return lambda: _wakers.discard(waker)


def _permission(ctx: "Context") -> str:
    """By which people hear of what the call tells: the one that reads its record."""
    if ctx.record is None:
        return ctx.command.permission
    return told.reading_permission(ctx.record.RECORD, ctx.command.permission)


def _row(ctx: "Context", place: int, telling: told.Telling, permission: str) -> dict[str, Any]:
    record, principal = ctx.record, ctx.call.principal
    return {
        "tenant_id": principal.tenant_id,
        "id": ids.ulid(),
        "kind": telling.kind,
        "name": telling.name,
        "line": record.id if record is not None else ctx.call.call_id,
        "seq": ctx.audit_seq,
        "place": place,
        "call_id": ctx.call.call_id,
        "record_type": record.RECORD if record is not None else None,
        "record_id": record.id if record is not None else None,
        "org_id": record.org_id if record is not None else ctx.user.org_id,
        "owner_id": record.owner_id if record is not None else ctx.user.id,
        "permission": permission,
        "is_for_receivers": telling.is_for_receivers,
        "data": telling.data,
        "at": ctx.now,
        "due_at": ctx.now,
    }
