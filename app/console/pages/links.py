"""/invite/{secret} and /reset/{secret}: a one-time link, and the password chosen by it."""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlmodel import Session

from app.console import entry, flash, forms
from app.console.entry import Stranger
from app.console.passwords import NewPassword
from app.console.view import render, url
from app.identity import links, new_password, passwords, sign_in
from app.identity.errors import LinkInvalid
from app.identity.links import Opened
from app.identity.models import LinkPurpose
from app.identity.sign_in import Arrival
from app.kernel import db
from app.kernel.db import Work
from app.kernel.i18n import N_

router = APIRouter()

RESET = flash.notice(N_("The password was changed. Sign in with it."))


@router.get("/invite/{secret}")
async def invited(request: Request, _mark: Stranger, secret: str) -> Response:
    """The page of an invitation; looking at it uses nothing up."""
    opened = await db.read(_read, secret, LinkPurpose.INVITE)
    return await _draw(request, forms.blank(NewPassword), opened, secret)


@router.post("/invite/{secret}")
async def accept(request: Request, _mark: Stranger, secret: str) -> Response:
    """Choose a password; the person is signed in then."""
    opened = await db.read(_read, secret, LinkPurpose.INVITE)
    form = await forms.read(request, NewPassword)
    if form.data:
        with form.catching():
            digest = await passwords.digest(_checked(form.data, opened))
            arrival = await entry.arrival(request)
            begun = await db.transaction(_accept, secret, digest, arrival)
            return entry.welcome(request, begun)
    return await _draw(request, form, opened, secret, status_code=422)


@router.get("/reset/{secret}")
async def resetting(request: Request, _mark: Stranger, secret: str) -> Response:
    """The page of a reset; looking at it uses nothing up."""
    opened = await db.read(_read, secret, LinkPurpose.RESET)
    return await _draw(request, forms.blank(NewPassword), opened, secret)


@router.post("/reset/{secret}")
async def reset(request: Request, _mark: Stranger, secret: str) -> Response:
    """Choose another password; every browser session of the person ends."""
    opened = await db.read(_read, secret, LinkPurpose.RESET)
    form = await forms.read(request, NewPassword)
    if form.data:
        with form.catching():
            digest = await passwords.digest(_checked(form.data, opened))
            await db.transaction(new_password.reset, secret, digest)
            return flash.see_other(url("/sign-in", tenant=opened.tenant.slug), RESET)
    return await _draw(request, form, opened, secret, status_code=422)


def _checked(chosen: NewPassword, opened: Opened) -> str:
    user, tenant = opened.user, opened.tenant
    personal = (user.login, user.display_name, user.email or "", tenant.name, tenant.slug)
    return passwords.check_new(chosen.chosen(), personal)


def _read(session: Session, secret: str, purpose: LinkPurpose) -> Opened:
    opened = links.read(session, secret)
    if opened.link.purpose != purpose:
        raise LinkInvalid
    return opened


def _accept(work: Work, secret: str, argon2id: str, arrival: Arrival) -> str:
    user = new_password.accept_invitation(work, secret, argon2id)
    work.session.flush()
    begun, _ = sign_in.begin(work, user.tenant_id, user.id, sign_in.PASSWORD, arrival)
    return begun


async def _draw(
    request: Request,
    form: forms.Form[NewPassword],
    opened: Opened,
    secret: str,
    *,
    status_code: int = 200,
) -> Response:
    response = render(
        request,
        "links/page.html",
        status_code=status_code,
        form=form,
        purpose=opened.link.purpose,
        action=f"/{opened.link.purpose}/{secret}",
        user=opened.user,
        tenant=opened.tenant,
        asks_for_tenant=await db.read(sign_in.asks_for_tenant),
        ends_at=opened.link.expires_at,
    )
    response.headers["Cache-Control"] = "no-store"
    return response
