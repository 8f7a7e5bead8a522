"""Absurd numbers in addresses, forms and JSON: refused or harmless, never a fault of ours."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, get_args

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from structlog.testing import capture_logs

from app.commands import publishing
from app.console import forms
from app.console.forms import Form
from app.kernel import rates
from tests.people import World
from tests.security import every_route
from tests.security.every_route import Ask

NUMBERS = (10**30, -(10**30), 2**63, 2**63 - 1, -1, 0)
TEXTS = {"seq", "serial", "number", "version", "name", "secret", "code"}  # of a path; read by hand
NO_END = {"/v1/events", "/live/stream"}  # an answer that goes on has tests of its own
OUT = ("/sign-out", "/end")  # ends the session of whoever asks


@pytest.mark.requirement("SEC-48", "SEC-T28")
async def test_no_number_of_an_address_or_a_form_is_a_fault(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    things = every_route.make(world, world.acme["olga"])
    numbers = {route.path: set(_numbers_in_query(route)) for route in every_route.routes()}
    models = _watched(monkeypatch)
    olga = world.client(world.acme["olga"])
    tried: set[tuple[str, str]] = set()
    wrong = []

    with capture_logs():
        for ask in every_route.asks(world, things):
            if ask.template in NO_END or ask.template.endswith(OUT):
                continue
            models.clear()
            if ask.method == "POST":  # a field too many does nothing, and tells the form
                await olga.post(ask.path, data={**ask.form, "unheard_of": "1"})
            fields = {name for model in models for name in _numbers_in_form(model)}
            for what, path, form in _odd(ask, numbers[ask.template], fields):
                rates.of_process.cache_clear()
                data = form if ask.method == "POST" else None
                answer = await olga.request(ask.method, path, data=data)
                tried.add((ask.template, what.partition("=")[0]))
                if answer.status_code >= 500:
                    wrong.append(f"{ask}: {what}: {answer.status_code}")

    assert wrong == []
    assert ("/conversations/{conversation_id}", "?before") in tried
    assert ("/admin/agents/{agent_id}", "steps") in tried
    assert ("/audit/{seq}", "{seq}") in tried
    assert len(tried) > 150, "else this proves nothing"


@pytest.mark.requirement("SEC-48", "SEC-T28")
async def test_no_number_of_a_call_is_a_fault(world: World) -> None:
    definitions = publishing.declared_definitions()
    caller = world.client(world.acme["alice"])
    wrong, tried = [], 0

    with capture_logs():
        for code, told in sorted(definitions.items()):
            for at, changed in _odd_inputs(told.example):
                rates.of_process.cache_clear()
                answer = await caller.post(f"/v1/commands/{code}/calls", json={"input": changed})
                tried += 1
                if answer.status_code >= 500:
                    wrong.append(f"{code}: {at}: {answer.status_code}")
        for number in NUMBERS:
            body = {"input": {}, "expectedVersion": number}
            answer = await caller.post(f"/v1/commands/{every_route.COMMAND}/calls", json=body)
            assert answer.status_code in {400, 422}

    assert wrong == []
    assert tried > 20, "else this proves nothing"


def _odd(ask: Ask, query: set[str], fields: set[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The request with one number in it, at each place where one is read."""
    for number in NUMBERS:
        for name in sorted(query):
            yield f"?{name}={number}", f"{ask.path}?{name}={number}", ask.form
        for place, part in enumerate(ask.template.split("/")):
            if part.startswith("{") and (part.strip("{}") in TEXTS or number == NUMBERS[0]):
                parts = ask.path.split("/")
                parts[place] = str(number)
                yield f"{part}={number}", "/".join(parts), ask.form
        for name in sorted(fields):
            yield f"{name}={number}", ask.path, {**ask.form, name: str(number)}


def _odd_inputs(example: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, value in example.items():
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            for number in NUMBERS:
                yield f"{name}={number}", {**example, name: number}
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for at, inner in _odd_inputs(value[0]):
                yield f"{name}/{at}", {**example, name: [inner]}


def _watched(monkeypatch: pytest.MonkeyPatch) -> list[type[BaseModel]]:
    """The models of the forms that pages read from now on."""
    seen: list[type[BaseModel]] = []
    read = forms.read

    async def watched(request: Request, model: type[Any]) -> Form[Any]:
        seen.append(model)
        return await read(request, model)

    monkeypatch.setattr(forms, "read", watched)
    return seen


def _numbers_in_form(model: type[BaseModel]) -> Iterator[str]:
    for name, each in model.model_fields.items():
        if _is_number(each.annotation):
            yield each.alias or name


def _numbers_in_query(route: APIRoute) -> Iterator[str]:
    for each in _of(route.dependant):
        if _is_number(each.field_info.annotation) or each.alias in {"after", "cursor"}:
            yield each.alias


def _of(dependant: Dependant) -> Iterator[Any]:
    yield from dependant.query_params
    for each in dependant.dependencies:
        yield from _of(each)


def _is_number(annotation: Any) -> bool:
    if annotation in {int, float, Decimal}:
        return True
    return any(_is_number(each) for each in get_args(annotation))
