"""`sample.form.write`: every kind of field, for forms and schemas; creates a report."""

from enum import StrEnum

from pydantic import Field

from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.packs.expenses.models import Report


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Row(Input):
    label: str = Field(max_length=50, description="What it is.")
    count: int = Field(ge=1, le=99, description="How many.")


class Form(Input):
    title: str = Field(min_length=1, max_length=100, description="A short text.")
    story: str = Field("", max_length=2_000, description="A long text.")
    colour: Colour = Field(Colour.RED, description="One of few.")
    amount_minor: int = Field(
        0, ge=0, description="An amount of money.", json_schema_extra={"x-money": "CNY"}
    )
    is_urgent: bool = Field(False, description="Yes or no.")
    on: str = Field(
        "2026-10-01", description="A day.", json_schema_extra={"format": "date"}, max_length=10
    )
    words: list[str] = Field([], max_length=5, description="Some words.")
    rows: list[Row] = Field([], max_length=5, description="Some rows.")
    period: str = Field("2026-10", max_length=7, description="A month.")
    currency: str = Field("CNY", max_length=3, description="A currency.")
    secret: str = Field(
        "", max_length=100, description="Nobody reads it.", json_schema_extra={"x-secret": True}
    )


COMMAND = CommandDefinition(
    code="sample.form.write",
    display_name=Text(en="Write form", zh="填写表单"),
    description=Text(en="Makes a report out of everything.", zh="用各种字段新建一张报销单。"),
    agent_hint=Text(
        en="Use to try fields; sample.report.touch is named as its undo.",
        zh="用于尝试字段；撤销用 sample.report.touch。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="sample.report.touch",
    undo_input={"title": "'undone'"},
    record=Report,
    operation=Operation.CREATE,
    input=Form,
    example={"title": "A form", "colour": "green", "rows": [{"label": "pens", "count": 3}]},
    permission="expense.report.manage",
    set={"number": "next:SAMPLE"},
    events=("sample.form.written",),
    map={
        "title": "title",
        "amount_minor": "total_minor",
        "period": "period",
        "currency": "currency",
    },
)
