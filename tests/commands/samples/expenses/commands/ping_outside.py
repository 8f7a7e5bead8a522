"""`sample.outside.ping`: an effect outside, which is still to come when the call is answered."""

from pydantic import Field

from app.commands.definition import ApiCall, CommandDefinition, Input, Operation, Risk, Text


class Ping(Input):
    word: str = Field(max_length=100, description="What is said outside.")
    card: str = Field(
        "", max_length=40, description="Who pays.", json_schema_extra={"x-secret": True}
    )


COMMAND = CommandDefinition(
    code="sample.outside.ping",
    display_name=Text(en="Ping outside", zh="向外部发送信号"),
    description=Text(en="Says a word outside.", zh="向外部系统说一个词。"),
    agent_hint=Text(
        en="Use to try outside effects; nothing undoes it.", zh="用于尝试外部操作；无法撤销。"
    ),
    risk=Risk.L3,
    idempotent=True,
    reversible=False,
    operation=Operation.EXTERNAL,
    input=Ping,
    example={"word": "hello"},
    permission="expense.report.manage",
    api_calls=(ApiCall(name="outside.ping", data={"said": "input.word", "payer": "input.card"}),),
)
