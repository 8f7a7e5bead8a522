"""A small application with the real console around it, for the tests of the console's own parts."""

from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import FastAPI
from jinja2 import ChoiceLoader, DictLoader
from starlette.requests import Request
from starlette.testclient import TestClient

from app.console import assets, refusals, view
from app.console.viewer import Viewer, Viewing

ALICE = Viewer(
    user_id="01J00000000000000000000000",
    tenant_id="01J00000000000000000000001",
    display_name="Alice Wang",
    tenant_name="Example Ltd",
    time_zone="Asia/Shanghai",
    csrf="token-of-the-session",
    permissions=frozenset({"identity.user.read"}),
    is_person=True,
)


def is_page(request: Request) -> bool:
    return not request.url.path.startswith("/v1")


def application(viewer: Viewer | None = None) -> FastAPI:
    """An empty application whose pages are seen by `viewer`, or by nobody in particular."""

    async def load(request: Request) -> Viewer | None:
        return viewer

    app = FastAPI(openapi_url=None)
    app.add_middleware(Viewing, load=load, is_page=is_page)
    app.include_router(assets.router)
    refusals.install(app, is_page)
    return app


def visitor(app: FastAPI, **headers: str) -> TestClient:
    """A browser of this application, which does not follow redirects."""
    return TestClient(
        app,
        base_url="http://localhost",
        follow_redirects=False,
        raise_server_exceptions=False,
        headers=headers,
    )


@contextmanager
def templates(**sources: str) -> Iterator[None]:
    """Further templates for the block: `page="…"` is `page.html`."""
    before = view.environment.loader
    assert before is not None
    extra = DictLoader({f"{name}.html": source for name, source in sources.items()})
    view.environment.loader = ChoiceLoader([extra, before])
    try:
        yield
    finally:
        view.environment.loader = before
        if view.environment.cache is not None:
            view.environment.cache.clear()
