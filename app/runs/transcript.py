"""The rows of a transcript: written once, in the commit of what they tell (RUN-59)."""

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session

from app.kernel import json
from app.kernel.db import Work
from app.kernel.prepared import Prepared
from app.runs.lease import Claim
from app.runs.models.protocol import Entry
from app.runs.states import EntryKind

_INSERT = Prepared(
    "INSERT INTO transcript_entry "
    "(tenant_id, run_id, seq, kind, body, provider, provider_body, input_id, turn, tokens) "
    "VALUES (:tenant_id, :run_id, :seq, :kind, :body, :provider, :provider_body, :input_id, "
    ":turn, :tokens)"
)
_LOAD = Prepared(
    "SELECT seq, kind, body, turn, provider, provider_body FROM transcript_entry "
    "WHERE tenant_id = :tenant_id AND run_id = :run_id ORDER BY seq"
)


def write(
    work: Work,
    claim: Claim,
    seq: int,
    kind: EntryKind,
    body: Mapping[str, Any],
    *,
    turn: int = 0,
    input_id: str | None = None,
    provider: str | None = None,
    provider_body: Any = None,
    tokens: int = 0,
) -> Entry:
    """Add one entry to a run that is held (`lease.hold`); the session takes it in afterwards."""
    _INSERT.run(
        work.connection,
        tenant_id=claim.tenant_id,
        run_id=claim.run_id,
        seq=seq,
        kind=kind.value,
        body=dict(body),
        provider=provider,
        provider_body=None if provider_body is None else {"body": provider_body},
        input_id=input_id,
        turn=turn,
        tokens=tokens,
    )
    return Entry(
        seq=seq,
        kind=kind,
        body=body,
        turn=turn,
        provider=provider,
        provider_body=provider_body,
    )


def load(session: Session, claim: Claim) -> list[Entry]:
    """Every entry of a run, in order."""
    key = {"tenant_id": claim.tenant_id, "run_id": claim.run_id}
    return [
        Entry(
            seq=row.seq,
            kind=EntryKind(row.kind),
            body=json.of_column(row.body),
            turn=row.turn,
            provider=row.provider,
            provider_body=(json.of_column(row.provider_body) or {}).get("body"),
        )
        for row in _LOAD.run_with(session.connection(), key)
    ]
