"""`/openapi.json`: the platform's routes for programs, complete; no tenant's command is in it.

Pages are left out: they are for people. Refusals have one shape everywhere (CMD-7, SEC-88).
"""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from app.api.calls import CallRequest
from app.api.problem_docs import PROBLEMS, Problem

TWIN = "/aun/rpc"  # messages, for programs without a socket
ABOUT = """Commands run through one pipeline of twenty stages, whoever calls. A refusal names its
`stage`, a stable `reason` and an `advice`; one that a person has to assent to first is a 428 with
the address where they do. Repeat a call whose answer you did not get with the same
`Idempotency-Key`. A query parameter that is not described here is refused, not ignored."""
TAGS = [
    {"name": "commands", "description": "What the caller may run."},
    {"name": "calls", "description": "Running a command, and what became of it."},
    {"name": "approvals", "description": "Calls that wait for a person's word; read only."},
    {"name": "runs", "description": "What agents did for a person; stopping one."},
    {"name": "audit", "description": "The chained trail of everything that was tried."},
    {"name": "messages", "description": "Messages between people, agents and outside clients."},
    {"name": "events", "description": "What happens, as server-sent events."},
    {"name": "identity", "description": "Who is calling."},
]
SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "at+jwt",
        "description": "An agent's token, for the audience of this door.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Host-sid",
        "description": "A person's browser session; unsafe methods need `X-CSRF-Token` as well.",
    },
}


def install(app: FastAPI, is_page: Callable[[str], bool]) -> None:
    """Let the application describe itself so; `is_page` says which paths are for people."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _made(app, is_page)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _made(app: FastAPI, is_page: Callable[[str], bool]) -> dict[str, Any]:
    made = get_openapi(
        title=app.title, version=app.version, description=ABOUT, routes=app.routes, tags=TAGS
    )
    made["paths"] = {path: told for path, told in made["paths"].items() if not is_page(path)}
    components = made.setdefault("components", {})
    components["securitySchemes"] = SCHEMES
    _, defined = models_json_schema(
        [(CallRequest, "validation"), (Problem, "serialization")],
        ref_template="#/components/schemas/{model}",
    )
    schemas = components.setdefault("schemas", {})
    schemas |= defined["$defs"]
    for path, operations in made["paths"].items():
        for operation in operations.values():
            _complete(path, operation)
    components["schemas"] = _named(schemas, {"paths": made["paths"]})
    return made


def _named(schemas: dict[str, Any], start: Any) -> dict[str, Any]:
    """The schemas that something here refers to, or one of those does."""
    found: dict[str, Any] = {}
    wanted = _references(start)
    while wanted:
        name = wanted.pop()
        if name not in found and name in schemas:
            found[name] = schemas[name]
            wanted |= _references(schemas[name])
    return dict(sorted(found.items()))


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"].rpartition("/")[2]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()


def _complete(path: str, operation: dict[str, Any]) -> None:
    if said := operation.pop("description", ""):  # the docstring, not the function's name
        operation["summary"], _, more = (part.strip() for part in said.partition("\n"))
        operation |= {"description": more} if more else {}
    responses = operation.setdefault("responses", {})
    if "422" in responses:
        responses["422"] = PROBLEMS[422]
    if path.startswith("/v1/") or path == TWIN:
        operation["security"] = [{"bearer": []}, {"session": []}]
        for status, said in PROBLEMS.items():
            responses.setdefault(str(status), said)
