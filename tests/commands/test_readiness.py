"""A definition that is not ready is not published, and its author reads why in both languages."""

from typing import Any

import pytest
from pydantic import ConfigDict, Field

from app.commands import readiness
from app.commands.definition import (
    Approvers,
    Input,
    Operation,
    PostAction,
    Risk,
    Rule,
    Rules,
    SideEffect,
    SodRule,
    Text,
    Told,
    Transition,
)
from app.commands.readiness import Finding, Known, Severity
from app.commands.stored import StoredDefinition
from tests.commands.declaring import SEE, Ticket, command, declared, writing

MESSAGE = Text(en="No.", zh="不行。")


class Undescribed(Input):
    subject: str
    size: int = Field(1, description="How big.")


class Loose(Input):
    model_config = ConfigDict(**{**Input.model_config, "extra": "allow"})
    subject: str = Field(description="What it is about.")


def findings(told: Any, *others: Any) -> list[Finding]:
    with declared(told, *others):
        stored = {each.code: StoredDefinition.of(each, "desk") for each in (told, *others)}
        return readiness.check(stored[told.code], Known.of(stored, stored))


def found(told: Any, *others: Any) -> dict[str, str]:
    """What was found: its code -> the field it stands at."""
    return {each.code: each.field for each in findings(told, *others)}


def rule(expr: str, stage: str = "asserts") -> Rules:
    return Rules(**{stage: (Rule(expr=expr, message=MESSAGE),)})


def test_what_is_ready_has_no_findings() -> None:
    close = writing(
        "desk.ticket.close",
        record=Ticket,
        operation=Operation.TRANSITION,
        transition=Transition(from_=("open",), to="closed"),
        reversible=True,
        undo="desk.ticket.reopen",
        agent_hint=Text(
            en="When it is solved; desk.ticket.reopen takes it back.",
            zh="问题解决后使用；可用 desk.ticket.reopen 撤销。",
        ),
        related=("notes",),
        map={"subject": "subject"},
        rules=Rules(
            asserts=(Rule(expr="size(related.notes) > 0", message=MESSAGE),),
            post_invariants=(Rule(expr="record.version > before.version", message=MESSAGE),),
        ),
        events=(Told(type="desk.ticket.closed", data={"by": "user.id"}),),
    )
    reopen = writing("desk.ticket.reopen")

    assert findings(command()) == []
    assert findings(close, reopen) == []


@pytest.mark.requirement("CMD-2")
def test_every_rule_of_the_check_has_its_finding() -> None:
    hint = Text(en="To take a note.", zh="需要记录时使用。")
    l4 = {"risk": Risk.L4, "permission": "desk.ticket.decide"}
    cases: list[tuple[Any, tuple[Any, ...], str, str]] = [
        (command(agent_hint=Text(en=" ", zh="记录。")), (), "text_missing", "agent_hint"),
        (command(agent_hint=Text(en="Note.", zh="Note.")), (), "text_not_translated", "agent_hint"),
        (command(agent_hint=Text(en="x" * 301, zh="记录。")), (), "hint_too_long", "agent_hint"),
        (
            writing(reversible=True, undo="desk.ticket.drop", agent_hint=hint),
            (writing("desk.ticket.drop"),),
            "hint_without_undo",
            "agent_hint",
        ),
        (
            command(
                record=Ticket,
                targeted=True,
                agent_hint=Text(en="Send targetRecordId.", zh="填写编号。"),
            ),
            (),
            "hint_repeats_schema",
            "agent_hint",
        ),
        (writing(risk=Risk.L2, webhooks=("desk.told",)), (), "risk_too_low", "risk"),
        (
            writing(side_effects=(SideEffect(record="desk.ticket", operation="create", set={}),)),
            (),
            "risk_too_low",
            "risk",
        ),
        (command(operation=Operation.ACTION), (), "risk_too_low", "risk"),
        (writing(**l4, previewable=False), (), "l4_not_previewable", "risk"),
        (
            writing(**l4, reversible=True, undo="desk.ticket.note"),
            (),
            "l4_reversible",
            "reversible",
        ),
        (command(reversible=False), (), "l0_irreversible", "reversible"),
        (writing(reversible=True), (), "undo_missing", "reversible"),
        (writing(reversible=True, undo="desk.ticket.gone"), (), "undo_unknown", "reversible"),
        (
            writing(
                risk=Risk.L2,
                reversible=True,
                undo="desk.ticket.note",
                post_actions=(PostAction(code="desk.ticket.pay"),),
            ),
            (writing("desk.ticket.pay", **l4),),
            "approval_bypassed",
            "risk",
        ),
        (writing(permission=SEE.code), (command(),), "permission_shared", "permission"),
        (command(permission="desk.nothing"), (), "permission_unknown", "permission"),
        (command(feature="desk.nothing"), (), "feature_unknown", "feature"),
        (
            writing(approvers=Approvers(permission="desk.nothing")),
            (),
            "permission_unknown",
            "approvers",
        ),
        (writing(sod=(SodRule(conflicts_with="desk.ticket.gone"),)), (), "command_unknown", "sod"),
        (command(input=Undescribed), (), "undescribed", "input"),
        (command(input=Loose), (), "open_schema", "input"),
        (command(example={"subject": ""}), (), "example_invalid", "example"),
        (command(example={}), (), "example_invalid", "example"),
        (command(example={"subject": "x", "more": 1}), (), "example_invalid", "example"),
        (writing(operation=Operation.UPDATE), (), "record_missing", "record"),
        (
            writing(record=Ticket, operation=Operation.TRANSITION),
            (),
            "transition_missing",
            "transition",
        ),
        (
            writing(
                record=Ticket,
                operation=Operation.TRANSITION,
                transition=Transition(from_=("closed",), to="closed"),
            ),
            (),
            "transition_unknown",
            "transition",
        ),
        (writing(record=Ticket, map={"nothing": "subject"}), (), "input_unknown", "map"),
        (writing(record=Ticket, map={"subject": "nothing"}), (), "column_unknown", "map"),
        (writing(record=Ticket, map={"subject": "owner_id"}), (), "column_of_platform", "map"),
        (writing(record=Ticket, related=("lines",)), (), "related_unknown", "related"),
        (
            writing(rules=Rules(asserts=(Rule(expr="true", message=Text(en="No.", zh="")),))),
            (),
            "message_missing",
            "rules",
        ),
    ]
    missed = [
        (code, field, found(told, *others))
        for told, others, code, field in cases
        if found(told, *others).get(code) != field
    ]

    assert missed == []


@pytest.mark.requirement("CMD-1")
def test_an_expression_that_does_not_compile_or_reads_what_is_not_there_is_an_error() -> None:
    bad = {
        "input.subject +": "expression_invalid",
        "input.subject = 'x'": "expression_invalid",
        "open('/etc/passwd') == 1": "expression_invalid",
        "secret.key == 1": "expression_invalid",
        "before.version == 1": "expression_reads_unknown",
        "size(related.notes) > 0": "expression_reads_unknown",
    }

    assert {expr: list(found(command(rules=rule(expr)))) for expr in bad} == {
        expr: [code] for expr, code in bad.items()
    }
    assert found(writing(computed={"subject": "1 +"}, record=Ticket)) == {
        "expression_invalid": "computed"
    }


@pytest.mark.requirement("CMD-F19")
def test_names_that_are_the_same_without_dots_are_an_error() -> None:
    told = found(command("desk.ticket_list"), command("desk.ticket.list"))

    assert told["name_clash"] == "code"
    assert "name_clash" not in found(command("desk.ticket_lists"), command("desk.ticket.list"))


@pytest.mark.requirement("CMD-2")
def test_a_finding_is_read_in_both_languages_and_says_how_bad_it_is() -> None:
    told = findings(command(example={}, approval_ttl_s=60))
    said = [each.data() for each in told]

    assert [each["severity"] for each in said] == [Severity.ERROR, Severity.WARNING]
    assert "The example is no valid input" in said[0]["says"]["en"]
    assert "示例" in said[0]["says"]["zh-CN"]
    assert [each.code for each in readiness.errors(told)] == ["example_invalid"]
