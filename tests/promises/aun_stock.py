"""Promises that a stock client and a person in the browser prove together."""

from tests.promises.requirement import Requirement

BEHAVIOUR = "spec/aun.md, 1.1"
PAGE = "spec/console.md, 1"

PROMISES = {
    "AUN-2": Requirement(
        "A message may have no reply, one or many, at any time, with others in between.",
        source=BEHAVIOUR,
    ),
    "AUN-11": Requirement("An unanswered message looks like any other.", source=BEHAVIOUR),
    "AUN-12": Requirement(
        "Any number of replies to one message is shown, and none of them is the answer.",
        source=BEHAVIOUR,
    ),
    "AUN-13": Requirement("A message nobody asked for is shown like any other.", source=BEHAVIOUR),
    "UI-1": Requirement(
        "A sent message has neutral states that only go forward; nothing follows from silence.",
        source=PAGE,
    ),
    "UI-3": Requirement(
        "A message shows how many replies it has, and a reload shows the same order.", source=PAGE
    ),
    "UI-4": Requirement(
        "A conversation somebody else begins appears in the list by itself.", source=PAGE
    ),
}
