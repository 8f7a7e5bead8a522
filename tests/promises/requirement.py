"""What a promise is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """A promise, in words a customer would sign."""

    says: str
    source: str
    waits_for: str = ""  # an issue; empty as soon as a test carries the id
