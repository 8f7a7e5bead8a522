"""What a caller may know of a command: the same words on every door, and nothing of its insides.

A descriptor is made from a published version alone (CMD-23): no handler, stage, SQL or other
tenant's code can stand in one.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from app.commands.stored import StoredDefinition
from app.identity.search import folded
from app.kernel.i18n import DEFAULT, LANGUAGES


@dataclass(frozen=True)
class Descriptor:
    """One command of a catalogue.

    Attributes:
        content_hash: of the definition; with the version it says which words these are.
    """

    definition: StoredDefinition
    version: int
    content_hash: str
    _said: dict[str, dict[str, Any]] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def search(self) -> str:
        """What a search looks through: code, names, hints and tags, in both languages."""
        told = self.definition
        texts = (told.display_name, told.description, told.agent_hint)
        words = [word for text in texts for word in (text.en, text.zh)]
        return folded(told.code, *words, *told.tags)

    @property
    def code(self) -> str:
        """The command's code."""
        return self.definition.code

    def data(self, language: str) -> dict[str, Any]:
        """By the names of the wire, texts in `language`; what is inside its fields is shared."""
        tag = language if language in LANGUAGES else DEFAULT
        said = self._said.get(tag)
        if said is None:
            said = self._said[tag] = self._wire(tag)
        return dict(said)

    def _wire(self, language: str) -> dict[str, Any]:
        told = self.definition
        return {
            "cmdCode": told.code,
            "displayName": told.display_name.in_(language),
            "description": told.description.in_(language),
            "agentHint": told.agent_hint.in_(language),
            "riskLevel": told.risk.value,
            "idempotent": told.idempotent,
            "reversible": told.reversible,
            "undoCommand": told.undo,
            "inputSchema": told.input_schema,
            "exampleInput": told.example,
            "requiredFeature": told.feature,
            "outputSchema": told.output_schema,
            "record": told.record,
            "operation": told.operation.value,
            "version": self.version,
            "tags": list(told.tags),
            "needsApproval": told.needs_approval,
            "approvers": {"permission": told.approvers.permission} if told.approvers else None,
            "peopleOnly": told.people_only,
        }
