"""Promises of the pages from which people run commands."""

from tests.promises.requirement import Requirement

PROMISES = {
    "UI-16": Requirement(
        "A refusal says where and why in your language, and what to do next.",
        source="spec/console.md, 1",
    ),
    "UI-17": Requirement(
        "A lost answer is looked up; no page sends a call a second time by itself.",
        source="spec/console.md, 1",
    ),
    "UI-18": Requirement(
        "Risk, undo and whether repeating is safe stand wherever a command can be started.",
        source="spec/console.md, 1",
    ),
    "UI-19": Requirement(
        "What takes a call back is named before, and offered on the receipt while it is possible.",
        source="spec/console.md, 1",
    ),
    "UI-21": Requirement(
        "The catalogue shows what you may call and counts what is hidden; names are for "
        "administrators.",
        source="spec/console.md, 1",
    ),
    "UI-22": Requirement(
        "Your own risky call asks for the same assent as an agent's.", source="spec/console.md, 1"
    ),
    "UI-83": Requirement(
        "A receipt shows the record, what changed, the audit entry and the way back.",
        source="spec/console.md, 5.7",
    ),
    "UI-103": Requirement(
        "Every command has a form made from its schema, whose errors land at their fields.",
        source="spec/console.md, 7.1",
    ),
    "CMD-22": Requirement(
        "An administrator sees which layer takes a command out of somebody's catalogue.",
        source="spec/commands.md, 8",
    ),
}
