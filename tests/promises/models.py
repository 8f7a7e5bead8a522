"""Promises of the models agents think with (agent-loop.md, 10, 12 and 13)."""

from tests.promises.requirement import Requirement


def _says(text: str, section: str = "10") -> Requirement:
    return Requirement(text, source=f"spec/agent-loop.md, {section}")


PROMISES = {
    "RUN-100": _says(
        "Planner, script and provider are one thing to a run: they are asked and answer piece by "
        "piece, and whoever stops listening ends the request.",
    ),
    "RUN-101": _says(
        "The operator sets a model, administrators add others for their company alone; a key is "
        "in no profile, event or fault, and a provider's library is loaded when it is needed.",
    ),
    "RUN-102": _says(
        "An answer without a finish reason was cut off; every fault has a kind, is retried by us "
        "alone, and tells people nothing of the provider's text.",
    ),
    "RUN-103": _says(
        "The transcript is ours and any provider takes it; a provider's own answer goes back to "
        "it as it was, and to no other.",
    ),
    "RUN-104": _says(
        "Tokens are counted once, cached ones apart; what nobody measured or priced is unknown, "
        "never nothing.",
    ),
    "RUN-109": _says(
        "A scripted model says what was written for it, waits where it is told to, and running "
        "out of steps is an error.",
        "12",
    ),
    "RUN-110": _says(
        "What is sent to a provider passes one that forgives nothing, over real HTTP, on both "
        "wires.",
        "12",
    ),
    "RUN-111": _says(
        "A real model answers through the same layer: in pieces, measured, and cancelled midway.",
        "13",
    ),
    "F-67": _says("A stream that drops in the middle of a call leaves no call and no text.", "15"),
    "F-69": _says("A clean end without a finish reason is a cut, on both wires.", "15"),
    "F-70": _says("An answer cut at its length says so, however whole its call looks.", "15"),
    "F-71": _says("Usage that is repeated counts once; none is unknown.", "15"),
    "F-72": _says("Cached tokens are neither added twice nor lost, on both wires.", "15"),
    "F-73": _says("Reasoning goes back to its own provider, and to no other.", "15"),
}
