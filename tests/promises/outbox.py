"""Promises of what is told after the commit (commands.md, 3 and 9)."""

from tests.promises.requirement import Requirement

PROMISES = {
    "CMD-24": Requirement(
        "What a call tells is written in its own commit and delivered at least once, in order for "
        "each record, signed, with a stable id; what cannot be delivered is seen and sent again.",
        source="spec/commands.md, 9",
    ),
    "CMD-27": Requirement(
        "An effect outside never holds a transaction, is never repeated when it may have happened, "
        "and what came of it is a second entry of the same call.",
        source="spec/commands.md, 4",
    ),
    "UI-13": Requirement(
        "Of an effect that may have happened a person is asked to find out: what was sent, where, "
        "when and about which record; there are two answers, and no way to send it again.",
        source="spec/console.md, 1",
    ),
    "CMD-F9": Requirement(
        "An SQL error in a computed field or the outbox takes the whole call back.",
        source="spec/commands.md, 11",
    ),
    "CMD-F11": Requirement(
        "A preview leaves no row, number, event, webhook, mail or audit entry behind.",
        source="spec/commands.md, 11",
    ),
    "CMD-F26": Requirement(
        "A receiver that is down for an hour gets everything in order afterwards, and no business "
        "call was slowed by it.",
        source="spec/commands.md, 11",
    ),
}
