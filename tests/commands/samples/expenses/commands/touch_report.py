"""`sample.report.touch`: says no at whichever stage its title names."""

from typing import Any

from pydantic import Field
from sqlalchemy import text

from app.commands.context import Context
from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    PostAction,
    Risk,
    RollUp,
    Rule,
    Rules,
    SideEffect,
    SodRule,
    Text,
    Told,
)
from app.commands.errors import Rejected
from app.packs.expenses.models import Report

BREAKS = "string(1 / 0)"


class Touch(Input):
    title: str = Field(max_length=200, description="The new title; some words make a stage fail.")
    note: str = Field("", max_length=500, description="A note.")
    other_id: str = Field("", max_length=26, description="Another report, by its id.")


def says(en: str) -> Text:
    return Text(en=en, zh=f"中文:{en}")


def handle(ctx: Context) -> dict[str, Any] | None:
    match ctx.input.title:
        case "handler rejects":
            raise Rejected("not_today", says="Not today.")
        case "handler breaks":
            raise RuntimeError("a secret of the code")
        case "handler sql":
            ctx.work.session.execute(text("SELECT nothing FROM nowhere"))
        case "handler other":
            return {"targetRecordId": ctx.input.other_id, "id": ctx.input.other_id}
    return {"touched": ctx.input.title}


COMMAND = CommandDefinition(
    code="sample.report.touch",
    display_name=says("Touch report"),
    description=says("Gives a report another title."),
    agent_hint=says("Use to try the stages; sample.report.touch again takes it back."),
    risk=Risk.L2,
    idempotent=False,
    reversible=True,
    undo="sample.report.touch",
    undo_input={
        "title": "before.title",
        "note": f"input.title == 'undo breaks' ? {BREAKS} : before.note",
    },
    record=Report,
    operation=Operation.UPDATE,
    input=Touch,
    example={"title": "October"},
    permission="expense.report.manage",
    sod=(SodRule(conflicts_with="sample.report.guard"),),
    rules=Rules(
        asserts=(Rule(expr="input.title != 'assert'", message=says("No assert.")),),
        pre_invariants=(
            Rule(expr="input.title != 'pre' || record.note == 'x'", message=says("Not before.")),
        ),
        cross_field=(
            Rule(
                expr="input.title != 'cross' || input.note != ''",
                message=says("With this title, write a note."),
                pointers=("/note", "/title"),
            ),
        ),
        post_invariants=(Rule(expr="record.title != 'post'", message=says("Not afterwards.")),),
    ),
    map={"title": "title", "note": "note"},
    computed={"reason": f"input.title == 'computed' ? {BREAKS} : record.reason"},
    handler=handle,
    side_effects=(
        SideEffect(
            record="expense.report",
            operation="update",
            id="input.other_id",
            set={"title": "'side of ' + input.title"},
            when=f"input.title == 'side' || (input.title == 'side breaks' && {BREAKS} == '')",
        ),
    ),
    roll_ups=(
        RollUp(
            into="expense.budget.approved_minor",
            via="budget_id",
            sum_of="expense.report.total_minor",
            where={"state": ("approved",)},
        ),
    ),
    post_actions=(
        PostAction(
            code="sample.report.guard",
            input={
                "targetRecordId": "record.id",
                "operationType": "'UPDATE'",
                "word": f"input.note == 'word breaks' ? {BREAKS} : input.note",
            },
            when=f"input.title == 'follow' || (input.title == 'follow breaks' && {BREAKS} == '')",
        ),
    ),
    events=(
        Told(
            type="sample.report.touched",
            data={"title": f"input.title == 'told breaks' ? {BREAKS} : record.title"},
        ),
    ),
)
