"""/audit: what was done, by whom, for whom, and who allowed it (CMD-21, UI-20)."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session, col, or_, select

from app.access import scope, standing
from app.audit import asked as asking
from app.audit import chain, exports, queries, verify, views
from app.audit.asked import Asked
from app.audit.exports import Export, Format
from app.audit.models import AuditEntry, SavedView
from app.audit.names import Names
from app.audit.queries import EVERYTHING, Counted, Filters, Sight
from app.audit.verify import TenantReport
from app.commands import published, resolution
from app.console import bars, effects, flash, forms, markup, said, schema_forms
from app.console.bars import Chart
from app.console.forms import Form
from app.console.names import Name
from app.console.nav import NavItem
from app.console.params import Id
from app.console.view import render, url
from app.identity.deps import Person
from app.identity.errors import SignInRequired
from app.identity.models import User
from app.identity.paging import Page
from app.identity.principal import Channel, Principal
from app.kernel import db, rates, settings
from app.kernel.errors import Invalid, NotFound, PermissionDenied
from app.kernel.i18n import N_, locale_name

READ = "audit.read"

router = APIRouter()
NAV = NavItem(N_("Audit"), "/audit", "audit", "workspace", order=50)
SAVED = flash.notice(N_("The view was saved."))
RENAMED = flash.notice(N_("The view has its new name."))
REMOVED = flash.notice(N_("The view was deleted."))

# Words of filters, for their labels and chips.
LABELS = {
    "from": N_("From"),
    "to": N_("To"),
    "user": N_("Person"),
    "agent": N_("Agent"),
    "release": N_("Release"),
    "model": N_("Model"),
    "modelVersion": N_("Model version"),
    "command": N_("Command"),
    "tag": N_("Tag"),
    "risk": N_("Risk"),
    "irreversible": N_("Irreversible"),
    "outcome": N_("Outcome"),
    "stage": N_("Stage"),
    "reason": N_("Reason"),
    "approver": N_("Approved by"),
    "target": N_("Record"),
    "conversation": N_("Conversation"),
    "message": N_("Message"),
    "run": N_("Run"),
    "channel": N_("Channel"),
    "by": N_("Who acted"),
    "consent": N_("Consent"),
}
OUTCOMES = {
    "done": N_("done"),
    "replayed": N_("replayed"),
    "refused": N_("refused"),
    "dispatched": N_("sent out"),
    "failed": N_("failed"),
    "unknown": N_("outcome unknown"),
    "approved": N_("approved"),
    "denied": N_("denied"),
    "expired": N_("expired"),
    "superseded": N_("superseded"),
    "cancelled": N_("cancelled"),
}
CHANNELS = {
    Channel.CONSOLE: N_("this console"),
    Channel.HTTP: N_("the HTTP API"),
    Channel.MCP: N_("MCP"),
    Channel.A2A: N_("A2A"),
    Channel.AUN: N_("AUN"),
    Channel.RUN: N_("a run"),
    Channel.PROCESS: N_("the server itself"),
}
ACTED = {"agent": N_("an agent"), "person": N_("a person")}
CONSENTS = {
    "other": N_("another person"),
    "own": N_("the same person"),
    "none": N_("nobody"),
}
SAID: dict[str, dict[Any, str]] = {
    "outcome": OUTCOMES,
    "channel": CHANNELS,
    "by": ACTED,
    "consent": CONSENTS,
    "irreversible": {"yes": N_("only those")},
}
STACK = ("done", "approved", "refused", "failed")  # of the chart, from below

# The stages in their order, for the times of an entry.
STAGES = (
    *("load", "authorize", "schema_validate", "idempotency_check", "entitlement_check"),
    *("sod_check", "state_check", "assert", "pre_invariant", "cross_field_validation"),
    *("approval_check", "field_map", "computed_fields", "change_tracking", "handler"),
    *("side_effect", "roll_up", "post_action", "effect", "post_invariant"),
)


class NewView(BaseModel):
    """A name for the filters in use."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[Name, Field(max_length=100)]
    query: Annotated[str, Field(max_length=4_000)] = ""


class ViewName(BaseModel):
    """Another name for a view."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[Name, Field(max_length=100)]


@dataclass(frozen=True, slots=True)
class Offered:
    """What the filters offer to choose from: values that occur in what the viewer sees."""

    people: Sequence[tuple[str, str]] = ()  # login, name
    agents: Sequence[tuple[str, str]] = ()  # id, name
    commands: Sequence[str] = ()
    tags: Sequence[str] = ()
    models: Sequence[str] = ()
    versions: Sequence[str] = ()
    stages: Sequence[str] = ()
    reasons: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of entries, and everything around it."""

    page: Page[AuditEntry]
    names: Names
    offered: Offered
    own_views: Sequence[SavedView]
    sees_all: bool
    sees_others: bool
    login: str


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter in use."""

    name: str
    label: str
    value: str
    href: str


@dataclass(frozen=True, slots=True)
class View:
    """A view as a link."""

    label: str
    href: str
    is_current: bool
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A field before and after; `record` is what it belongs to, where that is said."""

    record: str
    operation: str
    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Shown:
    """One entry with everything its page tells."""

    entry: AuditEntry
    names: Names
    others: Sequence[AuditEntry]  # of the same call
    parent: int | None
    older: int | None
    newer: int | None
    is_unchanged: bool
    is_linked: bool
    is_unresolved: bool  # an effect outside may have happened, and the reader may say

    @property
    def input(self) -> str:
        """What was asked, indented."""
        return orjson.dumps(self.entry.input_redacted, option=orjson.OPT_INDENT_2).decode()

    @property
    def changes(self) -> list[Change]:
        """What changed, a line for each field."""
        return [change for each in self.entry.changes or [] for change in _changes(each)]

    @property
    def timings(self) -> list[tuple[str, float, float]]:
        """(stage, milliseconds, share of the longest in percent), in the order of the stages."""
        known = {name: _milliseconds(took) for name, took in (self.entry.timings or {}).items()}
        longest = max(known.values(), default=0.0) or 1.0
        order = [name for name in STAGES if name in known] + sorted({*known} - {*STAGES})
        return [(name, known[name], round(known[name] / longest * 100, 1)) for name in order]


@router.get("/audit")
async def index(request: Request, person: Person, asked: Annotated[Asked, Query()]) -> Response:
    """The entries the viewer may see, the newest first."""
    listing, counted = await asyncio.gather(
        db.read(_list, person, asked), db.read(_count, person, asked)
    )
    return render(
        request,
        "audit/index.html",
        listing=listing,
        asked=asked,
        said=asked.said(),
        count=counted,
        chart=_chart(asked, counted),
        chart_of="stage" if _is_by_stage(asked) else "outcome",
        chips=_chips(asked, listing),
        views=_views(asked, listing),
        outcomes=OUTCOMES,
        channels=CHANNELS,
        acted=ACTED,
        consents=CONSENTS,
        labels=LABELS,
        query=asked.query(),
    )


@router.get("/audit.csv")
async def as_csv(person: Person, asked: Annotated[Asked, Query()]) -> Response:
    """What the list shows as a spreadsheet; who exported what is an entry."""
    return await _exported(person, asked, "csv")


@router.get("/audit.jsonl")
async def as_jsonl(person: Person, asked: Annotated[Asked, Query()]) -> Response:
    """The same without loss, to be checked later (SEC-79)."""
    return await _exported(person, asked, "jsonl")


@router.post("/audit/verification")
async def verification(request: Request, person: Person) -> HTMLResponse:
    """Whether the chain is what was written, as of now."""
    rates.of_process().hit("audit_verification", person.tenant_id)
    report = await db.read(_verified, person)
    return render(request, "audit/verified.html", report=report)


@router.get("/audit/views")
async def own_views(request: Request, person: Person) -> HTMLResponse:
    """The views the viewer saved."""
    return render(request, "audit/views.html", views=await db.read(_views_of, person), form=None)


@router.post("/audit/views")
async def save_view(request: Request, person: Person) -> Response:
    """Keep the filters in use under a name."""
    form = await forms.read(request, NewView)
    if form.data:
        with form.catching():
            query = _sound(form.data.query)
            await db.transaction(views.add, person, form.data.name.strip(), query)
            return flash.see_other(f"/audit?{query}", SAVED)
    saved = await db.read(_views_of, person)
    return render(request, "audit/views.html", status_code=422, views=saved, form=form)


@router.get("/audit/views/{view_id}")
async def edit_view(request: Request, person: Person, view_id: Id) -> HTMLResponse:
    """The form that gives a view another name, or deletes it."""
    view = await db.read(views.one, person, view_id)
    return _view_page(request, view, forms.blank(ViewName, name=view.name))


@router.post("/audit/views/{view_id}")
async def rename_view(request: Request, person: Person, view_id: Id) -> Response:
    """Keep the other name."""
    form = await forms.read(request, ViewName)
    if form.data:
        with form.catching():
            await db.transaction(views.rename, person, view_id, form.data.name.strip())
            return flash.see_other("/audit/views", RENAMED)
    view = await db.read(views.one, person, view_id)
    return _view_page(request, view, form, status_code=422)


@router.post("/audit/views/{view_id}/removal")
async def remove_view(person: Person, view_id: Id) -> Response:
    """Forget a view; entries stay as they are."""
    await db.transaction(views.remove, person, view_id)
    return flash.see_other("/audit/views", REMOVED)


@router.get("/audit/{seq}")
async def show(request: Request, person: Person, seq: str) -> HTMLResponse:
    """One entry."""
    shown = await db.read(_shown, person, asking.number(seq))
    return render(
        request,
        "audit/show.html",
        shown=shown,
        entry=shown.entry,
        names=shown.names,
        outcomes=OUTCOMES,
        channels=CHANNELS,
        record_name=schema_forms.record_name,
    )


def sight(session: Session, person: Principal) -> Sight:
    """What of the trail a principal sees: what `audit.read` reaches, and always their own."""
    if scope.tenant_wide(session, person, READ):
        return EVERYTHING
    if not scope.may(session, person, READ):
        return Sight(own=person.user_id)
    reached = scope.reaches(person, READ, owner=AuditEntry.user_id, org=AuditEntry.org_id)
    return Sight(where=or_(reached, col(AuditEntry.user_id) == person.user_id))


def _list(session: Session, person: Principal, asked: Asked) -> Listing:
    seen = sight(session, person)
    page = queries.page(
        session,
        person.tenant_id,
        _filters(session, person, asked),
        cursor=asked.after or None,
        sight=seen,
    )
    names = Names().learn(session, person.tenant_id, page.rows)
    offered = _offered(session, person.tenant_id, seen, names, asked)
    login = select(User.login).where(User.tenant_id == person.tenant_id, User.id == person.user_id)
    return Listing(
        page,
        names,
        offered,
        views.of_person(session, person),
        seen.is_everything,
        seen.own is None,
        session.exec(login).one(),
    )


def _filters(session: Session, person: Principal, asked: Asked) -> Filters:
    tagged = published.codes_tagged(session, person.tenant_id, asked.tag) if asked.tag else None
    return asking.filters(session, person.tenant_id, asked, markup.zone(), tagged)


def _offered(session: Session, tenant_id: str, seen: Sight, names: Names, asked: Asked) -> Offered:
    def occurring(column: str) -> list[str]:
        return queries.values(session, tenant_id, column, seen)

    agents = {*occurring("agent_id"), *filter(None, [asked.agent])}
    names.add_agents(session, tenant_id, agents)
    people = [] if seen.own else occurring("user_id")
    query = select(User.login, User.display_name).where(
        User.tenant_id == tenant_id, col(User.id).in_(people)
    )
    tags = {
        tag for each in published.all_current(session, tenant_id) for tag in each.definition["tags"]
    }
    return Offered(
        people=session.exec(query.order_by(User.login)).all() if people else (),
        agents=sorted(((id, names.agent(id)) for id in agents), key=lambda pair: pair[1]),
        commands=occurring("command"),
        tags=sorted(tags),
        models=occurring("model"),
        versions=occurring("model_version"),
        stages=sorted(occurring("stage"), key=_stage_order),
        reasons=occurring("reason"),
    )


def _stage_order(stage: str) -> tuple[int, str]:
    return (STAGES.index(stage) if stage in STAGES else len(STAGES), stage)


def _count(session: Session, person: Principal, asked: Asked) -> Counted:
    return queries.count(
        session,
        person.tenant_id,
        _filters(session, person, asked),
        sight(session, person),
        by="stage" if _is_by_stage(asked) else "outcome",
    )


def _is_by_stage(asked: Asked) -> bool:
    return asked.outcome == ["refused"]


def _chart(asked: Asked, counted: Counted) -> Chart | None:
    order = STAGES if _is_by_stage(asked) else STACK
    most = [*_most(counted.parts, 4)]
    parts = [(at, kind if kind in most else "", many) for at, kind, many in counted.parts]
    in_order = [*(each for each in order if each in most), *(e for e in most if e not in order)]
    return bars.chart(parts, in_order, markup.zone(), locale_name())


def _most(parts: Iterable[tuple[int, str, int]], limit: int) -> list[str]:
    """The kinds there are most of; the rest are drawn together."""
    totals: dict[str, int] = {}
    for _, kind, many in parts:
        totals[kind] = totals.get(kind, 0) + many
    ranked = sorted(totals, key=lambda kind: (-totals[kind], kind))
    return ranked if len(ranked) <= limit + 1 else ranked[:limit]


def _chips(asked: Asked, listing: Listing) -> list[Chip]:
    said = asked.said()
    chips = []
    for name, given in said.items():
        for value in given if isinstance(given, list) else [given]:
            rest = [each for each in given if each != value] if isinstance(given, list) else ""
            text = _value_of(name, str(value), listing)
            href = url("/audit", **{**said, name: rest})
            chips.append(Chip(name, LABELS[name], text, href))
    return chips


def _value_of(name: str, value: str, listing: Listing) -> str:
    if name in {"user", "approver"}:
        called = dict(listing.offered.people)
        return called.get(value) or listing.names.user(value)
    if name == "agent":
        return listing.names.agent(value)
    return SAID.get(name, {}).get(value, value)


def _views(asked: Asked, listing: Listing) -> list[View]:
    current = asked.query()
    found = []
    for shipped in views.SHIPPED:
        given = dict(shipped.query)
        if shipped.of_person:
            given["user"] = asked.user or listing.login
        query = Asked.model_validate(given).query()
        found.append(View(shipped.label, f"/audit?{query}", query == current))
    return found + [
        View(own.name, f"/audit?{own.query}", own.query == current, is_own=True)
        for own in listing.own_views
    ]


async def _exported(person: Principal, asked: Asked, format: Format) -> StreamingResponse:
    rates.of_process().hit("audit_export", person.tenant_id, person.user_id)
    filters = await db.read(_filters, person, asked)
    head = await db.transaction(exports.record, person, format, asked.said())
    export = Export(format, person, asked.said(), filters, markup.zone(), head, _look)
    return StreamingResponse(
        exports.pieces(export), media_type=exports.MEDIA_TYPES[format], headers=export.headers
    )


def _look(session: Session, person: Principal) -> Sight:
    if not standing.stands(session, person):
        raise SignInRequired
    return sight(session, person)


def _verified(session: Session, person: Principal) -> TenantReport:
    if not scope.tenant_wide(session, person, READ):
        raise PermissionDenied(permission=READ)
    return verify.newest(session, person.tenant_id, settings.current().checkpoints)


def _views_of(session: Session, person: Principal) -> Sequence[SavedView]:
    return views.of_person(session, person)


def _sound(query: str) -> str:
    """`query` as we write it ourselves.

    Raises:
        Invalid: it asks for nothing there is.
    """
    try:
        return Asked.of_query(query).query()
    except ValueError as fault:
        raise Invalid from fault


def _view_page(
    request: Request, view: SavedView, form: Form[ViewName], status_code: int = 200
) -> HTMLResponse:
    return render(request, "audit/view.html", status_code=status_code, view=view, form=form)


def _shown(session: Session, person: Principal, seq: int) -> Shown:
    seen = sight(session, person)
    entry = queries.one(session, person.tenant_id, seq, seen)
    if entry is None:
        raise NotFound
    others = queries.of_call(session, person.tenant_id, entry.call_id, seen)
    parents = (
        queries.of_call(session, person.tenant_id, entry.parent_call_id, seen)
        if entry.parent_call_id
        else []
    )
    older, newer = queries.neighbours(session, entry, seen)
    return Shown(
        entry,
        Names().learn(session, person.tenant_id, [entry, *others]),
        [other for other in others if other.seq != seq],
        parents[0].seq if parents else None,
        older,
        newer,
        chain.is_unchanged(entry),
        queries.hash_before(session, entry) == entry.prev_hash,
        resolution.is_open_to(session, person, entry.call_id),
    )


def _changes(given: dict[str, Any]) -> list[Change]:
    if "field" in given:  # of identity
        label = said.label_of(given["field"])
        return [Change("", "update", label, given.get("before"), given.get("after"))]
    record = str(given.get("label") or given.get("id") or "")
    kind = str(given.get("record", ""))
    operation = str(given.get("operation", "update"))
    return [
        Change(record, operation, effects.label_of(kind, name), *pair)
        for name, pair in (given.get("fields") or {}).items()
        if isinstance(pair, list) and len(pair) == 2
    ]


def _milliseconds(took: Any) -> float:
    try:
        return round(float(took), 3)
    except (TypeError, ValueError):
        return 0.0
