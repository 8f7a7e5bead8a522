"""What we promise about how Assent is built and kept."""

from tests.promises.requirement import Requirement

PROMISES = {
    "SEC-86": Requirement(
        "No part that Assent runs on is older than the last version with a known fault.",
        source="spec/security.md, 15",
    ),
}
