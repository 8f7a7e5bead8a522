"""Promises about messages between two parties: stored is sent, and nobody owes an answer."""

from tests.promises.requirement import Requirement

_BEHAVIOUR = "spec/aun.md, 1.1"

PROMISES = {
    "AUN-1": Requirement("A message is sent when it is stored; nothing waits after.", _BEHAVIOUR),
    "AUN-2": Requirement(
        "None, one or many replies, in any order and however late, are all the same.", _BEHAVIOUR
    ),
    "AUN-3": Requirement("No fault, retry or alarm ever follows from silence.", _BEHAVIOUR),
    "AUN-5": Requirement("Every message for a hosted party is kept, exactly once.", _BEHAVIOUR),
    "AUN-8": Requirement("A thought is shown to one party and is never a message.", _BEHAVIOUR),
    "AUN-9": Requirement("An agent may send none, several, late or unasked messages.", _BEHAVIOUR),
    "AUN-10": Requirement("Nobody can demand a reply: there is no switch for it.", _BEHAVIOUR),
    "AUN-14": Requirement(
        "A tool call inside a message is a picture; nothing here carries it out.", _BEHAVIOUR
    ),
}
