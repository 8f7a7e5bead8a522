"""The commands of this turn, in both forms in which a loop offers them (RUN-93)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from app.commands.descriptors import Descriptor
from app.commands.stored import StoredDefinition
from app.kernel import i18n
from app.runs.models.planner.moves import Call, LookFirst
from app.runs.models.planner.reading import RUN, SEARCH, Purpose, Scene

FOUND_AT_MOST = 5  # so that the whole answer is seen


@dataclass(slots=True)
class Commands:
    """What may be called now, by tool or by `run_command`."""

    scene: Scene
    known: dict[str, Descriptor]
    tools: dict[str, str]
    is_large: bool

    @property
    def all(self) -> list[Descriptor]:
        """Every command that is known, by code."""
        return [self.known[code] for code in sorted(self.known)]

    def find(self, code: str) -> Descriptor | None:
        """The command with this code; searched for where only some are listed.

        Raises:
            LookFirst: the search was not made yet.
        """
        if code not in self.known and self.is_large:
            self.search(code.replace(".", " "))
        return self.known.get(code)

    def search(self, query: str) -> None:
        """Take in what the search finds.

        Raises:
            LookFirst: it was not made yet.
        """
        arguments = {"query": query[:200], "limit": FOUND_AT_MOST}
        answers = self.scene.results(SEARCH, arguments)
        if not answers:
            raise LookFirst(Call(SEARCH, arguments, Purpose.LOOK))
        for told in _listed(answers[-1]):
            if (found := of_wire(told)) is not None:
                self.known.setdefault(found.code, found)

    def call(self, command: Descriptor, arguments: Mapping[str, Any], purpose: Purpose) -> Call:
        """A call of a command, in the form that is offered."""
        if (tool := self.tools.get(command.code)) is not None:
            return Call(tool, arguments, purpose)
        return Call(RUN, {"code": command.code, "arguments": dict(arguments)}, purpose)

    def called(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """The code and the input of a call that was made."""
        if tool == RUN:
            return str(arguments.get("code", "")), arguments.get("arguments") or {}
        codes = {name: code for code, name in self.tools.items()}
        return codes.get(tool, tool.replace("-", ".")), arguments


def of(scene: Scene) -> Commands:
    """The commands of an ask, and those that searches of this turn's request found."""
    offered = [each for each in scene.ask.tools if each.descriptor is not None]
    known = {each.descriptor.code: each.descriptor for each in offered if each.descriptor}
    tools = {each.descriptor.code: each.name for each in offered if each.descriptor}
    made = Commands(scene, known, tools, any(each.name == RUN for each in scene.ask.tools))
    for step in scene.all_steps:
        if step.tool == SEARCH:
            for told in _listed(step.result):
                if (found := of_wire(told)) is not None:
                    known.setdefault(found.code, found)
    return made


def of_wire(told: Mapping[str, Any]) -> Descriptor | None:
    """A command as a search told it: in one language, and without what is not for readers."""
    text = {"en": str(told.get("displayName", "")), "zh-CN": str(told.get("displayName", ""))}
    hint = {"en": str(told.get("description", "")), "zh-CN": str(told.get("description", ""))}
    try:
        definition = StoredDefinition.model_validate(
            {
                "code": told.get("code"),
                "pack": "",
                "display_name": text,
                "description": {"en": "", "zh-CN": ""},
                "agent_hint": hint,
                "risk": told.get("riskLevel"),
                "idempotent": bool(told.get("idempotent")),
                "reversible": bool(told.get("reversible")),
                "undo": told.get("undoCommand"),
                "record": told.get("record"),
                "operation": told.get("operation"),
                "targeted": "targetRecordId" in told.get("inputSchema", {}).get("properties", {}),
                "input_schema": told.get("inputSchema") or {},
                "example": told.get("exampleInput") or {},
                "permission": "",
                "tags": tuple(told.get("tags") or ()),
                "people_only": bool(told.get("peopleOnly")),
            }
        )
    except ValidationError:
        return None
    return Descriptor(definition, int(told.get("version") or 0), definition.content_hash)


def name(command: Descriptor) -> str:
    """What people call it, in the language that is spoken."""
    return command.definition.display_name.in_(i18n.language())


def _listed(result: Any) -> Iterator[Mapping[str, Any]]:
    """Every command in a result, wherever it stands."""
    if isinstance(result, Mapping):
        if "code" in result and "inputSchema" in result:
            yield result
        else:
            for each in result.values():
                yield from _listed(each)
    elif isinstance(result, Sequence) and not isinstance(result, str):
        for each in result:
            yield from _listed(each)
