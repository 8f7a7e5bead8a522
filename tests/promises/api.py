"""What we promise about the HTTP API: its door, its description, and what nobody can make it do."""

from tests.promises.requirement import Requirement

_HTTP, _FAULTS = "spec/commands.md, 4", "spec/commands.md, 11"

PROMISES = {
    "CMD-7": Requirement(
        "Programs list commands, run them and look up what became of a call; every operation is "
        "described whole, with schemas, examples and refusals.",
        source=_HTTP,
    ),
    "CMD-8": Requirement(
        "A refusal says where, why and what to do next, in codes that stay and in the reader's "
        "language, and nothing of our insides.",
        source=_HTTP,
    ),
    "CMD-26": Requirement(
        "Who made a call finds out what became of it, by an id that they may choose; a call whose "
        "maker lost its work leaves nothing.",
        source=_HTTP,
    ),
    "CMD-F18": Requirement(
        "An id of another tenant is unknown wherever it is put, in every request that can be made.",
        source=_FAULTS,
    ),
    "CMD-F20": Requirement(
        "A token that is still good opens nothing once its user is gone.", source=_FAULTS
    ),
    "CMD-F21": Requirement(
        "No id and no number that a reader could get wrong leaves as a number.", source=_FAULTS
    ),
    "CMD-F25": Requirement(
        "When the clock is set back, the trail stays in order and without gaps.", source=_FAULTS
    ),
    "CMD-F28": Requirement(
        "Huge, deep and odd input is refused at the door, and nothing of it is stored.",
        source=_FAULTS,
    ),
    "SEC-51": Requirement(
        "An agent that calls too often waits; one that writes too often is paused, and both it "
        "and its user are told.",
        source="spec/security.md, 6",
    ),
}
