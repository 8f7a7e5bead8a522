"""`/v1/audit`: the trail for programs, filtered and seen as on the page (CMD-7, CMD-21)."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import Field
from sqlmodel import Session, col, or_

from app.access import scope, standing
from app.api.strict import Strict
from app.api.wire import Wire
from app.audit import asked as asking
from app.audit import exports, queries, verify
from app.audit.asked import Asked
from app.audit.exports import Export, Format
from app.audit.models import AuditEntry
from app.audit.queries import EVERYTHING, Filters, Sight
from app.audit.verify import TenantReport
from app.commands import published
from app.identity import bearer
from app.identity.deps import Caller
from app.identity.doors import Door
from app.identity.errors import SignInRequired
from app.identity.paging import Page
from app.identity.principal import Principal
from app.identity.principal import Scope as TokenScope
from app.kernel import db, rates, settings
from app.kernel.errors import NotFound, PermissionDenied

READ = "audit.read"

router = APIRouter(prefix="/v1", tags=["audit"], route_class=Strict)


class Entry(Wire):
    """One entry: a call, what became of one outside, a decision, or a fact of identity."""

    seq: int
    at: datetime
    call_id: str
    parent_call_id: str | None
    command: str = Field(examples=["expense.report.submit"])
    version: int | None
    risk: str | None = Field(examples=["L2"])
    idempotent: bool | None
    reversible: bool | None
    outcome: str = Field(examples=["done"])
    stage: str | None
    reason: str | None
    user_id: str | None
    org_id: str | None
    agent_id: str | None
    agent_release: str | None
    model: str | None
    model_version: str | None
    channel: str
    session_id: str | None
    conversation_id: str | None
    run_id: str | None
    turn: int | None
    prompt_digest: str | None
    prompt_ref: str | None = Field(description="The message it came from.")
    approval_id: str | None
    approved_by: str | None
    approved_at: datetime | None
    brief: str | None
    input_digest: str | None
    input_redacted: dict[str, Any] | None
    target_type: str | None
    target_id: str | None
    changes: list[dict[str, Any]] | None
    timings: dict[str, Any] | None = Field(description="Milliseconds of each stage.")
    trace_id: str | None
    prev_hash: str
    hash: str


class Entries(Wire):
    """One page, the newest first; `next` and `previous` are values of `after`."""

    items: Sequence[Entry]
    next: str | None
    previous: str | None


class Found(Wire):
    """Something that is not as it was written."""

    seq: int | None
    what: str


class Verification(Wire):
    """Whether the newest entries are as they were written, and each follows from the one before."""

    ok: bool
    entries: int = Field(description="How many were read.")
    since: int = Field(description="The first that was read; 0: the whole chain.")
    head: int
    checkpoints: int
    first_bad: int | None
    problems: Sequence[Found]


def _file(format: Format) -> dict[int | str, dict[str, Any]]:
    content = {exports.MEDIA_TYPES[format].partition(";")[0]: {"schema": {"type": "string"}}}
    return {200: {"description": "The file, while it is read.", "content": content}}


@router.get("/audit")
async def entries(caller: Caller, asked: Annotated[Asked, Query()]) -> Entries:
    """Entries the caller may see: all that `audit.read` reaches, and always the user's own."""
    bearer.require(caller, TokenScope.AUDIT_READ, Door.V1)
    page = await db.read(_page, caller, asked)
    return Entries(
        items=[Entry.model_validate(_wire(entry)) for entry in page.rows],
        next=page.next,
        previous=page.previous,
    )


@router.get("/audit.csv", response_class=StreamingResponse, responses=_file("csv"))
async def as_csv(caller: Caller, asked: Annotated[Asked, Query()]) -> Response:
    """The same as CSV, UTF-8 with its mark, no cell of which computes anything (SEC-54)."""
    return await _exported(caller, asked, "csv")


@router.get("/audit.jsonl", response_class=StreamingResponse, responses=_file("jsonl"))
async def as_jsonl(caller: Caller, asked: Annotated[Asked, Query()]) -> Response:
    """The same without loss, a line each; the first tells filters, head and checkpoint (SEC-79)."""
    return await _exported(caller, asked, "jsonl")


@router.get("/audit/verify")
async def verification(caller: Caller) -> Verification:
    """Verify the newest entries of the chain, now."""
    bearer.require(caller, TokenScope.AUDIT_READ, Door.V1)
    rates.of_process().hit("audit_verification", caller.tenant_id)
    report = await db.read(_verified, caller)
    return Verification(
        ok=not report.problems,
        entries=report.entries,
        since=report.since,
        head=report.head_seq,
        checkpoints=report.checkpoints,
        first_bad=report.first_bad_seq,
        problems=[Found(seq=each.seq, what=each.text) for each in report.problems],
    )


@router.get("/audit/{seq}")
async def entry(caller: Caller, seq: str) -> Entry:
    """One entry by its number."""
    bearer.require(caller, TokenScope.AUDIT_READ, Door.V1)
    found = await db.read(_one, caller, asking.number(seq))
    return Entry.model_validate(_wire(found))


def sight(session: Session, caller: Principal) -> Sight:
    """What of the trail a principal sees: what `audit.read` reaches, and always their own."""
    if scope.tenant_wide(session, caller, READ):
        return EVERYTHING
    if not scope.may(session, caller, READ):
        return Sight(own=caller.user_id)
    reached = scope.reaches(caller, READ, owner=AuditEntry.user_id, org=AuditEntry.org_id)
    return Sight(where=or_(reached, col(AuditEntry.user_id) == caller.user_id))


def _page(session: Session, caller: Principal, asked: Asked) -> Page[AuditEntry]:
    return queries.page(
        session,
        caller.tenant_id,
        _filters(session, caller, asked),
        cursor=asked.after or None,
        sight=sight(session, caller),
    )


def _filters(session: Session, caller: Principal, asked: Asked) -> Filters:
    tagged = published.codes_tagged(session, caller.tenant_id, asked.tag) if asked.tag else None
    return asking.filters(session, caller.tenant_id, asked, UTC, tagged)


def _one(session: Session, caller: Principal, seq: int) -> AuditEntry:
    found = queries.one(session, caller.tenant_id, seq, sight(session, caller))
    if found is None:
        raise NotFound
    return found


def _wire(entry: AuditEntry) -> dict[str, Any]:
    return entry.model_dump(include=set(Entry.model_fields))


def _verified(session: Session, caller: Principal) -> TenantReport:
    if not scope.tenant_wide(session, caller, READ):
        raise PermissionDenied(permission=READ)
    return verify.newest(session, caller.tenant_id, settings.current().checkpoints)


async def _exported(caller: Principal, asked: Asked, format: Format) -> StreamingResponse:
    bearer.require(caller, TokenScope.AUDIT_READ, Door.V1)
    rates.of_process().hit("audit_export", caller.tenant_id, caller.user_id)
    filters = await db.read(_filters, caller, asked)
    head = await db.transaction(exports.record, caller, format, asked.said())
    export = Export(format, caller, asked.said(), filters, UTC, head, _look)
    return StreamingResponse(
        exports.pieces(export), media_type=exports.MEDIA_TYPES[format], headers=export.headers
    )


def _look(session: Session, caller: Principal) -> Sight:
    if not standing.stands(session, caller):
        raise SignInRequired
    return sight(session, caller)
