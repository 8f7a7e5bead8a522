"""A form made from a schema: which controls, what was typed as JSON, and errors at their places."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field
from sqlmodel import Session

from app.commands import registry
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.commands.stored import StoredDefinition
from app.console import schema_forms, view
from app.console.schema_forms import SchemaForm
from app.console.viewer import Viewer, viewing
from app.identity.principal import Channel, Principal
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import speaking

WORD = Text(en="Word", zh="词")
SHANGHAI = Viewer(time_zone="Asia/Shanghai")
NOBODY = Principal("t", "u", None, None, None, Channel.CONSOLE, (), frozenset(), 0)
PLAIN = {"/title": ["Trip"], "/colour": ["red"], "/lines/0": [""], "/pay/kind": ["cash"]}


class Colour(StrEnum):
    RED = "red"
    DARK_BLUE = "dark_blue"


class Line(Input):
    what: str = Field(description="What was bought.")
    amount_minor: int = Field(ge=1, description="In minor units.")


class Card(Input):
    kind: Literal["card"]
    number: str = Field(description="The number on it.")


class Cash(Input):
    kind: Literal["cash"]


class Everything(Input):
    title: str = Field(max_length=200, description="A short text.")
    colour: Colour = Field(description="One of few.")
    lines: list[Line] = Field(min_length=1, max_length=3, description="What it is made of.")
    pay: Annotated[Card | Cash, Field(discriminator="kind", description="How.")]
    note: str = Field("none", max_length=2_000, description="A long text.")
    month: Literal["1", "2", "3", "4", "5", "6"] | None = None
    tags: list[str] = Field([], description="Some words.")
    colours: list[Colour] = Field([], description="Some of few.")
    total_minor: int = Field(0, json_schema_extra={"x-money": "CNY"})
    count: int | None = None
    rate: float | None = None
    is_urgent: bool = True
    may_wait: bool | None = None
    day: date | None = None
    starts_at: datetime | None = None
    mail: str = Field("", json_schema_extra={"format": "email"})
    pin: str = Field("", json_schema_extra={"x-secret": True})
    extra: dict[str, int] = Field({}, description="Whatever else.")


def definition(input: type[Input] = Everything, **said: Any) -> StoredDefinition:
    usual: dict[str, Any] = {"risk": Risk.L1, "operation": Operation.CREATE, "example": {}}
    declared = CommandDefinition(
        code="desk.thing.make",
        display_name=WORD,
        description=WORD,
        agent_hint=WORD,
        idempotent=True,
        reversible=True,
        input=input,
        permission="desk.thing.write",
        **{**usual, **said},
    )
    return StoredDefinition.of(declared, "desk")


@pytest.fixture(autouse=True)
def shanghai() -> Iterator[None]:
    with viewing(SHANGHAI):
        yield


def form(values: Mapping[str, Any] | None = None, *errors: FieldError) -> SchemaForm:
    with Session() as session:
        return schema_forms.form_for(session, NOBODY, definition(), values=values, errors=errors)


def drawn(made: SchemaForm) -> str:
    template = view.environment.get_template("_schema.html").module
    text = str(template.summary(made)) + str(template.fields(made, "/redraw"))  # type: ignore[attr-defined]
    return re.sub(r"\s+", " ", text)


def parsed(**sent: Sequence[str]) -> dict[str, Any]:
    return schema_forms.parse(definition(), {**PLAIN, **sent})


def control(html: str, name: str) -> str:
    found = re.search(rf'<(input|select|textarea)[^>]*name="{re.escape(name)}".*?>', html)
    assert found, name
    return found.group()


@pytest.mark.requirement("UI-103")
def test_each_kind_of_value_has_its_control() -> None:
    html = drawn(form())
    with_row = drawn(form({"tags": ["a"], "pay": {"kind": "card"}}))

    assert 'type="text"' in control(html, "/title")
    assert 'maxlength="200"' in control(html, "/title")
    assert control(html, "/note").startswith("<textarea")
    assert 'type="radio"' in control(html, "/colour")
    assert control(html, "/month").startswith("<select")
    assert 'type="checkbox"' in control(html, "/colours")
    assert 'inputmode="decimal"' in control(html, "/lines/0/amountMinor")
    assert 'inputmode="numeric"' in control(html, "/count")
    assert 'type="checkbox"' in control(html, "/isUrgent")
    assert 'type="radio"' in control(html, "/mayWait")
    assert 'type="date"' in control(html, "/day")
    assert 'type="datetime-local"' in control(html, "/startsAt")
    assert 'type="email"' in control(html, "/mail")
    assert 'type="password"' in control(html, "/pin")
    assert control(html, "/extra").startswith("<textarea")
    assert 'type="radio"' in control(html, "/pay/kind")
    assert "/pay/card/number" in with_row
    assert "/tags/0" in with_row
    assert "(CNY)" in html
    assert "(UTC+08:00)" in html
    assert "Dark blue" in html
    assert html.count('class="required"') >= 5
    assert 'name="emptied" value="/note"' in html


@pytest.mark.requirement("UI-103")
def test_what_is_typed_becomes_json_of_the_right_types() -> None:
    made = parsed(
        **{
            "/colours": ["dark_blue"],
            "/lines/0/what": ["Lunch"],
            "/lines/0/amountMinor": ["3,420.5"],
            "/lines/7/what": ["Taxi"],
            "/lines/7/amountMinor": ["\uff11\uff12"],
            "/lines/8/what": [""],
            "/pay/kind": ["card"],
            "/pay/card/number": ["6222"],
            "/month": ["3"],
            "/tags/0": ["a"],
            "/tags/1": [""],
            "/totalMinor": ["-0.07"],
            "/count": ["12"],
            "/rate": ["1.25"],
            "/mayWait": ["false"],
            "/day": ["2026-11-25"],
            "/startsAt": ["2026-11-25T14:02"],
            "/mail": [" a@example.com "],
            "/pin": ["1234"],
            "/extra": ['{"a": 1}'],
        }
    )

    assert made == {
        "title": "Trip",
        "colour": "red",
        "colours": ["dark_blue"],
        "lines": [
            {"what": "Lunch", "amountMinor": 342050},
            {"what": "Taxi", "amountMinor": 1200},
        ],
        "pay": {"kind": "card", "number": "6222"},
        "month": "3",
        "tags": ["a"],
        "totalMinor": -7,
        "count": 12,
        "rate": 1.25,
        "isUrgent": False,
        "mayWait": False,
        "day": "2026-11-25",
        "startsAt": "2026-11-25T06:02:00Z",
        "mail": "a@example.com",
        "pin": "1234",
        "extra": {"a": 1},
    }


def test_what_cannot_be_read_stays_as_it_was_typed() -> None:
    wrong = {"/totalMinor": ["12.345"], "/count": ["one"], "/startsAt": ["soon"], "/extra": ["{"]}

    made = parsed(**wrong)
    errors = [FieldError(name, "Send a whole number.") for name in ("totalMinor", "count")]
    html = drawn(form(made, *errors))

    assert [made[name] for name in ("totalMinor", "count", "startsAt", "extra")] == [
        *("12.345", "one", "soon", "{")
    ]
    assert 'value="12.345"' in control(html, "/totalMinor")
    assert "Write an amount, such as 3420.00." in html
    assert "Write a whole number." in html


def test_a_blank_field_is_left_out_unless_its_text_was_taken_away() -> None:
    assert "note" not in parsed(**{"/note": [""]})
    assert parsed(**{"/note": [""], "emptied": ["/note"]})["note"] == ""
    assert "title" not in schema_forms.parse(definition(), {**PLAIN, "/title": ["  "]})
    assert parsed()["lines"] == []


@pytest.mark.requirement("UI-103")
def test_errors_land_at_their_fields_and_the_summary_leads_there() -> None:
    values = {"lines": [{}, {"what": "Taxi"}], "pay": {"kind": "card"}}
    made = form(
        values,
        FieldError("/lines/1/amountMinor", "Fill this in."),
        FieldError("pay/number", "Fill this in."),
        FieldError("lines/9/what", "Send a text."),
        FieldError("", "The whole does not do."),
    )
    html = drawn(made)

    places = {id: label for id, label, _ in made.summary()}
    assert list(places.values()) == ["Lines", "Amount", "Number", ""]
    for id in filter(None, places):
        assert f'id="{id}"' in html
        assert f'href="#{id}"' in html
        assert f'id="{id}-error"' in html
    amount = control(html, "/lines/1/amountMinor")
    assert 'aria-invalid="true"' in amount
    assert "The whole does not do." in html


@pytest.mark.requirement("CMD-20")
def test_a_secret_is_never_written_back() -> None:
    made = form({"pin": "48151623", "title": "Trip"})

    assert made.has_secret
    assert "48151623" not in drawn(made)


@pytest.mark.requirement("UI-103")
def test_rows_come_go_and_move_by_buttons() -> None:
    rows = {"/lines/0/what": ["a"], "/lines/1/what": ["b"]}

    def after(pressed: str) -> list[Any]:
        made = parsed(**rows, rows=[pressed])
        return [(row or {}).get("what") for row in made["lines"]]

    assert after("add:/lines") == ["a", "b", None]
    assert after("remove:/lines/0") == ["b"]
    assert after("up:/lines/1") == ["b", "a"]
    assert after("down:/lines/0") == ["b", "a"]
    assert after("down:/lines/1") == ["a", "b"]
    for odd in ("remove:/lines/9", "remove:/title", "add:/title/x", "add:", "up:", "x:/lines/0"):
        assert after(odd) == ["a", "b"]
    assert parsed(rows=["add:/tags"])["tags"] == [None]
    assert schema_forms.is_redrawing({"rows": ["add:/tags"]})
    assert not schema_forms.is_redrawing(PLAIN)
    full = drawn(form({"lines": [{}, {}, {}]}))
    assert 'value="add:/lines"' not in full
    assert 'value="add:/tags"' in full


@pytest.mark.requirement("SEC-P64")
def test_a_field_the_form_does_not_offer_is_refused() -> None:
    with pytest.raises(Invalid) as refused:
        parsed(**{"/tenantId": ["x"], "/lines/0/ownerId": ["x"], "user_id": ["x"]})
    assert [error.pointer for error in refused.value.errors] == ["/tenantId", "/lines/0/ownerId"]

    with pytest.raises(Invalid) as refused:
        schema_forms.parse(
            definition(), {"user_id": ["x"], "key": ["1"]}, besides=frozenset({"key"})
        )
    assert [error.pointer for error in refused.value.errors] == ["user_id"]

    with pytest.raises(Invalid):
        parsed(**{"/note": ["a\0b"]})


def test_a_schema_that_refers_to_itself_ends_in_json() -> None:
    class Node(Input):
        name: str = ""
        below: "Node | None" = None

    made = schema_forms._shape(definition(Node))

    depth = 0
    while made.parts:
        made, depth = made.parts[1], depth + 1
    assert made.kind == "json"
    assert depth < 10


@pytest.mark.requirement("UI-96")
def test_forms_of_the_commands_that_ship_speak_chinese() -> None:
    registry.discover()
    missing: set[str] = set()
    seen = 0

    with speaking("zh-CN"):
        for code, declared in registry.declared().items():
            for each in _texts(StoredDefinition.of(declared, "x")):
                seen += 1
                if re.search("[a-z]{2}", each) and not re.search("[\u4e00-\u9fff]", each):
                    missing.add(f"{code}: {each}")

    assert seen > 100, "else this proves nothing"
    assert sorted(missing) == []


def _texts(told: StoredDefinition) -> Iterator[str]:
    class NothingOffered(schema_forms._Builder):
        def _offered(self, *_: Any) -> Any:
            return schema_forms.NOTHING_OFFERED

    with Session() as session:
        fields = NothingOffered(session, NOBODY, told, (), {}).fields(told.example)
    for each in (part for field in fields for part in field.all()):
        yield each.label
        yield each.hint
        yield from (option.label for option in each.options)
