"""`sample.taxi.order`: an effect outside, done by whoever performs it, after the commit."""

from pydantic import Field

from app.commands.definition import SECRET, CommandDefinition, Input, Operation, Risk, Text


class Ride(Input):
    """Where to, and who pays."""

    to: str = Field(description="Where to.", min_length=1, max_length=200)
    card: str = Field(description="Number of the card that pays.", json_schema_extra={**SECRET})


COMMAND = CommandDefinition(
    code="sample.taxi.order",
    display_name=Text(en="Order taxi", zh="预订出租车"),
    description=Text(en="Orders a taxi at once.", zh="立即预订一辆出租车。"),
    agent_hint=Text(
        en="Use when somebody has to leave now; nothing takes it back.",
        zh="需要马上出发时使用；无法撤销。",
    ),
    risk=Risk.L3,
    idempotent=False,
    reversible=False,
    operation=Operation.EXTERNAL,
    input=Ride,
    example={"to": "Hongqiao", "card": "6222 0212"},
    permission="expense.report.manage",
    events=("sample.taxi.ordered",),
)
