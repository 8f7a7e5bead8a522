"""/oauth/authorize, /oauth/consent and /oauth/device: a person lets an application act for them.

The page is shown every time and is never framed; the form carries the id of the stored request and
nothing else (SEC-15, SEC-16).
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from app.console import forms
from app.console.view import render
from app.identity.deps import Person
from app.identity.doors import Door
from app.identity.models import ClientSource, OAuthClient
from app.identity.oauth import cimd, consent, device, redirects
from app.identity.oauth.adapter import Answer, PlainRequest
from app.identity.oauth.consent import DELEGATION_LIFE, WORDS
from app.identity.oauth.device import CodeUnknown
from app.identity.principal import Principal, Scope
from app.kernel import clock, db, rates
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_
from app.kernel.rates import Rates

router = APIRouter(prefix="/oauth")

DOORS = {
    Door.V1: N_("The programming interface of this server"),
    Door.MCP: N_("The tools of this server (MCP)"),
    Door.A2A: N_("The agents of this server (A2A)"),
    Door.AUN: N_("The messages of this server (AUN)"),
}
KNOWN_BY = {
    ClientSource.REGISTERED: N_("Registered by an administrator of yours"),
    ClientSource.CIMD: N_("Describes itself at %(url)s"),
    ClientSource.DCR: N_("Registered itself; nobody has checked it"),
    ClientSource.HOSTED: N_("An agent of this server"),
}
ICONS = {
    Scope.CATALOG_READ: "app",
    Scope.COMMANDS_READ: "eye",
    Scope.COMMANDS_INVOKE: "check",
    Scope.EVENTS_READ: "clock",
    Scope.AUDIT_READ: "audit",
    Scope.AUN_MESSAGE: "users",
    Scope.OFFLINE_ACCESS: "key",
}
_guesses = Rates({"guess": "5/10 minutes"})


class Verdict(BaseModel):
    """What the consent form sends."""

    model_config = ConfigDict(extra="forbid")

    request: Annotated[str, Field(pattern=r"^[0-9A-Z]{26}$")]
    decision: Literal["allow", "deny"]


class Typed(BaseModel):
    """The code a device shows, and what to do about it; nothing yet, at first."""

    model_config = ConfigDict(extra="forbid")

    user_code: Annotated[str, Field(max_length=64)]
    decision: Literal["allow", "deny"] | None = None


@router.get("/authorize")
async def authorize(request: Request, person: Person) -> Response:
    """Ask whether the application may act; or send its mistake back to it."""
    rates.of_process().hit("authorize", _address(request))
    plain = PlainRequest("GET", consent.PATH, request.query_params.multi_items())
    await cimd.ensure(str(plain.payload.client_id or ""))
    asked = await db.transaction(consent.ask, person, plain)
    if isinstance(asked, Answer):
        return _to_client(asked)
    _open(request)
    request.scope["state"]["csp_form_action"] = redirects.source_of(asked.redirect_uri)
    return render(
        request,
        "oauth/consent.html",
        question=asked,
        host=redirects.host_of(asked.redirect_uri),
        is_loopback=redirects.is_loopback(asked.redirect_uri),
        **_words(asked.client, asked.scopes, asked.resource),
    )


@router.post("/consent")
async def answer(request: Request, person: Person) -> Response:
    """Take the person's answer back to the application."""
    form = await forms.read(request, Verdict)
    if form.data is None:
        raise Invalid(*form.errors)
    allow = form.data.decision == "allow"
    answered = await db.transaction(consent.answer, person, form.data.request, allow=allow)
    _open(request)
    return _to_client(answered)


@router.get("/device")
async def enter(request: Request, _person: Person, user_code: str = "") -> Response:
    """Ask for the code that a device shows; a link may fill it in, and nothing more."""
    shown = user_code[:64] if device.normal(user_code) else ""
    return render(request, "oauth/device.html", form=forms.blank(Typed, user_code=shown))


@router.post("/device")
async def decide(request: Request, person: Person) -> Response:
    """Show what waits behind a code, then let it in or not."""
    form = await forms.read(request, Typed)
    if form.data is None:
        return render(request, "oauth/device.html", status_code=422, form=form)
    who = (person.session_id, _address(request))
    if _guesses.is_full("guess", *who):
        _guesses.hit("guess", *who)  # raises, and says until when
    try:
        return await _decided(request, person, form.data)
    except CodeUnknown as unknown:
        _guesses.hit("guess", *who)
        form.add(Invalid(FieldError("user_code", unknown.says)))
        return render(request, "oauth/device.html", status_code=422, form=form)


async def _decided(request: Request, person: Principal, typed: Typed) -> Response:
    if typed.decision is None:
        found = await db.read(device.waiting, person, typed.user_code)
        return render(
            request,
            "oauth/device_confirm.html",
            code=device.display(device.normal(typed.user_code)),
            client=found.client,
            ends_at=clock.now() + DELEGATION_LIFE,
            **_words(found.client, found.scopes, found.code.resource),
        )
    allow = typed.decision == "allow"
    found = await db.transaction(device.decide, person, typed.user_code, allow=allow)
    return render(request, "oauth/device_done.html", client=found.client, allowed=allow)


def _words(client: OAuthClient, scopes: Any, resource: str) -> dict[str, Any]:
    door = next(door for door in Door if door.resource == resource)
    return {
        "scopes": [(ICONS[Scope(word)], WORDS[Scope(word)], word) for word in scopes],
        "door": DOORS[door],
        "known_by": KNOWN_BY[ClientSource(client.source)],
        "is_unchecked": client.source == ClientSource.DCR,
    }


def _to_client(answered: Answer) -> Response:
    return RedirectResponse(answered.location or "/", status_code=303)


def _open(request: Request) -> None:
    """A web client's popup would lose its opener otherwise (SEC-45)."""
    request.scope.setdefault("state", {})["coop"] = "unsafe-none"


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
