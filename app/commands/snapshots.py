"""What was in force when a call wrote: kept after the commit, at no cost to the call.

The outbox of snapshots is the trail itself: each entry of a call that wrote is its order, gapless
and in the call's own commit, and a cursor says how far they were taken. Definitions never change;
grants are read a moment later, and the snapshot says at which entry.
"""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, select

from app.audit.models import AuditHead
from app.commands.outbox_models import GovernanceCursor, GovernanceSnapshot
from app.kernel import json
from app.kernel.db import Work
from app.kernel.prepared import Prepared

BATCH = 200  # entries at once
KNOWN = 4_096  # contents

_known: dict[str, tuple[str, dict[str, Any]]] = {}  # by content hash

_INSERT = Prepared(
    "INSERT INTO governance_snapshot (tenant_id, call_id, seq, at, command, version, "
    "content_hash, agent_release, permission, grants, rules, as_of_seq) "
    "VALUES (:tenant_id, :call_id, :seq, :at, :command, :version, "
    ":content_hash, :agent_release, :permission, :grants, :rules, :as_of_seq) "
    "ON CONFLICT (tenant_id, call_id) DO NOTHING"
)
_WRITTEN = Prepared(
    "SELECT tenant_id, seq, at, call_id, command, version, user_id, agent_release FROM audit_entry "
    "WHERE tenant_id = :tenant_id AND seq > :after AND seq <= :upto AND version IS NOT NULL "
    "AND outcome IN ('done', 'dispatched') AND risk <> 'L0' ORDER BY seq"
)
_VERSION = Prepared(
    "SELECT id, content_hash FROM command_version "
    "WHERE tenant_id = :tenant_id AND code = :code AND version = :version"
)
_CONTENT = Prepared(
    "SELECT definition FROM command_version WHERE tenant_id = :tenant_id AND id = :id"
)
_GRANTS = Prepared(
    "SELECT r.code, x.org_id, g.data_scope FROM role_assignment x "
    "JOIN role r ON r.tenant_id = x.tenant_id AND r.id = x.role_id "
    'JOIN "grant" g ON g.tenant_id = x.tenant_id AND g.role_id = x.role_id '
    "WHERE x.tenant_id = :tenant_id AND x.user_id = :user_id AND g.permission = :permission "
    "AND (x.ends_at IS NULL OR x.ends_at > :at) ORDER BY r.code, x.org_id"
)
_BEHIND = Prepared(
    "SELECT h.tenant_id FROM audit_head h LEFT JOIN governance_cursor c "
    "ON c.tenant_id = h.tenant_id WHERE c.seq IS NULL OR c.seq < h.seq"
)
_OPEN = Prepared(
    "INSERT INTO governance_cursor (tenant_id, seq) VALUES (:tenant_id, 0) "
    "ON CONFLICT (tenant_id) DO NOTHING"
)


@dataclass(frozen=True, slots=True)
class Written:
    """An entry of a call that wrote, as far as a snapshot needs it; `at` as the driver gives it."""

    tenant_id: str
    seq: int
    at: Any
    call_id: str
    command: str
    version: int
    user_id: str
    agent_release: str | None


def of_call(session: Session, tenant_id: str, call_id: str) -> GovernanceSnapshot | None:
    """What was in force for one call, once it was kept."""
    query = select(GovernanceSnapshot).where(
        GovernanceSnapshot.tenant_id == tenant_id, GovernanceSnapshot.call_id == call_id
    )
    return session.exec(query).first()


def behind(session: Session) -> list[str]:
    """Tenants whose trail has grown since snapshots were taken."""
    return [row[0] for row in _BEHIND.run(session.connection())]


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries of calls that wrote, where the trail stands, and whether it goes on after them."""

    written: list[Written]
    head: int
    goes_on: bool


def entries(work: Work, tenant_id: str) -> Batch:
    """The next entries in the trail; moves the cursor.

    Another process that is at it has the cursor; then there is nothing to do here.
    """
    _OPEN.run(work.connection, tenant_id=tenant_id)
    mine = select(GovernanceCursor).where(GovernanceCursor.tenant_id == tenant_id)
    cursor = work.session.exec(mine.with_for_update(skip_locked=True)).first()
    head = work.session.exec(select(AuditHead.seq).where(AuditHead.tenant_id == tenant_id)).first()
    if cursor is None or head is None:
        return Batch([], 0, goes_on=False)
    upto = min(head, cursor.seq + BATCH)
    rows = _WRITTEN.run(work.connection, tenant_id=tenant_id, after=cursor.seq, upto=upto)
    found = [Written(*row) for row in rows]
    cursor.seq = upto
    work.session.add(cursor)
    return Batch(found, head, goes_on=upto < head)


def keep(work: Work, entry: Written, as_of_seq: int) -> None:
    """Keep what was in force for the call that an entry tells of; once a call."""
    version = _VERSION.run(
        work.connection, tenant_id=entry.tenant_id, code=entry.command, version=entry.version
    ).first()
    if version is None:
        return  # an entry of something that is no published command
    permission, rules = _governing(work, entry.tenant_id, version.id, version.content_hash)
    _INSERT.run(
        work.connection,
        tenant_id=entry.tenant_id,
        call_id=entry.call_id,
        seq=entry.seq,
        at=entry.at,
        command=entry.command,
        version=entry.version,
        content_hash=version.content_hash,
        agent_release=entry.agent_release,
        permission=permission,
        grants=_grants(work, entry, permission),
        rules=rules,
        as_of_seq=as_of_seq,
    )


def _governing(
    work: Work, tenant_id: str, id: str, content_hash: str
) -> tuple[str, dict[str, Any]]:
    """Permission and rules of a content, which never changes; read once."""
    if (known := _known.get(content_hash)) is None:
        (stored,) = _CONTENT.run(work.connection, tenant_id=tenant_id, id=id).one()
        content = json.of_column(stored)
        known = str(content["permission"]), _passed(content)
        if len(_known) >= KNOWN:
            _known.clear()
        _known[content_hash] = known
    return known


def _grants(work: Work, entry: Written, permission: str) -> list[dict[str, Any]]:
    """By which roles, where and how far the user held the permission when the call wrote."""
    found = _GRANTS.run(
        work.connection,
        tenant_id=entry.tenant_id,
        user_id=entry.user_id,
        permission=permission,
        at=entry.at,
    )
    return [{"role": role, "org": org_id, "scope": scope} for role, org_id, scope in found]


def _passed(definition: dict[str, Any]) -> dict[str, Any]:
    """The rules of the version: a call that wrote passed each of them."""
    rules = definition.get("rules") or {}
    return {
        **{stage: [rule["expr"] for rule in listed] for stage, listed in rules.items() if listed},
        **({"sod": definition["sod"]} if definition.get("sod") else {}),
        **({"transition": definition["transition"]} if definition.get("transition") else {}),
    }
