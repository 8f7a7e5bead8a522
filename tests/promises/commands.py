"""Promises about the one way in which business data changes."""

from tests.promises.requirement import Requirement

_STAGES = "spec/commands.md, 3"
_KEYS = "spec/commands.md, 5"
_FAULTS = "spec/commands.md, 11"

PROMISES = {
    "CMD-6": Requirement(
        "Whoever calls passes the same twenty stages; nothing else writes a governed record.",
        source=_STAGES,
    ),
    "CMD-9": Requirement(
        "A keyed call is done once; its repeat gets the first answer, while who asks may have it.",
        source=_KEYS,
    ),
    "CMD-10": Requirement(
        "An agent cannot write without a key, unless a repeat does no harm.", source=_KEYS
    ),
    "CMD-F1": Requirement(
        "Who lost access to a record does not read an old answer by its key.", source=_FAULTS
    ),
    "CMD-F2": Requirement(
        "A handler that breaks leaves nothing but its refusal on record.", source=_FAULTS
    ),
    "CMD-F3": Requirement(
        "What a handler returns cannot point a call to another record.", source=_FAULTS
    ),
    "CMD-F4": Requirement("A row may keep the unique value it has.", source=_FAULTS),
    "CMD-F5": Requirement(
        "Being allowed to read a record is not being allowed to run a command on it.",
        source=_FAULTS,
    ),
    "CMD-F6": Requirement(
        "Without a target nothing is changed or deleted, and the caller is told.", source=_FAULTS
    ),
    "CMD-F7": Requirement(
        "A deletion that does not say so is refused, not quietly done or left undone.",
        source=_FAULTS,
    ),
    "CMD-F12": Requirement("The order of members makes no other call.", source=_FAULTS),
    "CMD-F15": Requirement(
        "The same call twice, without a key, is meant twice and done twice.", source=_FAULTS
    ),
    "CMD-F23": Requirement(
        "A call uses one version of its command to its end, and says which.", source=_FAULTS
    ),
    "CMD-F25": Requirement(
        "When the clock is set back, the trail's numbers and chain go on.", source=_FAULTS
    ),
    "CMD-F27": Requirement(
        "Who repeats a keyed call after a crash gets the answer, not a second effect.",
        source=_FAULTS,
    ),
}
