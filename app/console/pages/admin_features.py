"""/admin/features: what this workspace is entitled to, and until when."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict
from sqlmodel import Session

from app.access import scope
from app.console import flash, forms, zoned
from app.console.nav import NavItem
from app.console.view import render
from app.console.zoned import Moment
from app.identity import features
from app.identity.deps import Person
from app.identity.models import Entitlement, EntitlementStatus, Feature
from app.identity.principal import Principal
from app.kernel import clock, db
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.kernel.i18n import N_

READ, MANAGE = "identity.feature.read", "identity.feature.manage"

router = APIRouter(prefix="/admin/features")
NAV = NavItem(N_("Features"), "/admin/features", "feature", "administration", READ, order=50)
CHANGED = flash.notice(N_("The entitlement was changed. It counts within five seconds."))

Code = Annotated[str, Path(pattern=r"^[a-z][a-z0-9_.-]{0,126}$")]


class Change(BaseModel):
    """What the right to a feature is worth from now on."""

    model_config = ConfigDict(extra="forbid")

    status: EntitlementStatus
    ends_at: Moment | None = None


@dataclass(frozen=True, slots=True)
class Entitled:
    """A feature, and the tenant's right to it."""

    feature: Feature
    right: Entitlement | None

    @property
    def is_over(self) -> bool:
        """Whether its end has passed, whatever the status says."""
        return bool(self.right and self.right.ends_at and self.right.ends_at <= clock.now())


@router.get("")
async def index(request: Request, person: Person) -> HTMLResponse:
    """Every feature that packs declare."""
    return render(request, "admin_features/index.html", **await db.read(_list, person))


@router.get("/{code}/entitlement")
async def edit(request: Request, person: Person, code: Code) -> HTMLResponse:
    """The form that changes what a feature is worth here."""
    entitled = await db.read(_one, person, code)
    right = entitled.right
    form = forms.blank(
        Change,
        status=right.status if right else EntitlementStatus.TRIAL,
        ends_at=zoned.typed(right.ends_at) if right else "",
    )
    return render(request, "admin_features/edit.html", form=form, feature=entitled.feature)


@router.post("/{code}/entitlement")
async def change(request: Request, person: Person, code: Code) -> Response:
    """Keep what was changed."""
    form = await forms.read(request, Change)
    if form.data:
        with form.catching():
            await db.transaction(_change, person, code, form.data)
            return flash.see_other("/admin/features", CHANGED)
    entitled = await db.read(_one, person, code)
    return render(
        request, "admin_features/edit.html", status_code=422, form=form, feature=entitled.feature
    )


def _list(session: Session, person: Principal) -> dict[str, Any]:
    if not scope.tenant_wide(session, person, READ):
        scope.require(session, person, READ)
        return {"features": []}
    return {
        "features": [
            Entitled(feature, right)
            for feature, right in features.of_tenant(session, person.tenant_id)
        ]
    }


def _one(session: Session, person: Principal, code: str) -> Entitled:
    _check(session, person)
    for feature, right in features.of_tenant(session, person.tenant_id):
        if feature.code == code:
            return Entitled(feature, right)
    raise NotFound


def _change(work: Work, person: Principal, code: str, change: Change) -> None:
    _check(work.session, person)
    features.entitle(
        work,
        person,
        person.tenant_id,
        code,
        status=change.status,
        ends_at=change.ends_at,
        source="console",
    )


def _check(session: Session, person: Principal) -> None:
    """Features are of the whole tenant, so the permission has to reach all of it."""
    scope.require_tenant_wide(session, person, MANAGE)
