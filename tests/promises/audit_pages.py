"""What we promise about reading the audit: its pages, its filters, its exports."""

from tests.promises.requirement import Requirement

COMMANDS, CONSOLE, SECURITY = "spec/commands.md", "spec/console.md", "spec/security.md"

PROMISES = {
    "CMD-7": Requirement(
        "Programs read, export and verify the trail over HTTP, with the rights of their user.",
        source=f"{COMMANDS}, 4",
    ),
    "CMD-21": Requirement(
        "Every question about who did what, for whom, with which model, and who allowed it, is a "
        "filter; views ship for the usual ones, people keep their own, and exports show the same.",
        source=f"{COMMANDS}, 7",
    ),
    "SEC-54": Requirement(
        "An exported CSV opens in a spreadsheet without computing anything.",
        source=f"{SECURITY}, 6",
    ),
    "SEC-79": Requirement(
        "An export repeats its filters and the head of the chain; who exported is on record.",
        source=f"{SECURITY}, 10",
    ),
    "SEC-T21": Requirement(
        "No text in an exported file is a formula: signs, tabs, wide forms, quotes, new lines.",
        source=f"{SECURITY}, 12",
    ),
    "UI-20": Requirement(
        "The audit answers by filter alone, and an export has exactly the filters on screen.",
        source=f"{CONSOLE}, 1",
    ),
    "UI-108": Requirement(
        "A chart has its table beside it, drawn from the same numbers.",
        source=f"{CONSOLE}, 11",
    ),
    "CON-98": Requirement(
        "List, entry and files tell one moment the same way, and name its zone.",
        source=f"{CONSOLE}, 8",
    ),
}
