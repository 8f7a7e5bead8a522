"""/sign-in: with a password, a passkey or another provider."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from sqlmodel import Session

from app.console import detours, entry, flash, forms, held, paths, refusals
from app.console.entry import Stranger
from app.console.forms import Form
from app.console.view import render
from app.console.viewer import anonymous
from app.identity import cookies, csrf, guard, passkeys, setup, sign_in
from app.identity.deps import browser_of, signed_of
from app.identity.errors import PasskeyRefused, SignInFailed, SignInRequired
from app.identity.oidc import dance
from app.identity.sign_in import Attempt
from app.kernel import db, rates, settings
from app.kernel.errors import AppError, FieldError, TooMany
from app.kernel.i18n import N_

router = APIRouter(prefix="/sign-in")

STILL_OUT = N_("Nobody has signed in yet in another tab.")
HELD = held.LONGEST
WAIT = N_("Too many tries. Wait %(retry_after_s)s seconds, then try again.")


class Back(BaseModel):
    """Where to go on afterwards, and what was sent too late."""

    model_config = ConfigDict(extra="forbid")

    next: str = ""
    held: Annotated[str, Field(max_length=HELD)] = ""
    time_zone: Annotated[str, Field(max_length=64)] = ""


class WithPassword(Back):
    """The form of the page."""

    tenant: Annotated[str, Field(max_length=100)] = ""
    login: Annotated[str, Field(max_length=200)]
    password: Annotated[SecretStr, Field(max_length=1_000)]


class WithPasskey(Back):
    """What the script sends in its place."""

    credential: Annotated[SecretStr, Field(max_length=passkeys.ANSWER)]


class Returned(BaseModel):
    """What a provider adds to the address; whatever else it adds is of no concern."""

    state: Annotated[str, Field(max_length=dance.ANSWER)] = ""
    code: Annotated[str, Field(max_length=dance.ANSWER)] = ""
    iss: Annotated[str | None, Field(max_length=1_000)] = None
    error: Annotated[str | None, Field(max_length=200)] = None


async def first(request: Request, _refused: AppError) -> Response | None:
    """The way to this page for whoever needs a session; what they had typed comes along.

    Nothing is kept of a form that a page of another site sent.
    """
    if not detours.is_form(request):
        return detours.by_reading(request, "/sign-in")
    try:
        guard.check_origin(request.headers.items(), settings.current().origin)
    except AppError:
        return None
    mark = cookies.pre_session(request)
    request.state.csrf = csrf.of_pre_session(mark)
    request.state.viewer = anonymous(request)
    kept = held.seal(await held.of_request(request), mark)
    form = forms.blank(WithPassword, held=kept)
    return await _draw(request, form, status_code=401, is_late=bool(kept))


refusals.lead(SignInRequired, first)


@router.get("")
async def ask(
    request: Request,
    _mark: Stranger,
    back: Annotated[str, Query(alias="next")] = "",
    tenant: str = "",
) -> Response:
    """The page; somebody who is signed in goes on at once."""
    if await signed_of(request) is not None:
        return RedirectResponse(paths.own(back), status_code=303)
    return await _draw(
        request, forms.blank(WithPassword, next=paths.own(back), tenant=tenant[:100])
    )


@router.post("")
async def with_password(request: Request, mark: Stranger) -> Response:
    """Sign in with tenant, login and password."""
    form, status_code = await forms.read(request, WithPassword), 422
    if form.data:
        data = form.data
        attempt = Attempt(
            tenant_slug=data.tenant, login=data.login, password=data.password.get_secret_value()
        )
        try:
            with form.catching(SignInFailed):
                arrival = await entry.arrival(request, data.time_zone)
                secret = await sign_in.with_password(attempt, arrival)
                return await _go_on(request, secret, data, mark)
        except TooMany as refused:
            form.errors.append(FieldError("", WAIT, refused.facts))
            status_code = 429
    return await _draw(request, form, status_code=status_code)


@router.post("/passkey/options")
async def passkey_options(request: Request, mark: Stranger) -> Response:
    """A challenge for this browser.

    Raises:
        TooMany: its network asks too often; each challenge is a row.
    """
    rates.of_process().hit("ceremony", browser_of(request).ip_prefix)
    return Response(await passkeys.sign_in_options(mark), media_type="application/json")


@router.post("/passkey")
async def with_passkey(request: Request, mark: Stranger) -> Response:
    """Sign in with what the browser's passkey answered."""
    form = await forms.read(request, WithPasskey)
    if form.data:
        data = form.data
        with form.catching(PasskeyRefused, SignInFailed):
            arrival = await entry.arrival(request, data.time_zone)
            secret = await passkeys.with_passkey(mark, data.credential.get_secret_value(), arrival)
            return await _go_on(request, secret, data, mark)
    again = forms.blank(WithPassword, next=form.value("next"), held=form.value("held"))
    again.errors = [FieldError("", error.says, error.facts) for error in form.errors]
    return await _draw(request, again, status_code=422)


@router.post("/elsewhere")
async def signed_in_elsewhere(request: Request, mark: Stranger) -> Response:
    """Go on with a form that was kept here while another tab went to a provider and back."""
    form = await forms.read(request, Back)
    back = form.data or Back()
    secret = cookies.session_secret(request)
    if secret is not None and await signed_of(request) is not None:
        return await _go_on(request, secret, back, mark)
    again = forms.blank(WithPassword, next=paths.own(back.next), held=back.held)
    again.errors.append(FieldError("", STILL_OUT))
    return await _draw(request, again, status_code=422)


@router.get("/{provider}")
async def with_provider(
    request: Request,
    _mark: Stranger,
    provider: str,
    back: Annotated[str, Query(alias="next")] = "",
) -> Response:
    """Go to a provider. By a link, as `form-action` would stop a form on its way there.

    Raises:
        TooMany: its network asks too often; each start is a row.
    """
    rates.of_process().hit("ceremony", browser_of(request).ip_prefix)
    address = await dance.begin(provider, "sign_in", cookies.dance(request), paths.own(back))
    return RedirectResponse(address, status_code=303, headers={"Cache-Control": "no-store"})


@router.get("/{provider}/callback")
async def back_from_provider(
    request: Request, provider: str, returned: Annotated[Returned, Query()]
) -> Response:
    """Back from a provider: into a session, into the settings, or nowhere."""
    answer = dance.Answer(returned.state, returned.code, returned.iss, returned.error)
    outcome = await dance.finish(
        provider,
        answer,
        cookies.dance(request),
        await signed_of(request),
        await entry.arrival(request),
    )
    if outcome.secret is not None:
        cookies.give_session(request, outcome.secret)
    response = RedirectResponse(paths.own(outcome.path), status_code=303)
    response.headers["Cache-Control"] = "no-store"
    return response


async def _go_on(request: Request, secret: str, back: Back, mark: str) -> Response:
    cookies.give_session(request, secret)
    kept = held.opened(back.held, mark)
    if kept is None:
        return flash.see_other(paths.own(back.next))
    return await entry.replay_as(request, secret, kept)


async def _draw(
    request: Request,
    form: Form[WithPassword],
    *,
    status_code: int = 200,
    is_late: bool = False,
) -> Response:
    is_empty, asks_for_tenant, providers = await db.read(_offered)
    response = render(
        request,
        "sign_in/page.html",
        status_code=status_code,
        form=form,
        is_empty=is_empty,
        asks_for_tenant=asks_for_tenant,
        providers=providers,
        is_late=is_late or bool(form.value("held")),
        back=form.value("next"),
        path="/sign-in",  # where a change of language leads
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def _offered(session: Session) -> tuple[bool, bool, list[tuple[str, str]]]:
    return setup.is_needed(session), sign_in.asks_for_tenant(session), dance.offered(session)
