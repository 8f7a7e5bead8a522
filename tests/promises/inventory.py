"""What we promise about the warehouse."""

from tests.promises.requirement import Requirement

COMMANDS = "spec/commands.md"

PROMISES = {
    "CMD-5": Requirement(
        "A call that is refused, wherever in it, leaves the database as it was.",
        source=f"{COMMANDS}, 3",
    ),
    "CMD-11": Requirement(
        "What reaches outside, or cannot be taken back, waits for a person's word.",
        source=f"{COMMANDS}, 6",
    ),
    "CMD-16": Requirement(
        "What runs has the effect that was shown; where that has changed, it is asked anew.",
        source=f"{COMMANDS}, 6",
    ),
    "CMD-25": Requirement(
        "The packs that ship have every command of their table; stock is never negative, whoever "
        "books at once, and no agent finds or runs a command of the workspace.",
        source=f"{COMMANDS}, 10",
    ),
    "CMD-F8": Requirement(
        "What was created is there at once, under the id in the answer.",
        source=f"{COMMANDS}, 11",
    ),
    "CMD-F10": Requirement(
        "Of many at once on one record, what fits is done and the rest is refused for a reason.",
        source=f"{COMMANDS}, 11",
    ),
    "CMD-F18": Requirement(
        "Another tenant's id is as unknown as one that nobody has, whichever field names it.",
        source=f"{COMMANDS}, 11",
    ),
}
