"""`sample.report.person`: for people alone; idempotent, so that a key is optional."""

from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.packs.expenses.models import Report


class Person(Input):
    """Nothing but the report."""


COMMAND = CommandDefinition(
    code="sample.report.person",
    display_name=Text(en="Sign report", zh="签署报销单"),
    description=Text(en="Signs a report by hand.", zh="亲手签署一张报销单。"),
    agent_hint=Text(
        en="Use by hand; sample.report.touch takes it back.",
        zh="本人使用；sample.report.touch 可撤销。",
    ),
    risk=Risk.L1,
    idempotent=True,
    reversible=True,
    undo="sample.report.touch",
    undo_input={"title": "before.title"},
    record=Report,
    operation=Operation.UPDATE,
    input=Person,
    example={},
    permission="expense.report.manage",
    people_only=True,
    set={"decided_by": "user.id"},
)
