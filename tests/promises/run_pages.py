"""Promises of the pages of runs and agents, and of runs in conversations."""

from tests.promises.requirement import Requirement

_SPEC = "spec/console.md, 1"
_FAULTS = "spec/console.md, 8.2"


def _says(text: str, source: str = _SPEC) -> Requirement:
    return Requirement(text, source=source)


PROMISES = {
    "UI-5": _says("A thought is never a message; a round of thoughts alone is finished."),
    "UI-9": _says("A message says for whom it is taken when, and what became of it."),
    "UI-10": _says("The six ends of a run stay six, and stopped is said of what has stopped."),
    "UI-12": _says("Thoughts are for the person a run works for, and for auditors."),
    "UI-24": _says(
        "What changes something is a resource that is posted to; asking changes nothing."
    ),
    "UI-87": _says("A thought is one line of one height, and nothing opens or closes by itself."),
    "RUN-58": _says(
        "Hosted agents declare that they are autonomous, and nothing promises an answer.",
        "spec/agent-loop.md, 1",
    ),
    "RUN-80": _says(
        "Thoughts stream to the person a run works for, and what they become is logged.",
        "spec/agent-loop.md, 6.4",
    ),
    "RUN-113": _says(
        "Runs are read, stopped and withdrawn by those they concern.",
        "spec/agent-loop.md, 3",
    ),
    "UI-69": _says(
        "A message during an open approval is queued, says why, and decides nothing.",
        "spec/console.md, 4",
    ),
    "CON-53": _says("Stop with a request open: it ends, and says so when it has.", _FAULTS),
    "CON-54": _says("A call that waits for consent is stopped like any other.", _FAULTS),
    "CON-55": _says(
        "A tool that ignores the stop is left behind after a grace, and the page says so.", _FAULTS
    ),
    "CON-57": _says("What a tool gives back is text, whatever it looks like.", _FAULTS),
    "CON-60": _says("What a stopped run had not heard opens the next one, in order.", _FAULTS),
    "CON-61": _says("Between two runs a message says at every moment how it stands.", _FAULTS),
    "CON-59": _says("Stop leaves what is being written as it is, and sends nothing.", _FAULTS),
    "CON-56": _says("Stopped appears when the end of the run is stored.", _FAULTS),
    "CON-67": _says(
        "The text of a thought is in no message, no copy and no search.", "spec/console.md, 8.3"
    ),
}
