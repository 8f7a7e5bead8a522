"""What the loop knows of a tool; a framework tool is a file in `toolbox/`, ending in `TOOL`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from app.commands.descriptors import Descriptor
from app.runs.outcome import InCommit, ProposedCall, Result, Suspended
from app.runs.states import CallKind

if TYPE_CHECKING:
    from app.runs.session import RunSession

Ran = Result | Suspended | InCommit


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool of a turn.

    Attributes:
        name: as the model calls it.
        schema: of its arguments; JSON Schema, never with a `$ref` that is fetched.
        waits: it waits or ends: alone in its batch (RUN-32).
        effect: `external` and not read-only: an outcome that is lost is unknown (RUN-88).
        descriptor: of a command.
        reaches: the command that given arguments reach, of a tool that runs any (`run_command`).
        run: does it; no transaction is open meanwhile.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    run: "Callable[[RunSession, Prepared], Awaitable[Ran]]"
    kind: CallKind = CallKind.FRAMEWORK
    waits: bool = False
    effect: Literal["none", "local", "external"] = "none"
    parallel_safe: bool = False
    descriptor: Descriptor | None = None
    reaches: Callable[[Mapping[str, Any]], Descriptor | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A call whose arguments were read; nothing was written yet (RUN-34).

    Attributes:
        arguments: None where they are not one JSON object; `fault` says why.
        redacted: a copy without secrets, for the record.
        command: code and version of the command it reaches (also by `run_command`).
        attempt: 1, or 2 after it waited for a person.
        has_waited: permitted before it waited, and not asked again (RUN-89).
    """

    call: ProposedCall
    tool: Tool
    arguments: Mapping[str, Any] | None
    redacted: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""
    fault: str = ""
    descriptor: Descriptor | None = None
    attempt: int = 1
    approval_id: str | None = None
    has_waited: bool = False

    @property
    def may_hold_secrets(self) -> bool:
        """Whether what it was sent may hold what a command calls secret."""
        if self.descriptor is None:
            return self.tool.kind == CallKind.COMMAND
        return bool(self.descriptor.definition.secrets)

    @property
    def given(self) -> Mapping[str, Any]:
        """The arguments of a call that was permitted."""
        if self.arguments is None:
            raise RuntimeError("a call without readable arguments is not permitted")
        return self.arguments

    @property
    def command_call_id(self) -> str:
        """The pipeline's call id of this attempt: the trail is asked by it (RUN-66)."""
        return f"{self.call.id}.{self.attempt}"
