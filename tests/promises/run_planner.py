"""What we promise about the offline planner."""

from tests.promises.requirement import Requirement

PROMISES = {
    "RUN-106": Requirement(
        "Without a model the offline planner works: the same ask gives the same bytes, without "
        "network or chance, and it is called what it is.",
        source="spec/agent-loop.md, 11",
    ),
    "RUN-107": Requirement(
        "The planner finds the command, fills it with what was said and nothing else, asks for "
        "what is missing, tells before it changes something, and reports what came of it.",
        source="spec/agent-loop.md, 11",
    ),
    "RUN-108": Requirement(
        "Of eighty sentences in two languages it finds the command for nine in ten, and never runs "
        "a wrong one that writes.",
        source="spec/agent-loop.md, 11",
    ),
}
