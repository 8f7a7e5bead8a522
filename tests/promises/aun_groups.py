"""What we promise about groups, and about what of them reaches an agent's model."""

from tests.promises.requirement import Requirement

PROMISES = {
    "AUN-15": Requirement(
        "In a group whose agents are shown only what names them, the channel holds the rest back "
        "before any model; it stays in the conversation.",
        source="spec/aun.md, 1.1 and 6.4",
    ),
    "AUN-16": Requirement(
        "A message held back from an agent is not read by it: no position of its moves.",
        source="spec/aun.md, 1.1",
    ),
    "AUN-17": Requirement(
        "Being named in a group obliges nobody to answer, and silence is no fault.",
        source="spec/aun.md, 1.1",
    ),
}
