"""What we promise about how Assent is built and kept."""

from tests.promises.requirement import Requirement

PROMISES = {
    "SEC-85": Requirement(
        "What is installed is compared with known faults without asking anybody.",
        source="spec/security.md, 14",
    ),
    "SEC-86": Requirement(
        "No part that Assent runs on is older than the last version with a known fault.",
        source="spec/security.md, 15",
    ),
}
