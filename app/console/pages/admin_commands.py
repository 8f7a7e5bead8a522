"""/admin/commands: every command's versions, its draft, and which version is in force."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlmodel import Session, col, select

from app.access import scope
from app.commands import publishing, readiness
from app.commands.definition import Risk, Rule
from app.commands.models import CommandVersion
from app.commands.publishing import Standing
from app.commands.readiness import Finding
from app.commands.stored import StoredDefinition
from app.console import definitions, drafts, flash, forms
from app.console.drafts import Draft
from app.console.forms import Form
from app.console.nav import NavItem
from app.console.params import Search
from app.console.view import render
from app.identity.deps import FreshPerson, Person
from app.identity.models import Feature, Permission, User
from app.identity.principal import Principal
from app.identity.search import fold
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import NotFound, PermissionDenied
from app.kernel.i18n import N_

READ, MANAGE = publishing.READ, publishing.MANAGE

router = APIRouter(prefix="/admin/commands")
NAV = NavItem(N_("Command versions"), "/admin/commands", "edit", "administration", READ, order=55)
SAVED = flash.notice(N_("The draft was saved. It counts once it is published."))
DISCARDED = flash.notice(N_("The draft was discarded."))
PUBLISHED = flash.notice(
    N_("It was published. Calls under way end by the version they began with.")
)
RETIRED = flash.notice(N_("The command was retired. Nobody can call it any more."))
RESTORED = flash.notice(N_("The command can be called again."))

Code = Annotated[str, Path(pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$", max_length=128)]
Number = Annotated[int, Path(ge=1, le=1_000_000)]
State = Annotated[str, Query(max_length=20)]


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


class Seen(BaseModel):
    """A question that is answered by its button, about the content that was shown."""

    model_config = ConfigDict(extra="forbid")

    expected: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One command of the list."""

    standing: Standing
    definition: StoredDefinition


@dataclass(frozen=True, slots=True)
class Detail:
    """Everything the page of a command shows.

    Attributes:
        base: what the pack says; `said` is what is in force, `draft` what may be next.
        findings: of the draft where there is one, else of what is in force.
        people: id -> name of who published, drafted or retired.
    """

    standing: Standing
    base: StoredDefinition
    said: StoredDefinition
    draft: StoredDefinition | None
    findings: list[Finding]
    people: Mapping[str, str]
    may_manage: bool

    @property
    def has_errors(self) -> bool:
        """Whether the draft cannot be published as it is."""
        return bool(readiness.errors(self.findings))


@dataclass(frozen=True, slots=True)
class Choices:
    """What the form of a draft offers."""

    permissions: list[tuple[str, str]]
    features: list[tuple[str, str]]
    risks: list[tuple[str, str]]
    rules: list[tuple[str, Rule]]


@router.get("")
async def index(
    request: Request, person: Person, q: Search = "", state: State = ""
) -> HTMLResponse:
    """Every command the tenant has or had."""
    rows = await db.read(_list, person)
    terms = fold(q).split()
    shown = [row for row in rows if _is_in(row, state) and all(t in _words(row) for t in terms)]
    return render(
        request, "admin_commands/index.html", rows=shown, q=q, state=state, total=len(rows)
    )


@router.get("/{code}")
async def show(request: Request, person: Person, code: Code) -> HTMLResponse:
    """One command: what is in force, its draft, its versions."""
    detail = await db.read(_detail, person, code)
    return render(
        request,
        "admin_commands/show.html",
        detail=detail,
        changes=definitions.differences(detail.base, detail.said),
    )


@router.get("/{code}/versions/{number}")
async def version(
    request: Request,
    person: Person,
    code: Code,
    number: Number,
    against: Annotated[int | None, Query(alias="with", ge=1, le=1_000_000)] = None,
) -> HTMLResponse:
    """One version, whole or beside another."""
    detail = await db.read(_detail, person, code)
    row = _numbered(detail.standing, number)
    other = _numbered(detail.standing, against) if against else None
    said = publishing.definition_of(row)
    return render(
        request,
        "admin_commands/version.html",
        detail=detail,
        row=row,
        other=other,
        facts=[(label, after) for label, _, after in definitions.differences(None, said)],
        changes=definitions.differences(publishing.definition_of(other), said) if other else [],
    )


@router.get("/{code}/draft")
async def edit(request: Request, person: FreshPerson, code: Code) -> HTMLResponse:
    """The form of the draft, with what keeps it from being published at its fields."""
    detail, choices = await db.read(_editable, person, code)
    values = drafts.typed(detail.base, detail.draft or detail.said)
    expected = detail.standing.draft.content_hash if detail.standing.draft else ""
    form = forms.blank(Draft, **values, expected=expected)
    if detail.draft is not None:
        form.errors = drafts.at_fields(None, values, readiness.errors(detail.findings))
    return _edit_page(request, detail, choices, form)


@router.post("/{code}/draft")
async def save(request: Request, person: FreshPerson, code: Code) -> Response:
    """Keep the draft."""
    form = await forms.read(request, Draft)
    if form.data:
        with form.catching(publishing.NothingToPublish):
            await db.transaction(_save, person, code, form.data)
            return flash.see_other(f"/admin/commands/{code}", SAVED)
    detail, choices = await db.read(_editable, person, code)
    return _edit_page(request, detail, choices, form, status_code=422)


@router.get("/{code}/draft/removal")
async def ask_to_discard(request: Request, person: FreshPerson, code: Code) -> HTMLResponse:
    """What discarding the draft means."""
    return await _ask(request, person, code, "discard")


@router.post("/{code}/draft/removal")
async def discard(request: Request, person: FreshPerson, code: Code) -> Response:
    """Do away with the draft."""
    return await _act(request, person, code, "discard", publishing.discard_draft, DISCARDED)


@router.get("/{code}/publication")
async def ask_to_publish(request: Request, person: FreshPerson, code: Code) -> HTMLResponse:
    """What publishing the draft changes, and what keeps it from being published."""
    return await _publication_page(request, person, code)


@router.post("/{code}/publication")
async def publish(request: Request, person: FreshPerson, code: Code) -> Response:
    """Put the draft in force."""
    form = await forms.read(request, Seen)
    if form.data:
        with form.catching(publishing.NothingToPublish):
            await db.transaction(_publish, person, code, form.data.expected)
            return flash.see_other(f"/admin/commands/{code}", PUBLISHED)
    return await _publication_page(request, person, code, form, status_code=409)


@router.get("/{code}/retirement")
async def ask_to_retire(request: Request, person: FreshPerson, code: Code) -> HTMLResponse:
    """What retiring it means."""
    return await _ask(request, person, code, "retire")


@router.post("/{code}/retirement")
async def retire(request: Request, person: FreshPerson, code: Code) -> Response:
    """Let nobody call it any more."""
    return await _act(request, person, code, "retire", publishing.retire, RETIRED)


@router.get("/{code}/restoration")
async def ask_to_restore(request: Request, person: FreshPerson, code: Code) -> HTMLResponse:
    """What restoring it means."""
    return await _ask(request, person, code, "restore")


@router.post("/{code}/restoration")
async def restore(request: Request, person: FreshPerson, code: Code) -> Response:
    """Let it be called again."""
    return await _act(request, person, code, "restore", publishing.restore, RESTORED)


# Queries and units


def _list(session: Session, person: Principal) -> list[Row]:
    _require(session, person, READ)
    found = publishing.all_of(session, person.tenant_id)
    return [Row(each, publishing.definition_of(each.newest)) for each in found]


def _detail(session: Session, person: Principal, code: str, permission: str = READ) -> Detail:
    _require(session, person, permission)
    standing = publishing.one(session, person.tenant_id, code)
    said = publishing.definition_of(standing.newest)
    draft = publishing.definition_of(standing.draft) if standing.draft else None
    looked_at = draft or said
    known = publishing.known_in(session, person.tenant_id, besides=looked_at)
    return Detail(
        standing,
        base=publishing.definition_of(standing.base) if standing.base else said,
        said=said,
        draft=draft,
        findings=readiness.check(looked_at, known),
        people=_people(session, person, standing),
        may_manage=scope.tenant_wide(session, person, MANAGE),
    )


def _editable(session: Session, person: Principal, code: str) -> tuple[Detail, Choices]:
    detail = _detail(session, person, code, MANAGE)
    base = detail.base
    permissions = session.exec(select(Permission).order_by(col(Permission.code))).all()
    features = session.exec(select(Feature).order_by(col(Feature.code))).all()
    stages = definitions.STAGES
    return detail, Choices(
        permissions=[(each.code, each.code) for each in permissions],
        features=[(each.code, each.code) for each in features],
        risks=[(each.value, each.value) for each in Risk if each.level >= base.risk.level],
        rules=[(stage, rule) for stage in stages for rule in getattr(base.rules, stage)],
    )


def _save(work: Work, person: Principal, code: str, form: Any) -> None:
    _require(work.session, person, MANAGE)
    standing = publishing.one(work.session, person.tenant_id, code)
    base = publishing.definition_of(standing.base or standing.newest)
    publishing.save_draft(
        work,
        person.tenant_id,
        code,
        drafts.meant(base, form),
        person,
        expected=form.expected or None,
    )


def _publish(work: Work, person: Principal, code: str, expected: str) -> None:
    _require(work.session, person, MANAGE)
    publishing.publish_draft(work, person.tenant_id, code, person, expected=expected or None)


def _managing(
    work: Work,
    act: Callable[[Work, str, str, Principal], object],
    person: Principal,
    code: str,
) -> None:
    _require(work.session, person, MANAGE)
    act(work, person.tenant_id, code, person)


def _require(session: Session, person: Principal, permission: str) -> None:
    """Definitions are nobody's and of no organisation: only a tenant-wide right reaches them."""
    if not scope.tenant_wide(session, person, permission):
        raise PermissionDenied(permission=permission)


def _people(session: Session, person: Principal, standing: Standing) -> dict[str, str]:
    rows = [*standing.versions, *([standing.draft] if standing.draft else [])]
    wanted = {who for row in rows for who in (row.created_by, row.retired_by) if who}
    query = select(User.id, User.display_name).where(
        User.tenant_id == person.tenant_id, col(User.id).in_(wanted)
    )
    return dict(session.exec(query).all())


# Pages


def _edit_page(
    request: Request,
    detail: Detail,
    choices: Choices,
    form: Form[Any],
    status_code: int = 200,
) -> HTMLResponse:
    return render(
        request,
        "admin_commands/edit.html",
        status_code=status_code,
        detail=detail,
        choices=choices,
        form=form,
        stages=list(definitions.STAGES.items()),
        rule_rows=_rows_shown(form, "rule", "expr", drafts.ADDED_RULES),
        sod_rows=_rows_shown(form, "sod", "code", drafts.ADDED_CONFLICTS),
    )


async def _publication_page(
    request: Request,
    person: Principal,
    code: str,
    form: Form[Any] | None = None,
    status_code: int = 200,
) -> HTMLResponse:
    detail = await db.read(_detail, person, code, MANAGE)
    if detail.draft is None:
        raise publishing.NothingToPublish
    return render(
        request,
        "admin_commands/publish.html",
        status_code=status_code,
        detail=detail,
        form=form,
        changes=definitions.differences(detail.said, detail.draft),
    )


async def _ask(
    request: Request,
    person: Principal,
    code: str,
    act: str,
    form: Form[Any] | None = None,
    status_code: int = 200,
) -> HTMLResponse:
    detail = await db.read(_detail, person, code, MANAGE)
    return render(
        request, f"admin_commands/{act}.html", status_code=status_code, detail=detail, form=form
    )


async def _act(
    request: Request,
    person: Principal,
    code: str,
    act: str,
    unit: Callable[[Work, str, str, Principal], object],
    said: flash.Notice,
) -> Response:
    form = await forms.read(request, Nothing)
    if not form.data:
        return await _ask(request, person, code, act, form, status_code=422)
    await db.transaction(_managing, unit, person, code)
    return flash.see_other(f"/admin/commands/{code}", said)


def _rows_shown(form: Form[Any], kind: str, part: str, most: int) -> list[int]:
    """The rows with something in them, and two more."""
    filled = [n for n in range(1, most + 1) if form.value(f"{kind}_{n}_{part}")]
    return list(range(1, min(most, max(filled, default=0) + 2) + 1))


def _numbered(standing: Standing, number: int) -> CommandVersion:
    for row in standing.versions:
        if row.version == number:
            return row
    raise NotFound


def _is_in(row: Row, state: str) -> bool:
    standing = row.standing
    return {
        "": True,
        "in_force": standing.is_in_force,
        "retired": not standing.is_in_force,
        "overridden": standing.is_overridden,
        "draft": standing.draft is not None,
    }.get(state, False)


def _words(row: Row) -> str:
    told = row.definition
    return fold(f"{told.code} {told.display_name.en} {told.display_name.zh} {told.pack}")
