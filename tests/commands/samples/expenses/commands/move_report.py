"""`sample.report.move`: a transition that an entitlement opens."""

from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    Risk,
    Text,
    Transition,
)
from app.packs.expenses.models import Report


class Move(Input):
    """Nothing but the report."""


COMMAND = CommandDefinition(
    code="sample.report.move",
    display_name=Text(en="Move report", zh="移动报销单"),
    description=Text(en="Moves a draft on.", zh="把草稿往前推进。"),
    agent_hint=Text(
        en="Use to try transitions; sample.report.touch is named as its undo.",
        zh="用于尝试状态变化；撤销用 sample.report.touch。",
    ),
    risk=Risk.L1,
    idempotent=True,
    reversible=True,
    undo="sample.report.touch",
    undo_input={"title": "before.title"},
    record=Report,
    operation=Operation.TRANSITION,
    input=Move,
    example={},
    permission="expense.report.manage",
    feature="expense.payments",
    transition=Transition(from_=("draft",), to="submitted"),
    set={"submitted_at": "now", "submitted_by": "user.id"},
)
