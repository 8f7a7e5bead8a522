"""Outcomes by key: the claim of a call, its answer, and the repeat that gets the first one (CMD-9).

The claim is a row of the call's own transaction: a rollback frees the key, a concurrent duplicate
waits for the first to end, then replays.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from app.commands.call import Call
from app.identity.principal import Principal
from app.kernel import clock, json
from app.kernel.db import Work
from app.kernel.prepared import Prepared

KEPT = timedelta(hours=24)

_CLAIM = Prepared(
    "INSERT INTO command_outcome (tenant_id, key_digest, call_id, user_id, agent_id, code, "
    "input_digest, outcome, created_at, expires_at) VALUES (:tenant_id, :key_digest, :call_id, "
    ":user_id, :agent_id, :code, :input_digest, :outcome, :now, :expires_at) ON CONFLICT DO NOTHING"
)
_RECLAIM = Prepared(
    "DELETE FROM command_outcome WHERE tenant_id = :tenant_id AND key_digest = :key_digest "
    "AND expires_at <= :now"
)
_FIRST = Prepared(
    "SELECT call_id, input_digest, outcome FROM command_outcome "
    "WHERE tenant_id = :tenant_id AND key_digest = :key_digest"
)
_KEEP = Prepared(
    "UPDATE command_outcome SET outcome = :outcome "
    "WHERE tenant_id = :tenant_id AND key_digest = :key_digest"
)
_OF_CALL = Prepared(
    "SELECT outcome FROM command_outcome WHERE tenant_id = :tenant_id "
    "AND call_id = :call_id AND user_id = :user_id AND agent_id IS NOT DISTINCT FROM :agent_id"
)
_TIDY = Prepared("DELETE FROM command_outcome WHERE expires_at <= :now")


@dataclass(frozen=True, slots=True)
class First:
    """The call that holds the key."""

    call_id: str
    input_digest: str
    outcome: dict[str, Any] | None  # None: not yet known


def scope_digest(call: Call) -> str:
    """What a key is unique in: tenant, user, agent, command (CMD-9)."""
    who = call.principal
    parts = [who.tenant_id, who.user_id, who.agent_id, call.code, call.idempotency_key]
    return hashlib.sha256(b"assent.key.v1\n" + json.dumps(parts)).hexdigest()


def input_digest(call: Call) -> str:
    """SHA-256 of the canonical input, target and expected version included (CMD-F12)."""
    body = {"input": dict(call.input), "expectedVersion": call.expected_version}
    return hashlib.sha256(b"assent.input.v1\n" + json.canonical(body)).hexdigest()


def claim(work: Work, call: Call, key_digest: str, digest: str, now: datetime) -> First | None:
    """Take the key for this call; None when it is taken, else the call that has it."""
    if _insert(work, call, key_digest, digest, now, None):
        return None
    over = {"tenant_id": call.principal.tenant_id, "key_digest": key_digest, "now": now}
    if _RECLAIM.run_with(work.connection, over).rowcount and _insert(
        work, call, key_digest, digest, now, None
    ):
        return None
    found = _FIRST.run(
        work.connection, tenant_id=call.principal.tenant_id, key_digest=key_digest
    ).first()
    return (
        First(found.call_id, found.input_digest, _read(found.outcome))
        if found
        else First("", "", None)
    )


def keep(
    work: Work, call: Call, key_digest: str | None, digest: str, outcome: Mapping[str, Any]
) -> bool:
    """Write down what the call came to; False when its id belongs to another call."""
    answer = dict(outcome)
    if key_digest is None:
        own = hashlib.sha256(b"assent.call.v1\n" + call.call_id.encode()).hexdigest()
        return _insert(work, call, own, digest, clock.now(), answer)
    _KEEP.run(
        work.connection,
        tenant_id=call.principal.tenant_id,
        key_digest=key_digest,
        outcome=answer,
    )
    return True


def outcome_of(connection: Connection, principal: Principal, call_id: str) -> dict[str, Any] | None:
    """What a call of this caller came to, while it is kept; None when nothing is known."""
    found = _OF_CALL.run(
        connection,
        tenant_id=principal.tenant_id,
        call_id=call_id,
        user_id=principal.user_id,
        agent_id=principal.agent_id,
    ).first()
    return _read(found.outcome) if found else None


def tidy(work: Work) -> None:
    """Forget outcomes of more than 24 hours ago."""
    _TIDY.run(work.connection, now=clock.now())


def _insert(
    work: Work,
    call: Call,
    key_digest: str,
    digest: str,
    now: datetime,
    outcome: dict[str, Any] | None,
) -> bool:
    who = call.principal
    return (
        _CLAIM.run(
            work.connection,
            tenant_id=who.tenant_id,
            key_digest=key_digest,
            call_id=call.call_id,
            user_id=who.user_id,
            agent_id=who.agent_id,
            code=call.code,
            input_digest=digest,
            outcome=outcome,
            now=now,
            expires_at=now + KEPT,
        ).rowcount
        == 1
    )


def _read(stored: Any) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.of_column(stored)
    return found
