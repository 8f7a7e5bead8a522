"""Promises about the names, keys and certificates of messaging."""

from tests.promises.requirement import Requirement

_BEHAVIOUR = "spec/aun.md, 1.1"

PROMISES = {
    "AUN-6": Requirement("No card of an agent promises that it answers.", _BEHAVIOUR),
    "AUN-7": Requirement("Cards say that agents are autonomous, for display only.", _BEHAVIOUR),
    "SEC-30": Requirement(
        "A token of the messaging door proves an outside party there and opens nothing else.",
        "spec/security.md, 4",
    ),
    "SEC-46": Requirement(
        "Names of AIDs are answered for the paths of messaging alone.", "spec/security.md, 6"
    ),
}
