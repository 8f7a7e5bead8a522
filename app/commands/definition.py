"""What a command is: data that an auditor can read, immutable once published (commands.md, 1).

A pack declares a definition in Python, beside its handler; an administrator may author one on top.
Both become the same stored JSON (`stored.py`); everything a reader sees comes from there.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.json_schema import GenerateJsonSchema

from app.commands.governed import GovernedRecord

Code = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$", max_length=128)
]
Expression = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
SECRET = {"x-secret": True}  # `json_schema_extra` of an input field that no reader may see (CMD-20)
LONGEST_APPROVAL_S = 86_400


class Risk(StrEnum):
    """What is at stake; the order is that of the levels."""

    L0 = "L0"  # reads only
    L1 = "L1"  # writes one record
    L2 = "L2"  # writes several records, or starts a process
    L3 = "L3"  # has an effect outside
    L4 = "L4"  # cannot be recovered from, or is critical

    @property
    def level(self) -> int:
        """0 to 4."""
        return int(self.value[1])


class Operation(StrEnum):
    """What happens to the target record."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    TRANSITION = "transition"
    READ = "read"
    ACTION = "action"
    EXTERNAL = "external"


TARGETED = frozenset({Operation.UPDATE, Operation.DELETE, Operation.TRANSITION})


class Part(BaseModel):
    """A piece of a definition."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Text(Part):
    """The same in both languages."""

    en: str
    zh: str = Field(validation_alias="zh-CN", serialization_alias="zh-CN")

    def in_(self, language: str) -> str:
        """The text for a reader of `language` (`en`, `zh-CN`)."""
        return self.zh if language.startswith("zh") else self.en


class Input(BaseModel):
    """Base of a pack's input models; what is not in one is refused.

    Python names are snake_case; on the wire a field is its alias, camelCase by itself.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        alias_generator=lambda name: "".join(
            part if not index else part.capitalize() for index, part in enumerate(name.split("_"))
        ),
        use_enum_values=True,
    )


class Rule(Part):
    """A CEL expression that has to hold, and what to tell people when it does not."""

    expr: Expression
    message: Text
    pointers: tuple[str, ...] = ()  # of the input fields it is about: `/note`


class Rules(Part):
    """The rules of a command by the stage that asks them."""

    asserts: tuple[Rule, ...] = ()
    pre_invariants: tuple[Rule, ...] = ()
    cross_field: tuple[Rule, ...] = ()
    post_invariants: tuple[Rule, ...] = ()


class Transition(Part):
    """Where a record may stand before, and where it stands afterwards."""

    field: str = "state"
    from_: tuple[str, ...] = Field(
        validation_alias="from", serialization_alias="from", min_length=1
    )
    to: str


class SodRule(Part):
    """Who ran `conflicts_with` does not run this."""

    conflicts_with: Code
    scope: Literal["same_record", "same_model"] = "same_record"
    mode: Literal["hard", "audit"] = "hard"


class Approvers(Part):
    """Who decides when the requester may not: holders of a permission, never the requester."""

    permission: str
    exclude_requester: Literal[True] = True
    quorum: Literal[1] = 1


class SideEffect(Part):
    """Another governed record that is created, or updated, in the same transaction."""

    record: str  # its type: `inventory.move`
    operation: Literal["create", "update"]
    id: Expression | None = None  # which one to update
    set: dict[str, Expression]  # column -> CEL
    when: Expression | None = None


class RollUp(Part):
    """A parent's column that is the sum, or the number, of its children's rows."""

    into: str  # `expense.budget.submitted_minor`: record type and column
    via: str  # the child's column that holds the parent's id
    sum_of: str | None = None  # `expense.report.total_minor`
    count_of: str | None = None  # `expense.report`
    where: dict[str, tuple[str, ...]] = {}  # child's column -> the values that count

    @model_validator(mode="after")
    def _has_one_measure(self) -> Self:
        if (self.sum_of is None) == (self.count_of is None):
            raise ValueError("a roll-up has either sum_of or count_of")
        return self


class PostAction(Part):
    """A command that follows, through the same pipeline and in the same transaction."""

    code: Code
    input: dict[str, Expression] = {}  # wire name -> CEL
    when: Expression | None = None


class Told(Part):
    """Something to tell after the commit: an event's type, and CEL for what stands in it.

    Without `data` the event says which record of which type, its version and its state.
    """

    type: Code
    data: dict[str, Expression] = {}


class ApiCall(Part):
    """An HTTP call after the commit, to an address that an administrator sets by this name."""

    name: Code
    data: dict[str, Expression] = {}


Handler = Callable[[Any], dict[str, Any] | None]


class CommandDefinition(BaseModel):
    """One command as a pack declares it.

    Attributes:
        code: `noun.noun.verb`; also the name of the MCP tool.
        agent_hint: one sentence: when a person would press this button.
        record: the type of the target record, None where there is none.
        targeted: whether a call names the record it is about; by the operation unless it is said.
        permission: exactly one code; nothing undeclared is ever allowed.
        set: column -> automatic value: `now`, `user.id`, `user.org`, `id`, `next:<PREFIX>`.
        map: input field (Python name) -> column.
        computed: column -> CEL.
        undo_input: wire name -> CEL over record, before, input, result; the target fields that the
            undo command needs come by themselves.
        undo_when: CEL; where it does not hold, nothing takes this call back.
        handler: what rules cannot say; returns the result's extra fields.
        runs_alone: no other call of the tenant runs meanwhile; it waits for those under way before
            it holds anything. Not for a command that follows from another.
        previewable: False where the handler must not run for a rehearsal.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    code: Code
    display_name: Text
    description: Text
    agent_hint: Text
    risk: Risk
    idempotent: bool
    reversible: bool
    undo: Code | None = None
    undo_input: dict[str, Expression] = {}
    undo_when: Expression | None = None
    record: type[GovernedRecord] | None = None
    operation: Operation
    targeted: bool | None = None
    input: type[Input]
    output: type[BaseModel] | None = None
    example: dict[str, Any]
    permission: str
    feature: str | None = None
    people_only: bool = False
    transition: Transition | None = None
    sod: tuple[SodRule, ...] = ()
    approvers: Approvers | None = None
    approval_ttl_s: int | None = Field(default=None, ge=30, le=LONGEST_APPROVAL_S)
    related: tuple[str, ...] = ()  # lists that the record type declares (`RELATED`)
    rules: Rules = Rules()
    set: dict[str, str] = {}
    map: dict[str, str] = {}
    computed: dict[str, Expression] = {}
    handler: Handler | None = None
    runs_alone: bool = False
    previewable: bool = True
    side_effects: tuple[SideEffect, ...] = ()
    roll_ups: tuple[RollUp, ...] = ()
    post_actions: tuple[PostAction, ...] = ()
    events: tuple[Told | Code, ...] = ()
    webhooks: tuple[Told | Code, ...] = ()
    api_calls: tuple[ApiCall, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def is_targeted(self) -> bool:
        """Whether a call names the record it is about."""
        return self.operation in TARGETED if self.targeted is None else self.targeted


class _Described(GenerateJsonSchema):
    """JSON Schema 2020-12, without the titles that only repeat a name."""

    schema_dialect = "https://json-schema.org/draft/2020-12/schema"

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of an input model, by wire names."""
    made = model.model_json_schema(by_alias=True, schema_generator=_Described)
    made.pop("title", None)
    made.pop("description", None)
    return made
