"""Where a run stands between its batches: a pointer with counters, never a copy (RUN-59)."""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from app.kernel.db import Work
from app.kernel.prepared import Prepared
from app.runs import lease, writing
from app.runs.lease import Claim
from app.runs.run_models import Checkpoint
from app.runs.session import RunSession

FORMAT = 1

_WRITE = Prepared(
    "INSERT INTO run_checkpoint (tenant_id, run_id, seq, transcript_seq, turn, round, scope, "
    "open_batch, allowance, failures, fingerprint, workdir, format) "
    "VALUES (:tenant_id, :run_id, (SELECT coalesce(max(seq), 0) + 1 FROM run_checkpoint "
    "WHERE tenant_id = CAST(:tenant_id AS varchar) AND run_id = CAST(:run_id AS varchar)), "
    ":transcript_seq, :turn, :round, :scope, :open_batch, :allowance, :failures, "
    ":fingerprint, NULL, :format)"
)
_NOTE = Prepared(
    "UPDATE run SET turn = :turn, round = :round, scope = :scope "
    "WHERE tenant_id = :tenant_id AND id = :run_id"
)

_NOTED = ("tenant_id", "run_id", "turn", "round", "scope")


@dataclass(frozen=True, slots=True)
class At:
    """Where the next turn begins: a round and a scope of sends."""

    round: int
    scope: int


class UnreadableCheckpoint(Exception):
    """It is from a version that wrote them differently: a fault, never an empty start (RUN-115)."""


def save(run: RunSession) -> None:
    """Keep where the run stands, after a batch, also one that is open now: with what comes next."""
    where = _where(run, At(run.round, run.scope))
    writing.later(run, _write, run.claim, where)


def write(work: Work, run: RunSession, at: At) -> None:
    """Keep it in this transaction, as of the round and scope of `at`.

    Raises:
        LeaseLost: the run is not ours any more.
    """
    _write(work, run.claim, _where(run, at))


def _where(run: RunSession, at: At) -> dict[str, Any]:
    return {
        "tenant_id": run.claim.tenant_id,
        "run_id": run.claim.run_id,
        "turn": run.turn,
        "round": at.round,
        "scope": at.scope,
        "transcript_seq": run.transcript.next_seq - 1,
        "open_batch": run.transcript.open_batch() is not None,
        "allowance": run.allowance,
        "failures": {"reminded": run.reminded and at.round == run.round},
        "fingerprint": run.fingerprint,
        "format": FORMAT,
    }


def _write(work: Work, claim: Claim, where: dict[str, Any]) -> None:
    lease.hold(work, claim)
    _WRITE.run_with(work.connection, where)
    _NOTE.run_with(work.connection, {name: where[name] for name in _NOTED})


def newest(session: Session, tenant_id: str, run_id: str) -> Checkpoint | None:
    """The newest checkpoint of a run, None before there is one.

    Raises:
        UnreadableCheckpoint: another version wrote it.
    """
    query = (
        select(Checkpoint)
        .where(Checkpoint.tenant_id == tenant_id, Checkpoint.run_id == run_id)
        .order_by(col(Checkpoint.seq).desc())
        .limit(1)
    )
    found = session.exec(query).first()
    if found is not None and found.format != FORMAT:
        raise UnreadableCheckpoint
    return found
