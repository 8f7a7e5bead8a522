"""`sample.report.guard`: what follows another command, and what separates duties from it."""

from pydantic import Field

from app.commands.definition import CommandDefinition, Input, Operation, Risk, Rule, Rules, Text
from app.packs.expenses.models import Report


class Guard(Input):
    word: str = Field(max_length=100, description="`no` is refused.")


COMMAND = CommandDefinition(
    code="sample.report.guard",
    display_name=Text(en="Guard report", zh="看护报销单"),
    description=Text(en="Writes a word on a report.", zh="在报销单上写一句话。"),
    agent_hint=Text(
        en="Use to follow; sample.report.touch takes it back.", zh="sample.report.touch 可撤销。"
    ),
    risk=Risk.L1,
    idempotent=True,
    reversible=True,
    undo="sample.report.touch",
    undo_input={"title": "before.title"},
    record=Report,
    operation=Operation.UPDATE,
    input=Guard,
    example={"word": "yes"},
    permission="expense.report.manage",
    rules=Rules(
        asserts=(
            Rule(expr="input.word != 'no'", message=Text(en="Not this word.", zh="不能用这个词。")),
        )
    ),
    map={"word": "note"},
)
