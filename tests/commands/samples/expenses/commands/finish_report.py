"""`sample.report.finish`: L4; somebody else decides."""

from app.commands.definition import Approvers, CommandDefinition, Input, Operation, Risk, Text
from app.packs.expenses.models import Report


class Finish(Input):
    """Nothing but the report."""


COMMAND = CommandDefinition(
    code="sample.report.finish",
    display_name=Text(en="Finish report", zh="终结报销单"),
    description=Text(en="Finishes a report for good.", zh="彻底终结一张报销单。"),
    agent_hint=Text(en="Use to try L4; nothing takes it back.", zh="用于尝试 L4；无法撤销。"),
    risk=Risk.L4,
    idempotent=False,
    reversible=False,
    record=Report,
    operation=Operation.UPDATE,
    input=Finish,
    example={},
    permission="expense.report.manage",
    approvers=Approvers(permission="expense.report.approve"),
    set={"decided_at": "now"},
    computed={"reason": "'finished'"},
)
