"""/setup/{secret}: the first owner, by the one-time link that is printed at start (SEC-42)."""

import re
import unicodedata
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from app.console import entry, forms
from app.console.entry import Stranger
from app.console.names import Name
from app.console.passwords import Typed, same
from app.console.view import render
from app.console.viewer import of
from app.identity import passwords, setup, sign_in, users
from app.identity.setup import FirstOwner
from app.identity.sign_in import Arrival
from app.kernel import db
from app.kernel.db import Work

router = APIRouter(prefix="/setup")

NAMELESS = "main"  # the short name of an organisation whose name has no Latin letters


class Setup(BaseModel):
    """What the first owner says."""

    model_config = ConfigDict(extra="forbid")

    tenant_name: Name
    slug: Annotated[str, Field(max_length=63)] = ""
    display_name: Name
    login: Annotated[str, Field(max_length=users.LOGIN_LENGTH)]
    password: Typed
    again: Typed
    locale: Literal["en", "zh-CN"] = "en"
    time_zone: Annotated[str, Field(max_length=64)] = ""


@router.get("/{secret}")
async def ask(request: Request, _mark: Stranger, secret: str) -> Response:
    """The page; looking at it uses nothing up."""
    await db.read(setup.check, secret)
    return _draw(request, forms.blank(Setup, locale=of(request).language), secret)


@router.post("/{secret}")
async def complete(request: Request, _mark: Stranger, secret: str) -> Response:
    """Make the tenant and its owner, who is signed in then."""
    await db.read(setup.check, secret)
    form = await forms.read(request, Setup)
    if form.data:
        data = form.data
        with form.catching():
            slug = data.slug.strip().lower() or suggested_slug(data.tenant_name)
            personal = (data.login, data.display_name, data.tenant_name, slug)
            password = passwords.check_new(same(data.password, data.again), personal)
            owner = FirstOwner(
                tenant_name=data.tenant_name.strip(),
                tenant_slug=slug,
                login=users.normal_login(data.login),
                display_name=data.display_name.strip(),
                locale=data.locale,
                argon2id=await passwords.digest(password),
            )
            arrival = await entry.arrival(request, data.time_zone)
            begun = await db.transaction(_complete, secret, owner, arrival)
            return entry.welcome(request, begun)
    return _draw(request, form, secret, status_code=422)


def suggested_slug(name: str) -> str:
    """A short name made of what Latin letters and digits a name has."""
    latin = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", latin).strip("-")[:63].strip("-") or NAMELESS


def _complete(work: Work, secret: str, owner: FirstOwner, arrival: Arrival) -> str:
    tenant, user = setup.complete(work, secret, owner)
    work.session.flush()
    begun, _ = sign_in.begin(work, tenant.id, user.id, sign_in.PASSWORD, arrival)
    return begun


def _draw(
    request: Request, form: forms.Form[Setup], secret: str, *, status_code: int = 200
) -> Response:
    response = render(request, "setup/page.html", status_code=status_code, form=form, secret=secret)
    response.headers["Cache-Control"] = "no-store"
    return response
