"""What was typed stays, what is wrong is said at its field."""

from typing import Annotated, Literal

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from starlette.requests import Request
from starlette.responses import Response

from app.console import flash, forms
from app.console.view import render
from app.kernel.errors import Conflict, FieldError, Invalid
from app.kernel.i18n import N_, speaking
from tests.console.pages import ALICE, application, templates, visitor

ADDED = flash.notice(N_("Choose yes or no."))
PAGE = """
{% extends "_shell.html" %}{% import "_forms.html" as f %}
{% block content %}<h1>x</h1>{% call f.form(form, "/people") %}
{{ f.text(form, "name", "Name", hint="As others see it.") }}
{{ f.password(form, "password", "Password") }}
{{ f.checkboxes(form, "roles", "Roles", [("a", "A"), ("b", "B")]) }}
{{ f.actions("Add") }}
{% endcall %}{% endblock %}
"""


class NewPerson(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=10)]
    password: Annotated[SecretStr, Field(min_length=4)]
    roles: list[str] = []
    colour: Literal["red", "blue"] = "red"
    is_owner: bool = False

    @model_validator(mode="after")
    def owners_have_no_role(self) -> "NewPerson":
        if self.is_owner and self.roles:
            raise ValueError(N_("Choose yes or no."))
        return self


def people(seen: list[NewPerson]) -> FastAPI:
    app = application(ALICE)

    @app.post("/people")
    async def create(request: Request) -> Response:
        form = await forms.read(request, NewPerson)
        if form.data:
            with form.catching():
                if form.data.name == "taken":
                    raise Invalid(FieldError("name", N_("This is not an id."), {}))
                if form.data.name == "raced":
                    raise Conflict
                seen.append(form.data)
                return flash.see_other("/people", ADDED)
        return render(request, "page.html", status_code=422, form=form)

    return app


GOOD = {"_csrf": "t", "name": "Alice", "password": "secret", "roles": ["a", "b"]}


def test_a_sound_form_is_data_and_the_next_page_says_so_once() -> None:
    seen: list[NewPerson] = []
    browser = visitor(people(seen))

    answer = browser.post("/people", data=GOOD)

    assert (answer.status_code, answer.headers["location"]) == (303, "/people")
    assert seen[0].roles == ["a", "b"]
    assert "flash=" in answer.headers["set-cookie"]


@pytest.mark.requirement("UI-90")
def test_what_was_typed_stays_and_each_error_stands_at_its_field_but_no_secret_does() -> None:
    with templates(page=PAGE):
        answer = visitor(people([])).post(
            "/people", data={"name": "Alexandrine", "password": "abc", "roles": ["b"]}
        )

    assert answer.status_code == 422
    assert 'value="Alexandrine"' in answer.text
    assert 'value="abc"' not in answer.text
    assert 'value="b" checked' in answer.text
    assert 'aria-describedby="field-name-hint field-name-error" aria-invalid="true"' in answer.text
    assert 'id="field-name-error"' in answer.text
    assert "Too short: at least 4 characters." in answer.text
    assert '<a href="#field-password"><strong>Password</strong></a>' in answer.text
    assert "2 things need another look" in answer.text


def test_what_the_database_refuses_stands_at_its_field_too() -> None:
    with templates(page=PAGE):
        answer = visitor(people([])).post("/people", data=GOOD | {"name": "taken"})

    assert answer.status_code == 422
    assert '<a href="#field-name"><strong>Name</strong></a> This is not an id.' in answer.text


def test_any_other_refusal_is_not_the_form_s_business() -> None:
    answer = visitor(people([])).post("/people", data=GOOD | {"name": "raced"})

    assert answer.status_code == 409
    assert "<code>conflict</code>" in answer.text


def test_a_field_that_does_not_belong_here_is_refused() -> None:
    with templates(page=PAGE):
        answer = visitor(people([])).post("/people", data=GOOD | {"tenant_id": "other"})

    assert answer.status_code == 422
    assert "a field that does not belong to it" in answer.text


def check(**typed: str | list[str]) -> forms.Form[NewPerson]:
    lists = {name: value if isinstance(value, list) else [value] for name, value in typed.items()}
    return forms.Form(NewPerson, lists).check()


@pytest.mark.parametrize("blank", ["", "   "])
def test_blank_is_missing_where_something_is_needed_and_the_default_elsewhere(blank: str) -> None:
    form = check(name=blank, password="secret", colour=blank)

    assert form.error("name") == "Fill this in."
    assert form.error("colour") is None


def test_a_password_of_blanks_is_as_typed() -> None:
    form = check(name="x", password="  a  b ")

    assert form.data is not None
    assert form.data.password.get_secret_value() == "  a  b "


def test_an_error_of_the_whole_form_leads_nowhere_but_is_said() -> None:
    form = check(name="x", password="secret", roles=["a"], is_owner="true")

    assert form.data is None
    assert form.summary() == [("", "", "Choose yes or no.")]


@pytest.mark.requirement("UI-96")
def test_errors_speak_the_reader_s_language() -> None:
    form = check(password="secret", colour="green")

    with speaking("zh-CN"):
        assert form.error("name") == "请填写此项。"
        assert form.error("colour") == "请从给出的选项中选择。"


def test_a_fresh_form_shows_what_is_so_now() -> None:
    form = forms.blank(NewPerson, name="Alice", roles=["a"], is_owner=True, colour=None)

    assert (form.value("name"), form.values("roles"), form.value("is_owner")) == (
        "Alice",
        ["a"],
        "true",
    )
    assert form.value("colour") == ""
    assert form.is_required("name")
    assert not form.is_required("roles")
    assert form.errors == []
