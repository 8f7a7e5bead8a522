"""/settings: what a person chooses for themselves: name, language, look and time zone."""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal
from zoneinfo import available_timezones

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session

from app.console import flash, forms, language
from app.console.forms import Form
from app.console.names import Name
from app.console.nav import NavItem
from app.console.view import render
from app.identity import orgs, sign_in, users
from app.identity.deps import Person
from app.identity.models import Org, Tenant, User
from app.identity.principal import Principal
from app.identity.users import Preferences
from app.kernel import db
from app.kernel.i18n import LANGUAGES, N_

router = APIRouter(prefix="/settings")
NAV = NavItem(N_("Settings"), "/settings", "settings", "workspace", order=90)
SAVED = flash.notice(N_("Your settings were saved."))

NOT_PLACES = ("Etc/", "SystemV/", "posix/", "right/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine:
    """One's own account; `tenant_slug` where one has to type it to sign in."""

    user: User
    org: Org
    tenant_slug: str


class Profile(BaseModel):
    """The form of the page; a blank language follows the browser."""

    model_config = ConfigDict(extra="forbid")

    display_name: Name
    locale: Literal["", "en", "zh-CN"] = ""
    theme: Literal["system", "light", "dark"] = "system"
    time_zone: Annotated[str, Field(max_length=64)] = "UTC"


@router.get("")
async def show(request: Request, person: Person) -> Response:
    """The page."""
    mine = await db.read(_mine, person)
    form = forms.blank(
        Profile,
        display_name=mine.user.display_name,
        locale=mine.user.locale,
        theme=mine.user.theme,
        time_zone=mine.user.time_zone or "UTC",
    )
    return _draw(request, form, mine)


@router.post("")
async def save(request: Request, person: Person) -> Response:
    """Keep what was chosen, in this browser too, so that the sign-in page follows it."""
    form = await forms.read(request, Profile)
    if form.data:
        data = form.data
        with form.catching():
            chosen = Preferences(
                display_name=data.display_name.strip(),
                locale=data.locale or None,
                time_zone=data.time_zone,
                theme=data.theme,
            )
            await db.transaction(users.prefer, person, chosen)
            response = flash.see_other("/settings", SAVED)
            language.remember(response, language=data.locale, theme=data.theme)
            if not data.locale:
                response.delete_cookie(language.LANGUAGE_COOKIE, httponly=True, samesite="lax")
            return response
    mine = await db.read(_mine, person)
    return _draw(request, form, mine, status_code=422)


def _mine(session: Session, person: Principal) -> Mine:
    user = users.one(session, person.tenant_id, person.user_id)
    tenant = session.get(Tenant, person.tenant_id)
    is_asked = tenant is not None and sign_in.asks_for_tenant(session)
    return Mine(
        user=user,
        org=orgs.one(session, person.tenant_id, user.org_id),
        tenant_slug=tenant.slug if tenant is not None and is_asked else "",
    )


@cache
def zones() -> list[tuple[str, str]]:
    """Time zones that are places, by name, and UTC."""
    places = (
        name for name in available_timezones() if "/" in name and not name.startswith(NOT_PLACES)
    )
    return [(name, name.replace("_", " ")) for name in ["UTC", *sorted(places)]]


def _draw(request: Request, form: Form[Profile], mine: Mine, *, status_code: int = 200) -> Response:
    known = zones()
    chosen = form.value("time_zone")
    if mine.user.time_zone and chosen == mine.user.time_zone and chosen not in dict(known):
        known = [(chosen, chosen), *known]
    return render(
        request,
        "settings/profile.html",
        status_code=status_code,
        form=form,
        mine=mine,
        zones=known,
        tongues=list(LANGUAGES.items()),
    )
