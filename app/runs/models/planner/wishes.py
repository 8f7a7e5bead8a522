"""A request on its way to a call: the command, its input so far, the questions asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.commands.descriptors import Descriptor
from app.runs.models.planner.records import Found
from app.runs.models.planner.slots.filling import Filled

TEXT_KEPT = 600  # characters of the sentence that a question keeps


@dataclass(slots=True)
class Wish:
    """One request.

    Attributes:
        targets: the records it is about, once they are known.
        references: field -> the record it names.
        asked: questions so far.
    """

    command: Descriptor
    text: str
    filled: Filled
    targets: list[Found] = field(default_factory=list)
    references: dict[str, Found] = field(default_factory=dict)
    asked: int = 0

    def kept(self, kind: str, **more: Any) -> dict[str, Any]:
        """What the question keeps of it, within its 4 kB."""
        return {
            "kind": kind,
            "code": self.command.code,
            "text": self.text[:TEXT_KEPT],
            "values": {
                name: value[:200] if isinstance(value, str) else value
                for name, value in self.filled.values.items()
            },
            "targets": [each.kept() for each in self.targets[:5]],
            "references": {name: each.kept() for name, each in self.references.items()},
            "asked": self.asked + 1,
            "currency": self.filled.said_currency,
            **more,
        }


def of(command: Descriptor, kept: Mapping[str, Any]) -> Wish:
    """The request a question was about."""
    filled = Filled(values=dict(kept.get("values") or {}), said_currency=kept.get("currency"))
    return Wish(
        command,
        str(kept.get("text", "")),
        filled,
        targets=[Found.of(each, "") for each in kept.get("targets") or ()],
        references={
            name: Found.of(each, "") for name, each in (kept.get("references") or {}).items()
        },
        asked=int(kept.get("asked") or 0),
    )
