"""/step-up: confirm that it is still you, then go on where you were (SEC-38)."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from sqlmodel import Session

from app.console import detours, entry, flash, forms, held, paths, refusals
from app.console.forms import Form
from app.console.view import render
from app.identity import cookies, passkeys, step_up, ways_in
from app.identity.deps import Person, browser_of, signed_of
from app.identity.errors import PasskeyRefused, SignInRequired, StepUpNeeded
from app.identity.models import CredentialKind, User
from app.identity.oidc import dance
from app.identity.sessions import Signed
from app.kernel import db
from app.kernel.errors import AppError, FieldError, TooMany
from app.kernel.i18n import N_

router = APIRouter(prefix="/step-up")

HELD = held.LONGEST
WAIT = N_("Too many tries. Wait %(retry_after_s)s seconds, then try again.")
STILL_OLD = N_("That has not happened yet.")


class Back(BaseModel):
    """Where to go on afterwards, and what was sent meanwhile."""

    model_config = ConfigDict(extra="forbid")

    next: str = ""
    held: Annotated[str, Field(max_length=HELD)] = ""


class WithPassword(Back):
    """The form of the page."""

    password: Annotated[SecretStr, Field(max_length=1_000)]


class WithPasskey(Back):
    """What the script sends in its place."""

    credential: Annotated[SecretStr, Field(max_length=passkeys.ANSWER)]


async def first(request: Request, _refused: AppError) -> Response | None:
    """The way to this page for whoever has to confirm; a form they sent comes along."""
    signed = await signed_of(request)
    if signed is None or not detours.is_form(request):
        return detours.by_reading(request, "/step-up")
    kept = held.seal(await held.of_request(request), signed.session.id)
    return await _draw(request, signed, _blank(held=kept), status_code=401)


refusals.lead(StepUpNeeded, first)


@router.get("")
async def ask(
    request: Request, _person: Person, back: Annotated[str, Query(alias="next")] = ""
) -> Response:
    """The page; whoever signed in a moment ago goes on at once."""
    signed = await _signed(request)
    if signed.is_fresh:
        return RedirectResponse(paths.own(back), status_code=303)
    return await _draw(request, signed, _blank(next=paths.own(back)))


@router.post("")
async def with_password(request: Request, _person: Person) -> Response:
    """Confirm with the password."""
    signed = await _signed(request)
    form, status_code = await forms.read(request, WithPassword), 422
    if form.data:
        data = form.data
        try:
            with form.catching():
                secret = await step_up.with_password(
                    signed, data.password.get_secret_value(), browser_of(request)
                )
                return _go_on(request, signed, secret, data)
        except TooMany as refused:
            form.errors.append(FieldError("password", WAIT, refused.facts))
            status_code = 429
    return await _draw(request, signed, form, status_code=status_code)


@router.post("/passkey/options")
async def passkey_options(request: Request, _person: Person) -> Response:
    """A challenge for this session."""
    options = await passkeys.step_up_options(await _signed(request))
    return Response(options, media_type="application/json")


@router.post("/passkey")
async def with_passkey(request: Request, _person: Person) -> Response:
    """Confirm with what the browser's passkey answered."""
    signed = await _signed(request)
    form = await forms.read(request, WithPasskey)
    if form.data:
        data = form.data
        with form.catching(PasskeyRefused):
            secret = await passkeys.confirm(signed, data.credential.get_secret_value())
            return _go_on(request, signed, secret, data)
    again = _blank(next=form.value("next"), held=form.value("held"))
    again.errors = [FieldError("", error.says, error.facts) for error in form.errors]
    return await _draw(request, signed, again, status_code=422)


@router.post("/elsewhere")
async def confirmed_elsewhere(request: Request, _person: Person) -> Response:
    """Go on with a form that was kept here while another tab went to a provider and back."""
    signed = await _signed(request)
    form = await forms.read(request, Back)
    back = form.data or Back()
    if signed.is_fresh:
        return _go_on(request, signed, None, back)
    again = _blank(next=paths.own(back.next), held=back.held)
    again.errors.append(FieldError("", STILL_OLD))
    return await _draw(request, signed, again, status_code=422)


@router.get("/done")
async def done(request: Request, _person: Person) -> Response:
    """What the other tab says when it is back from the provider."""
    return render(request, "step_up/done.html")


@router.get("/{provider}")
async def with_provider(
    request: Request,
    _person: Person,
    provider: str,
    back: Annotated[str, Query(alias="next")] = "",
) -> Response:
    """Go to the provider, which asks for a new sign-in there."""
    address = await dance.begin(
        provider, "step_up", cookies.dance(request), paths.own(back), await _signed(request)
    )
    return RedirectResponse(address, status_code=303, headers={"Cache-Control": "no-store"})


def _go_on(request: Request, signed: Signed, secret: str | None, back: Back) -> Response:
    if secret is not None:
        cookies.give_session(request, secret)
    kept = held.opened(back.held, signed.session.id)
    return entry.replay(request, kept) if kept else flash.see_other(paths.own(back.next))


async def _signed(request: Request) -> Signed:
    signed = await signed_of(request)
    if signed is None:
        raise SignInRequired
    return signed


def _ways(session: Session, user: User) -> tuple[set[str], list[tuple[str, str]]]:
    kinds = {str(CredentialKind(row.kind)) for row in ways_in.credentials(session, user)}
    linked = {login.provider for login in ways_in.external(session, user)}
    offered = dance.offered(session, user.tenant_id)
    return kinds, [(name, label) for name, label in offered if name in linked]


def _blank(**values: object) -> Form[WithPassword]:
    return forms.blank(WithPassword, **values)


async def _draw(
    request: Request, signed: Signed, form: Form[WithPassword], *, status_code: int = 200
) -> Response:
    ways, providers = await db.read(_ways, signed.user)
    response = render(
        request,
        "step_up/page.html",
        status_code=status_code,
        form=form,
        login=signed.user.login,
        ways=ways,
        providers=providers,
        back=form.value("next"),
        path="/step-up",
    )
    response.headers["Cache-Control"] = "no-store"
    return response
