"""Promises about processes that are killed in the middle of a run (agent-loop.md, 16)."""

from tests.promises.requirement import Requirement


def _says(text: str) -> Requirement:
    return Requirement(text, source="spec/agent-loop.md, 16")


PROMISES = {
    "F-50": Requirement(
        "Of a batch that broke off only what was not done yet is done.",
        source="spec/agent-loop.md, 15",
    ),
    "RUN-114": _says(
        "A process may be killed at any place of a run, and two hundred times at random: each "
        "effect happens once at the most and is in the trail, each call has one result, each "
        "input one end, and the lane goes on.",
    ),
    "K-2": _says("An input without a run gets one; a queued run is claimed: one run in all."),
    "K-3": _says(
        "A run that was claimed and not prepared is taken over; that no process of an MCP server "
        "stays behind is proven with these servers, in issue 6.",
    ),
    "K-4": _says("After the receipt the request goes out with the input once."),
    "K-5": _says("An answer that broke off is abandoned, and asked for anew."),
    "K-6": _says("A stored answer is gone on with; the model is not asked again."),
    "K-7": _says("A call that was started and is not in the trail did nothing, and says so."),
    "K-8": _says("A command that is killed in its transaction leaves nothing, at any stage."),
    "K-9": _says("A command that was committed is not run again: the trail has its result."),
    "K-10": _says("What was sent outside without an answer is unknown, and never sent again."),
    "K-11": _says(
        "A read that broke off is interrupted and the run goes on; the same of a server's read "
        "is proven with MCP servers, in issue 6.",
    ),
    "K-12": _says("A result that the transcript lacks is told from the record of its call."),
    "K-13": _says("A run goes on behind its last batch, and repeats nothing of it."),
    "K-14": _says("A suspended run is still decidable, and woken when it was decided."),
    "K-15": _says("A call that was assented to runs once, whoever was to start it."),
    "K-16": _says("Assent is used once; what came of the call is taken from the trail."),
    "K-17": _says("An answer goes out once, and a follow-up is taken in once, or still queued."),
    "K-18": _says("A run ends once: before its end it is ended again, after it that one stands."),
    "K-19": _says("A message that was said is one message, also if it is said again."),
    "K-20": _says("Making room loses no entry of a transcript and no input."),
    "K-21": _says("A parent is woken by a child's end, and its call has one result."),
    "K-22": _says("A worker that was replaced writes nothing when it wakes up."),
}
