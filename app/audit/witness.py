"""What the trail knows of who did what before: the witness of separated duties (commands.md, 3)."""

from sqlalchemy import Connection

from app.kernel.prepared import Prepared

_ON_RECORD = Prepared(
    "SELECT 1 FROM audit_entry WHERE tenant_id = :tenant_id AND target_id = :target_id "
    "AND command = :command AND user_id = :user_id AND outcome IN ('done', 'dispatched') LIMIT 1"
)
_ON_TYPE = Prepared(
    "SELECT 1 FROM audit_entry WHERE tenant_id = :tenant_id AND user_id = :user_id "
    "AND command = :command AND target_type = :target_type "
    "AND outcome IN ('done', 'dispatched') LIMIT 1"
)


def has_done(
    connection: Connection,
    *,
    tenant_id: str,
    user_id: str,
    command: str,
    target_type: str,
    target_id: str | None,
) -> bool:
    """Whether a user, or an agent of theirs, ran a command on a record, or on any of its type."""
    who = {"tenant_id": tenant_id, "user_id": user_id, "command": command}
    if target_id is None:
        return _ON_TYPE.run(connection, **who, target_type=target_type).first() is not None
    return _ON_RECORD.run(connection, **who, target_id=target_id).first() is not None
