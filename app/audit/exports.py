"""The trail as a file: CSV for spreadsheets, JSONL for whoever checks it later (SEC-54, SEC-79).

An export is read in short pieces, so that it holds up nobody and takes no memory, and ends where
the right to read ends. It stops at the entry that stood at the end of the chain when it began.
"""

import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, tzinfo
from typing import Any, Literal

from sqlmodel import Session

from app.audit import chain, checkpoints, queries
from app.audit.checkpoints import Checkpoint
from app.audit.models import AuditEntry
from app.audit.names import Names
from app.audit.queries import ON, Filters, Head, Place, Sight
from app.identity import facts
from app.identity.principal import Principal
from app.kernel import clock, db, json, settings
from app.kernel.db import Work

Format = Literal["csv", "jsonl"]
PIECE = 500  # entries read at once
COMMAND = "audit.export"
MEDIA_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
}
# A cell that begins so is a formula to a spreadsheet, and so is what follows a separator, for one
# that splits cells at another character than ours. The wide forms count: some fold them.
FORMULA = re.compile(r"(?:^|[,;|\t\r\n]\s*[\"']?)[=+\-@\t\r\n＝＋－＠]")  # noqa: RUF001

CSV_COLUMNS = (
    *("seq", "at", "command", "version", "risk", "reversible", "outcome", "stage", "reason"),
    *("user", "user_id", "agent", "agent_id", "release", "agent_release", "model"),
    *("model_version", "channel", "target_type", "target_id", "approver", "approved_by"),
    *("approved_at", "approval_id", "brief", "conversation_id", "prompt_ref", "run_id", "turn"),
    *("call_id", "parent_call_id", "input_redacted", "changes", "trace_id", "hash"),
)


@dataclass(frozen=True, slots=True)
class Export:
    """One file: what is in it, for whom, and where the chain stood."""

    format: Format
    principal: Principal
    asked: dict[str, Any]
    filters: Filters
    zone: tzinfo
    head: Head | None
    look: Callable[[Session, Principal], Sight]  # what they see now; raises where they may no more
    names: Names = field(default_factory=Names)
    began_at: datetime = field(default_factory=clock.now)

    @property
    def file_name(self) -> str:
        """How the file is called, by the day it was made."""
        return f"audit-{self.began_at.astimezone(self.zone):%Y-%m-%d}.{self.format}"

    @property
    def headers(self) -> dict[str, str]:
        """What goes with the answer."""
        return {
            "Content-Disposition": f'attachment; filename="{self.file_name}"',
            "Cache-Control": "no-store",
        }


def record(work: Work, principal: Principal, format: Format, asked: dict[str, Any]) -> Head | None:
    """Put on record who exports what; returns where the chain stood before that."""
    head = queries.head(work.session, principal.tenant_id)
    facts.record(work, COMMAND, principal, details={"format": format, "filters": asked})
    return head


async def pieces(export: Export) -> AsyncIterator[bytes]:
    """The file, piece by piece."""
    yield await db.read(_first, export)
    place: Place | None = None
    while export.head is not None:
        body, place = await db.read(_piece, export, place)
        yield body
        if place is None:
            return


def cell(value: Any) -> str:
    """`value` as a cell that no spreadsheet computes."""
    if not isinstance(value, str):
        return "" if value is None else str(value)  # a number is one, and nothing to compute
    return f"'{value}" if FORMULA.search(value) else value


def line(entry: AuditEntry) -> dict[str, Any]:
    """An entry as its hash is taken of it, with that hash and the one before."""
    said = {name: getattr(entry, name) for name in chain.COLUMNS}  # plain, as it was stored
    for name in chain.TIMES:
        said[name] = clock.rfc3339(said[name]) if said[name] else None
    return said


def _first(session: Session, export: Export) -> bytes:
    export.look(session, export.principal)
    if export.format == "csv":
        return b"\xef\xbb\xbf" + _rows([CSV_COLUMNS])
    tenant_id = export.principal.tenant_id
    checkpoint = checkpoints.newest(settings.current().checkpoints, tenant_id)
    return _jsonl(about(export, checkpoint))


def about(export: Export, checkpoint: Checkpoint | None) -> dict[str, Any]:
    """The first line of a JSONL file: of what it is, and what to hold it against."""
    return {
        "audit": "assent.audit.v1",
        "tenant": export.principal.tenant_id,
        "exported_at": clock.rfc3339(export.began_at),
        "exported_by": export.principal.user_id,
        "agent": export.principal.agent_id,
        "filters": export.asked,
        "head": asdict(export.head) if export.head else None,
        "checkpoint": asdict(checkpoint) if checkpoint else None,
    }


def _piece(session: Session, export: Export, place: Place | None) -> tuple[bytes, Place | None]:
    """The next entries as text, and where the ones after them begin, None at the end."""
    principal = export.principal
    assert export.head is not None  # noqa: S101 - else there is no entry
    entries = queries.older(
        session,
        principal.tenant_id,
        export.filters,
        export.look(session, principal),
        than=place,
        up_to=export.head.seq,
        size=PIECE,
    )
    last = entries[-1] if len(entries) == PIECE else None
    following = Place(ON, last.at, last.seq) if last else None
    if export.format == "jsonl":
        return b"".join(_jsonl(line(entry)) for entry in entries), following
    export.names.learn(session, principal.tenant_id, entries)
    return _rows([_cells(export, entry) for entry in entries]), following


def _cells(export: Export, entry: AuditEntry) -> list[str]:
    names = export.names
    said: dict[str, Any] = {
        "at": _time(export, entry.at),
        "approved_at": _time(export, entry.approved_at),
        "user": names.user(entry.user_id),
        "agent": names.agent(entry.agent_id),
        "release": names.release(entry.agent_release),
        "approver": names.user(entry.approved_by),
        "input_redacted": _document(entry.input_redacted),
        "changes": _document(entry.changes),
    }
    return [cell(said[name] if name in said else getattr(entry, name)) for name in CSV_COLUMNS]


def _time(export: Export, at: datetime | None) -> str | None:
    return at.astimezone(export.zone).isoformat(timespec="microseconds") if at else None


def _document(value: Any) -> str | None:
    return None if value is None else json.dumps(value).decode()


def _rows(rows: Sequence[Sequence[str]]) -> bytes:
    file = io.StringIO()
    csv.writer(file, lineterminator="\r\n").writerows(rows)
    return file.getvalue().encode()


def _jsonl(value: dict[str, Any]) -> bytes:
    return json.dumps_sorted(value) + b"\n"
