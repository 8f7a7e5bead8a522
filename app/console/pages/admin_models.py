"""/admin/models: what agents think with, where it is asked, and what it costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from sqlmodel import Session

from app.console import flash, forms
from app.console.agent_settings import behind
from app.console.nav import NavItem
from app.console.view import render
from app.identity.deps import FreshPerson, Person
from app.identity.models import Agent
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_
from app.runs.models import administered, profiles, trial
from app.runs.models.administered import MANAGE, InUse, TooManyModels
from app.runs.models.profile_models import Wire
from app.runs.models.protocol import Profile
from app.runs.models.trial import Trial

router = APIRouter(prefix="/admin/models")
NAV = NavItem(N_("Models"), "/admin/models", "model", "administration", MANAGE, order=65)
ADDED = flash.notice(N_("The model was added. Try it, then choose it for an agent."))
CHANGED = flash.notice(N_("The model was changed. It counts from the next request on."))
REMOVED = flash.notice(N_("The model was removed, and its key with it."))

FORM = "new"  # at its address stands the form
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$")]
Named = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9.-]{0,39}$")]
Tokens = Annotated[int, Field(ge=256, le=100_000_000)]
Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Change(BaseModel):
    """How a model is asked, and what it costs."""

    model_config = ConfigDict(extra="forbid")

    kind: Wire
    model: Annotated[str, Field(max_length=200)]
    base_url: Annotated[str, Field(max_length=500)] = ""
    api_key: Annotated[SecretStr, Field(max_length=2_000)] = SecretStr("")
    forgets_key: bool = False
    context_tokens: Tokens = 128_000
    output_tokens: Tokens = 4_096
    thinking: Literal["off", "low", "medium", "high"] = "off"
    price_input: Price | None = None
    price_output: Price | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    requires_finish: bool = False
    usage: Literal["sum", "last"] = "sum"
    call_ids: Literal["run", "response"] = "run"
    max_tokens_field: Literal["new", "old"] = "new"


KEPT = frozenset(Change.model_fields) - {"api_key", "forgets_key"}
HAVE_DEFAULTS = (
    "context_tokens", "output_tokens", "thinking", "currency", "usage", "call_ids",
    "max_tokens_field",
)  # fmt: skip


class NewModel(Change):
    """The same, with the name by which agents know it."""

    name: Name


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Shown:
    """Everything the page of one model shows."""

    profile: Profile
    has_key: bool
    agents: Sequence[Agent]

    @property
    def is_ours(self) -> bool:
        """Whether administrators may change it; `default` is the operator's."""
        return self.profile.name != profiles.DEFAULT


@router.get("")
async def index(request: Request, person: Person) -> HTMLResponse:
    """Every model, the operator's first."""
    listed = await db.read(_listed, person)
    return render(request, "admin_models/index.html", listed=listed, behind=behind)


@router.get("/new")
async def new(request: Request, person: FreshPerson) -> HTMLResponse:
    """The form that sets one up."""
    await db.read(administered.check, person)
    form = forms.blank(NewModel, kind=Wire.OPENAI.value, requires_finish=True, **_by_itself())
    return render(request, "admin_models/new.html", form=form)


@router.post("")
async def create(request: Request, person: FreshPerson) -> Response:
    """Set one up."""
    form = await forms.read(request, NewModel)
    if form.data:
        with form.catching(TooManyModels):
            await db.transaction(_add, person, form.data)
            return flash.see_other(f"/admin/models/{form.data.name}", ADDED)
    await db.read(administered.check, person)
    return render(request, "admin_models/new.html", status_code=422, form=form)


@router.get("/{profile}")
async def show(request: Request, person: Person, profile: Named) -> HTMLResponse:
    """One model, and who thinks with it."""
    return await _page(request, person, profile)


@router.post("/{profile}/trial")
async def try_out(request: Request, person: FreshPerson, profile: Named) -> HTMLResponse:
    """Ask it for one word, and show what came of it."""
    shown = await db.read(_shown, person, profile)
    return await _page(request, person, profile, await trial.of(shown.profile))


@router.get("/{profile}/edit")
async def edit(request: Request, person: FreshPerson, profile: Named) -> HTMLResponse:
    """The form that changes it."""
    shown = await db.read(_own, person, profile)
    values = {
        field: getattr(shown.profile, field) for field in Change.model_fields if field in KEPT
    }
    form = forms.blank(Change, **{key: value for key, value in values.items() if value is not None})
    return render(request, "admin_models/edit.html", form=form, shown=shown)


@router.post("/{profile}")
async def change(request: Request, person: FreshPerson, profile: Named) -> Response:
    """Keep what was changed."""
    form = await forms.read(request, Change)
    if form.data:
        with form.catching():
            await db.transaction(_change, person, profile, form.data)
            return flash.see_other(f"/admin/models/{profile}", CHANGED)
    shown = await db.read(_own, person, profile)
    return render(request, "admin_models/edit.html", status_code=422, form=form, shown=shown)


@router.get("/{profile}/removal")
async def ask_to_remove(request: Request, person: FreshPerson, profile: Named) -> HTMLResponse:
    """What goes with it."""
    shown = await db.read(_own, person, profile)
    return render(request, "admin_models/remove.html", form=None, shown=shown)


@router.post("/{profile}/removal")
async def remove(request: Request, person: FreshPerson, profile: Named) -> Response:
    """Forget it."""
    form = await forms.read(request, Nothing)
    if form.data:
        with form.catching(InUse):
            await db.transaction(_remove, person, profile)
            return flash.see_other("/admin/models", REMOVED)
    shown = await db.read(_own, person, profile)
    return render(request, "admin_models/remove.html", status_code=409, form=form, shown=shown)


def _by_itself() -> dict[str, object]:
    return {name: Change.model_fields[name].default for name in HAVE_DEFAULTS}


def _listed(session: Session, person: Principal) -> list[Shown]:
    administered.check(session, person)
    return [_of(session, person, each) for each in profiles.all_of(session, person.tenant_id)]


def _shown(session: Session, person: Principal, name: str) -> Shown:
    administered.check(session, person)
    if name != profiles.DEFAULT:
        administered.one(session, person.tenant_id, name)
    return _of(session, person, profiles.find(session, person.tenant_id, name))


def _own(session: Session, person: Principal, name: str) -> Shown:
    administered.check(session, person)
    administered.one(session, person.tenant_id, name)
    return _of(session, person, profiles.find(session, person.tenant_id, name))


def _of(session: Session, person: Principal, profile: Profile) -> Shown:
    if profile.name == profiles.DEFAULT:
        has_key = profiles.operators_key() is not None
    else:
        has_key = profiles.has_key(session, person.tenant_id, profile.name)
    agents = administered.agents_with(session, person.tenant_id, profile.name)
    return Shown(profile, has_key, agents)


def _add(work: Work, person: Principal, new: NewModel) -> None:
    administered.check(work.session, person)
    if new.name == FORM:
        raise Invalid(FieldError("name", N_("Choose another name.")))
    administered.add(work, person, _profile(new.name, new), _key(new))


def _change(work: Work, person: Principal, name: str, change: Change) -> None:
    administered.check(work.session, person)
    administered.change(
        work,
        person,
        _profile(name, change),
        _key(change),
        forgets_key=change.forgets_key,
    )


def _remove(work: Work, person: Principal, name: str) -> None:
    administered.check(work.session, person)
    administered.remove(work, person, name)


def _key(said: Change) -> str:
    return said.api_key.get_secret_value().strip()  # copied with the end of its line


def _profile(name: str, said: Change) -> Profile:
    values = {field: getattr(said, field) for field in KEPT}
    texts = {
        "model": said.model.strip(),
        "base_url": said.base_url.strip(),
        "kind": said.kind.value,
    }
    return Profile(name=name, **values | texts)


async def _page(
    request: Request, person: Principal, name: str, tried: Trial | None = None
) -> HTMLResponse:
    shown = await db.read(_shown, person, name)
    return render(request, "admin_models/show.html", shown=shown, tried=tried, behind=behind)
