"""What the product finds in its folders and FastAPI makes of its routers, once a process.

Each application works it out for itself at its first request, which costs a fifth of a second;
the tests make thousands of applications of the same routers. Templates are compiled once a run:
hundreds of servers would compile each page they draw.
"""

import dataclasses
import os
import pkgutil
from collections.abc import Iterable, Iterator

from fastapi import APIRouter, FastAPI, routing
from jinja2 import FileSystemBytecodeCache
from starlette.routing import BaseRoute

from app.console import view
from tests import session
from tests.sources import ROOT

_Include = routing._RouterIncludeContext
_Made = routing._EffectiveRouteContext | None

_make = routing._IncludedRouter._build_effective_context
_look = pkgutil.iter_modules
_found: dict[tuple[str, ...], list[pkgutil.ModuleInfo]] = {}  # by the folders of a package
_kept: dict[int, tuple[BaseRoute, list[tuple[_Include, _Made]]]] = {}  # by the id of a route


def share() -> None:
    """Let the applications of this process share it, where they include a router alike.

    Whose `dependency_overrides` count is part of it: they are those of the first application.
    """
    routing._IncludedRouter._build_effective_context = _shared  # type: ignore[method-assign]
    pkgutil.iter_modules = _modules  # type: ignore[assignment]
    if session.VARIABLE in os.environ:
        compiled = session.folder() / "templates"
        compiled.mkdir(exist_ok=True)
        view.environment.bytecode_cache = FileSystemBytecodeCache(str(compiled))


def make(routers: Iterable[APIRouter]) -> None:
    """Make it now, for applications that include these routers as they are."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for router in routers:
        app.include_router(router)
    for route in app.routes:
        if isinstance(route, routing._IncludedRouter):
            route.effective_candidates()
            route.effective_low_priority_routes()


def _modules(path: Iterable[str] | None = None, prefix: str = "") -> Iterator[pkgutil.ModuleInfo]:
    folders = tuple(path or ())
    if prefix or not folders or any(not folder.startswith(f"{ROOT}/app/") for folder in folders):
        return _look(path, prefix)
    if folders not in _found:
        _found[folders] = list(_look(folders))
    return iter(_found[folders])


def _shared(self: routing._IncludedRouter, route: BaseRoute) -> _Made:
    included = vars(self).get("_alike")  # made once for all the routes of a router
    if included is None:
        included = dataclasses.replace(self.include_context, dependency_overrides_provider=None)
        vars(self)["_alike"] = included
    _, kept = _kept.setdefault(id(route), (route, []))
    for how, made in kept:
        if how == included:
            return made
    made = _make(self, route)
    kept.append((included, made))
    return made
