"""Every component of the look on a few pages, for the tests of the look alone.

`python -m e2e.styleguide` serves it at a free port, for whoever draws.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from jinja2 import ChoiceLoader, FileSystemLoader
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.console import assets, flash, forms, refusals, view
from app.console.language import of_request, theme_of
from app.console.nav import SECTIONS, Entry, Group, NavItem
from app.console.pages import look
from app.console.view import render
from app.console.viewer import Viewer
from app.kernel import clock
from app.kernel.errors import Conflict, FieldError, Invalid, NotFound, TooMany
from app.kernel.i18n import N_
from tests.server import free_port

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; object-src 'none'"
)
NAV = {
    "main": [
        NavItem(N_("Sign in"), "/styleguide/entry", "lock"),
        NavItem(N_("Language"), "/styleguide/empty", "globe"),
    ],
    "workspace": [NavItem(N_("Settings"), "/styleguide/saved", "settings", "workspace")],
    "administration": [
        NavItem(N_("Administration"), "/styleguide", "users", "administration"),
        NavItem(N_("Request"), "/styleguide/none", "role", "administration"),
    ],
}
OPTIONS: dict[str, object] = {
    "rp": {"name": "Assent", "id": "localhost"},
    "user": {"id": "dXNlcg", "name": "alice", "displayName": "Alice Wang"},
    "pubKeyCredParams": [{"type": "public-key", "alg": -7}],
    "authenticatorSelection": {"residentKey": "required", "userVerification": "required"},
    "excludeCredentials": [],
}
PAGES = ("", "/invalid", "/empty", "/entry", "/ask", "/saved")
REFUSALS = {"404": NotFound(), "409": Conflict(), "429": TooMany(retry_after_s=75)}
SAVED = flash.notice(N_("Choose yes or no."))


class Sample(BaseModel):
    """One field of each kind."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=20)]
    password: Annotated[SecretStr, Field(min_length=10)]
    note: str = ""
    zone: str = "UTC"
    theme: str = "system"
    roles: list[str] = []
    until: str = ""
    is_owner: bool = False


class Policy:
    """The policy of SEC-44 on every answer, as in the product."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"].append((b"content-security-policy", CSP.encode()))
            await send(message)

        await self.app(scope, receive, with_policy if scope["type"] == "http" else send)


def create() -> FastAPI:
    """The application of the sample pages."""
    app = FastAPI(openapi_url=None)
    app.add_middleware(Policy)
    app.include_router(assets.router)
    app.include_router(look.router)
    refusals.install(app, lambda request: True)
    own = FileSystemLoader(Path(__file__).parent / "styleguide_templates")
    view.environment.loader = ChoiceLoader([FileSystemLoader(view.TEMPLATES), own])

    @app.get("/styleguide")
    async def index(request: Request) -> HTMLResponse:
        form = forms.blank(Sample, name="Alice Wang", theme="light", roles=["b"], is_owner=True)
        return _page(request, "sample.html", form=form)

    @app.get("/styleguide/saved")
    async def saved(request: Request) -> HTMLResponse:
        return _page(request, "sample.html", form=forms.blank(Sample), notice=SAVED)

    @app.get("/styleguide/invalid")
    async def invalid(request: Request) -> HTMLResponse:
        form = forms.Form(Sample, {"name": ["A" * 30], "password": ["short"], "roles": ["a"]})
        form.check().add(Invalid(FieldError("theme", N_("Choose one of the offered values."), {})))
        return _page(request, "sample.html", form=form)

    @app.post("/styleguide")
    async def save(request: Request) -> Response:
        form = await forms.read(request, Sample)
        if form.data:
            return flash.see_other("/styleguide", SAVED)
        return _page(request, "sample.html", status_code=422, form=form)

    @app.get("/styleguide/empty")
    async def empty(request: Request) -> HTMLResponse:
        return _page(request, "empty.html")

    @app.get("/styleguide/ask")
    async def ask(request: Request) -> HTMLResponse:
        return _page(request, "ask.html")

    @app.get("/styleguide/entry")
    @app.get("/styleguide/entry-new")
    async def entry(request: Request) -> HTMLResponse:
        request.state.csrf = "token-before-a-session"
        return render(request, "entry.html", form=forms.blank(Sample), t=_chooser(request))

    @app.post("/styleguide/passkey-options")
    async def options(request: Request) -> dict[str, object]:
        assert request.headers["x-csrf-token"] == "token-before-a-session"
        return {"challenge": "Y2hhbGxlbmdl", "userVerification": "required", **OPTIONS}

    @app.post("/styleguide/passkey")
    async def passkey(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str((await request.form())["credential"]))

    @app.api_route("/styleguide/refused/{code}", methods=["GET", "POST"])
    async def refused(request: Request, code: str) -> Response:
        if code != "404":
            request.state.viewer = _viewer(request)
        raise REFUSALS[code]

    @app.get("/styleguide/failing")
    async def failing() -> Response:
        raise RuntimeError("a fault of ours")

    return app


@contextmanager
def serving() -> Iterator[str]:
    """The sample pages on a free port of this machine; gives the base URL."""
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(create(), host="127.0.0.1", port=port, log_level="warning")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    ready = threading.Event()
    startup = server.startup

    async def started(*arguments: object, **named: object) -> None:
        await startup()
        ready.set()

    server.startup = started  # type: ignore[method-assign]
    thread.start()
    assert ready.wait(20), "the sample pages did not start"
    try:
        yield f"http://localhost:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


def _page(
    request: Request, template: str, *, status_code: int = 200, **context: object
) -> HTMLResponse:
    request.state.viewer = _viewer(request)
    path = request.url.path
    groups = [
        Group(
            section,
            label,
            tuple(Entry(item, item.path == path, item.path == path) for item in NAV[section]),
        )
        for section, label in SECTIONS.items()
    ]
    return render(
        request,
        template,
        status_code=status_code,
        navigation=groups,
        t=_chooser(request),
        now=clock.now(),
        **context,
    )


def _viewer(request: Request) -> Viewer:
    return Viewer(
        user_id="01J00000000000000000000000",
        tenant_id="01J00000000000000000000001",
        display_name="Alice Wang",
        tenant_name="Example Ltd",
        language=of_request(request),
        theme=theme_of(request),
        time_zone="Asia/Shanghai",
        csrf="token-of-the-session",
        is_person=True,
    )


def _chooser(request: Request) -> object:
    is_chinese = of_request(request) == "zh-CN"
    return lambda english, chinese: chinese if is_chinese else english


if __name__ == "__main__":
    with serving() as base_url:
        sys.stdout.write(f"{base_url}/styleguide\n")
        threading.Event().wait()
