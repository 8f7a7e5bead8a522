"""Signed checkpoints: where each chain stood, on another disk if the operator wants (SEC-76).

One line of `<tenant>.jsonl` is one compact JWS over `{tenant, seq, hash, at, previous}`; `previous`
is the SHA-256 of the line before. So a tail that is cut off, or an old backup put back, shows.
"""

import base64
import fcntl
import hashlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson
import structlog
from sqlmodel import Session, col, select

from app.audit import chain
from app.audit.models import AuditHead
from app.audit.trail import Appended
from app.identity import signing_keys
from app.identity.models import KeyUse
from app.kernel import clock, db, event_log, settings
from app.kernel.db import Work

EVERY = 10_000  # entries
HOURLY_S = 3_600.0
TYP = "assent-checkpoint+jws"
KIND = "audit.checkpoint"
PERMISSION = "audit.read"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What one line claims."""

    tenant: str
    seq: int
    hash: str
    at: str
    previous: str

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """The checkpoint of a payload.

        Raises:
            ValueError: it is none.
        """
        found = orjson.loads(payload)
        try:
            return cls(**found)
        except TypeError as fault:
            raise ValueError("not a checkpoint") from fault


_due = threading.Event()


def note(appended: Appended) -> None:
    """Wake the keeper where an entry is the last of ten thousand; for `listening`."""
    if appended.seq % EVERY == 0:
        _due.set()


class Keeper:
    """A thread that makes checkpoints hourly, every 10,000 entries, and when it is stopped."""

    def __init__(self) -> None:
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="checkpoints", daemon=True)

    def start(self) -> None:
        """Begin; when the database is open and the keys are prepared."""
        self._thread.start()

    def stop(self) -> None:
        """Make the last checkpoints and end; before the database is closed."""
        self._ending.set()
        _due.set()
        self._thread.join()
        _due.clear()

    def _serve(self) -> None:
        is_last = False
        while not is_last:
            _due.wait(HOURLY_S)
            _due.clear()
            is_last = self._ending.is_set()  # asked before, so that the last round misses nothing
            try:
                make_all()
            except Exception:
                log.exception("checkpoint_failed")  # the next one covers what this one would have


def make_all(folder: Path | None = None) -> int:
    """Make a checkpoint of every chain that grew since its last one; returns how many.

    A file that was damaged keeps no other chain from its own. It waits for the database: for
    threads and commands, not for a unit or the event loop.
    """
    where = folder or settings.current().checkpoints
    return sum(_made(tenant_id, where) for tenant_id in db.read_now(_tenants))


def make(tenant_id: str, folder: Path) -> bool:
    """Append a checkpoint of one chain, durably, and announce it; False where nothing is new."""
    folder.mkdir(parents=True, exist_ok=True)
    path = file_of(folder, tenant_id)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # replicas may share the folder
        last = _last_line(file)
        made = db.read_now(_signed, tenant_id, last)
        if made is None:
            return False
        checkpoint, line = made
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    _sync_folder(folder)
    db.transact_now(_announce, checkpoint)
    return True


def _made(tenant_id: str, folder: Path) -> bool:
    try:
        return make(tenant_id, folder)
    except Exception:  # each chain is a task of its own
        log.exception("checkpoint_failed", tenant_id=tenant_id)
        return False


def file_of(folder: Path, tenant_id: str) -> Path:
    """Where the checkpoints of a tenant stand."""
    return folder / f"{tenant_id}.jsonl"


def digest(line: bytes | None) -> str:
    """What the next line's `previous` has to be."""
    return hashlib.sha256(line).hexdigest() if line else chain.GENESIS


def payload_of(line: bytes) -> bytes:
    """The unverified payload of a line.

    Raises:
        ValueError: it is no compact JWS.
    """
    parts = line.split(b".")
    if len(parts) != 3:
        raise ValueError("not a compact JWS")
    return base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4))


def newest(folder: Path, tenant_id: str) -> Checkpoint | None:
    """The last checkpoint of a tenant here, not verified; for the console and exports.

    It reads a file: not for the event loop. A damaged line is none, and for the verifier to name.
    """
    path = file_of(folder, tenant_id)
    try:
        whole = path.read_bytes().rpartition(b"\n")[0]  # behind it, a line is being written
        return Checkpoint.parse(payload_of(whole.splitlines()[-1])) if whole else None
    except (FileNotFoundError, ValueError):
        return None


def _last_line(file: Any) -> bytes | None:
    """The last whole line; what a power cut left of a half-written one is removed."""
    file.seek(0)
    content = file.read()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        file.truncate(len(whole))
    lines: list[bytes] = whole.splitlines()
    return lines[-1] if lines else None


def _tenants(session: Session) -> list[str]:
    query = select(AuditHead.tenant_id).where(col(AuditHead.seq) > 0)
    return list(session.exec(query.order_by(AuditHead.tenant_id)))


def _signed(session: Session, tenant_id: str, last: bytes | None) -> tuple[Checkpoint, str] | None:
    head = session.get(AuditHead, tenant_id)
    before = Checkpoint.parse(payload_of(last)) if last else None
    if head is None or (before is not None and head.seq == before.seq):
        return None
    if before is not None and head.seq < before.seq:
        # the tail was cut or an old backup put back: a new line would bury the proof
        log.error("audit_head_behind_checkpoint", seq=head.seq, checkpoint_seq=before.seq)
        return None
    checkpoint = Checkpoint(
        tenant_id, head.seq, head.hash, clock.rfc3339(clock.now()), digest(last)
    )
    payload = orjson.dumps(checkpoint, option=orjson.OPT_SORT_KEYS)
    return checkpoint, signing_keys.sign(session, KeyUse.CHECKPOINT, payload, TYP)


def _announce(work: Work, checkpoint: Checkpoint) -> None:
    event_log.append(
        work,
        checkpoint.tenant,
        KIND,
        str(checkpoint.seq),
        {"seq": checkpoint.seq, "hash": checkpoint.hash, "at": checkpoint.at},
        permission=PERMISSION,
    )


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
