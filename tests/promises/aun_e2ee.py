"""Promises of messages that come and go encrypted."""

from tests.promises.requirement import Requirement

PROMISES = {
    "AUN-5": Requirement(
        "A message nobody here can decrypt is kept as unreadable, with the reason, and never lost.",
        source="spec/aun.md, 1.1",
    ),
}
