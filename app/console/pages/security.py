"""/settings/security: the ways a person signs in: password, passkeys, accounts of providers."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from sqlmodel import Session

from app.console import flash, forms
from app.console.forms import Form
from app.console.names import Name
from app.console.params import Id
from app.console.passwords import NewPassword
from app.console.view import render
from app.identity import cookies, new_password, passkeys, passwords, sessions, ways_in
from app.identity.deps import FreshPerson, Person, browser_of, signed_of
from app.identity.errors import PasskeyRefused, SignInRequired
from app.identity.models import Credential, ExternalLogin, User
from app.identity.oidc import dance, logins
from app.identity.sessions import Signed
from app.kernel import db
from app.kernel.errors import FieldError
from app.kernel.i18n import N_

router = APIRouter(prefix="/settings")

HERE = "/settings/security"
CHANGED = flash.notice(N_("Your password was changed. Your other browser sessions have ended."))
ADDED = flash.notice(N_("The passkey was added."))
RENAMED = flash.notice(N_("The passkey was renamed."))
REMOVED = flash.notice(N_("The passkey was removed."))
UNLINKED = flash.notice(N_("The account was unlinked."))


class Label(BaseModel):
    """What a passkey is called."""

    model_config = ConfigDict(extra="forbid")

    label: Annotated[Name, Field(max_length=passkeys.LABEL)]


class NewPasskey(Label):
    """The same, with what the browser made."""

    credential: Annotated[SecretStr, Field(max_length=passkeys.ANSWER)]


@dataclass(frozen=True, slots=True)
class Ways:
    """How a person can sign in now, and which providers they could add."""

    has_password: bool
    passkeys: list[Credential]
    logins: list[tuple[ExternalLogin, str]]
    providers: list[tuple[str, str]]


@router.get("/security")
async def show(request: Request, person: Person) -> Response:
    """The page."""
    return await _draw(request, await _signed(request))


@router.get("/password")
async def ask_password(request: Request, _person: FreshPerson) -> Response:
    """The page for another password."""
    return await _draw_password(request, forms.blank(NewPassword))


@router.post("/password")
async def change_password(request: Request, person: FreshPerson) -> Response:
    """Choose another password; other browser sessions end."""
    signed = await _signed(request)
    form = await forms.read(request, NewPassword)
    if form.data:
        with form.catching():
            user, tenant = signed.user, signed.tenant
            personal = (user.login, user.display_name, user.email or "", tenant.name, tenant.slug)
            digest = await passwords.digest(passwords.check_new(form.data.chosen(), personal))
            await db.transaction(new_password.change, person, digest)
            return flash.see_other(HERE, CHANGED)
    return await _draw_password(request, form, status_code=422)


@router.get("/passkeys/new")
async def ask_passkey(request: Request, _person: FreshPerson) -> Response:
    """The page that adds a passkey."""
    device = sessions.device_of(browser_of(request).user_agent)
    return _draw_new(request, forms.blank(NewPasskey, label=device))


@router.post("/passkeys/options")
async def passkey_options(request: Request, _person: FreshPerson) -> Response:
    """A challenge for a new passkey."""
    options = await passkeys.registration_options(await _signed(request))
    return Response(options, media_type="application/json")


@router.post("/passkeys")
async def add_passkey(request: Request, _person: FreshPerson) -> Response:
    """Keep the passkey the browser made."""
    form = await forms.read(request, NewPasskey)
    if form.data:
        data = form.data
        with form.catching(PasskeyRefused):
            await passkeys.register(
                await _signed(request), data.credential.get_secret_value(), data.label.strip()
            )
            return flash.see_other(HERE, ADDED)
    form.errors = [
        FieldError("", PasskeyRefused.says) if error.pointer == "credential" else error
        for error in form.errors
    ]
    return _draw_new(request, form, status_code=422)


@router.get("/passkeys/{credential_id}")
async def passkey(request: Request, person: Person, credential_id: Id) -> Response:
    """One passkey, to be renamed or removed."""
    row = await db.read(passkeys.own, person, credential_id)
    return _draw_one(request, forms.blank(Label, label=row.label), row)


@router.post("/passkeys/{credential_id}")
async def rename_passkey(request: Request, person: FreshPerson, credential_id: Id) -> Response:
    """Call a passkey something else."""
    row = await db.read(passkeys.own, person, credential_id)
    form = await forms.read(request, Label)
    if form.data:
        await db.transaction(passkeys.rename, person, credential_id, form.data.label.strip())
        return flash.see_other(HERE, RENAMED)
    return _draw_one(request, form, row, status_code=422)


@router.post("/passkeys/{credential_id}/removal")
async def remove_passkey(request: Request, person: FreshPerson, credential_id: Id) -> Response:
    """Take a passkey away."""
    await db.transaction(passkeys.remove, person, credential_id)
    return flash.see_other(HERE, REMOVED)


@router.post("/logins/{provider}/link")
async def link(request: Request, _person: FreshPerson, provider: str) -> Response:
    """Begin to link an account: a page with the way to the provider.

    Not a redirect, since `form-action` stops one that leads elsewhere (SEC-22); and not a link that
    starts it, since another site could follow that one.
    """
    address = await dance.begin(
        provider, "link", cookies.dance(request), HERE, await _signed(request)
    )
    response = render(
        request, "settings/link.html", label=dance.label_of(provider), address=address
    )
    response.headers["Cache-Control"] = "no-store"
    return response


@router.get("/logins/{login_id}/removal")
async def ask_unlink(request: Request, person: Person, login_id: Id) -> Response:
    """Ask before an account is unlinked."""
    login = await db.read(logins.own, person, login_id)
    return render(
        request, "settings/unlink.html", login=login, label=dance.label_of(login.provider)
    )


@router.post("/logins/{login_id}/removal")
async def unlink(request: Request, person: FreshPerson, login_id: Id) -> Response:
    """Unlink an account."""
    await db.transaction(logins.unlink, person, login_id)
    return flash.see_other(HERE, UNLINKED)


async def _signed(request: Request) -> Signed:
    signed = await signed_of(request)
    if signed is None:
        raise SignInRequired
    return signed


async def _draw(request: Request, signed: Signed) -> Response:
    ways = await db.read(_ways, signed.user)
    return render(request, "settings/security.html", ways=ways, login=signed.user.login)


async def _draw_password(
    request: Request, form: Form[NewPassword], *, status_code: int = 200
) -> Response:
    signed = await _signed(request)
    return render(
        request,
        "settings/password.html",
        status_code=status_code,
        form=form,
        login=signed.user.login,
    )


def _draw_new(request: Request, form: Form[NewPasskey], *, status_code: int = 200) -> Response:
    return render(request, "settings/new_passkey.html", status_code=status_code, form=form)


def _draw_one(
    request: Request, form: Form[Label], row: Credential, *, status_code: int = 200
) -> Response:
    return render(request, "settings/passkey.html", status_code=status_code, form=form, passkey=row)


def _ways(session: Session, user: User) -> Ways:
    linked = ways_in.external(session, user)
    known = {login.provider for login in linked}
    return Ways(
        has_password=passwords.of_user(session, user) is not None,
        passkeys=ways_in.passkeys(session, user),
        logins=[(login, dance.label_of(login.provider)) for login in linked],
        providers=[
            (name, label)
            for name, label in dance.offered(session, user.tenant_id)
            if name not in known
        ],
    )
