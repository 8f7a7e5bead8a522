"""Promises of who hears what, which run takes it in, and which process works on it."""

from tests.promises.requirement import Requirement

_SPEC = "spec/agent-loop.md, 1"
_SCHEDULER = "spec/agent-loop.md, 3"
_ADMISSION = "spec/agent-loop.md, 4"
_AUTHORITY = "spec/agent-loop.md, 9"
_FAULTS = "spec/agent-loop.md, 15"
_KILLS = "spec/agent-loop.md, 16"


def _says(text: str, source: str = _SPEC) -> Requirement:
    return Requirement(text, source=source)


PROMISES = {
    "RUN-1": _says("The scheduler delivers, judges and claims; a run takes no other lane's words."),
    "RUN-3": _says("A worker claims, executes and finishes; what has an outcome never runs again."),
    "RUN-8": _says("Every message is stored and queued on its own, at once."),
    "RUN-9": _says(
        "A person steers, an agent follows up, and a sender may choose: it is no right."
    ),
    "RUN-10": _says("Only inputs of a run's own lane may enter it."),
    "RUN-11": _says("One input at a boundary, and none inside a batch."),
    "RUN-12": _says("A follow-up is admitted when the answer is out and its round is settled."),
    "RUN-13": _says("Receipt, transcript entry and quota are one commit before any stage."),
    "RUN-14": _says("Pause, quota, membership, deletion, reset and steps count at admission."),
    "RUN-15": _says("What a mention-only group keeps back is archived: neither lost nor read."),
    "RUN-16": _says("Another agent's words are judged first; what is let pass enters no context."),
    "RUN-17": _says("An accepted input settles with its run, and is never admitted again."),
    "RUN-18": _says(
        "What was not accepted stays queued, and the end of a run wakes the scheduler."
    ),
    "RUN-19": _says("A completed input is never overwritten by a later failure."),
    "RUN-20": _says("A follow-up opens a new scope of sends; steering stays in the current one."),
    "RUN-21": _says("A reply is linked to the input that was admitted last."),
    "RUN-22": _says("An accepted input names one run; each has a state, and a reason if need be."),
    "RUN-23": _says("Explicit work is fed by answers to its waits; messages never enter it."),
    "RUN-51": _says("An effect whose outcome is not known is never repeated by the system."),
    "RUN-52": _says("Every write of a run names its claim, and a state that is not final."),
    "RUN-54": _says("Any number of messages for an input is right, and also without an input."),
    "RUN-55": _says("Nothing waits for an answer, and nothing follows from silence."),
    "RUN-56": _says("Every delivered message reaches an input row."),
    "RUN-57": _says("A received tool call or result is display; it is never executed."),
    "RUN-60": _says("States move as the table says; the first answer to a wait wins.", _SCHEDULER),
    "RUN-61": _says(
        "Deliver, open, wake, recover, claim: events are hints, rows count.", _SCHEDULER
    ),
    "RUN-62": _says("One statement takes the oldest queued run within all limits.", _SCHEDULER),
    "RUN-63": _says("A run is owned by the token of its claim, not by name or clock.", _SCHEDULER),
    "RUN-64": _says("The heartbeat keeps leases by one clock, and hears of stops.", _SCHEDULER),
    "RUN-68": _says("A process that ends gives its runs back, no takeover counted.", _SCHEDULER),
    "RUN-69": _says("A stop ends what waits at once, and reaches a worker at once.", _SCHEDULER),
    "RUN-70": _says(
        "The channel archives what was not for the agent, with the reason.", _SCHEDULER
    ),
    "RUN-71": _says("In a group the first rule that fits decides who takes part.", _SCHEDULER),
    "RUN-72": _says("Claim, gates, receipt, entry, quota: in this order, in one unit.", _ADMISSION),
    "RUN-73": _says("A message behind a request waits for it, or for its withdrawal.", _ADMISSION),
    "RUN-97": _says("Authority comes from the person at the start of the chain.", _AUTHORITY),
    "RUN-98": _says("Deactivation ends runs and drops inputs in its own transaction.", _AUTHORITY),
    "RUN-113": _says(
        "Runs and lanes are stopped, paused and resolved by their person.", _SCHEDULER
    ),
    "RUN-116": _says("What opened or woke a run is admitted first, whatever its mode.", _ADMISSION),
    "F-1": _says("What waits behind a batch keeps its place when the run is stopped.", _FAULTS),
    "F-2": _says("Steering that comes inside a batch is admitted after it.", _FAULTS),
    "F-3": _says("Steering while nothing runs opens a run; accepted is said later.", _FAULTS),
    "F-4": _says("Steering goes before a follow-up, which keeps its place.", _FAULTS),
    "F-5": _says("A store that fails over the receipt leaves the input queued.", _FAULTS),
    "F-6": _says("A message during an open request waits visibly, and is taken after.", _FAULTS),
    "F-7": _says("However a run ends, its inputs have that end and the lane goes on.", _FAULTS),
    "F-8": _says(
        "Steering during the answer is taken; a moment later it is the next run.", _FAULTS
    ),
    "F-9": _says("A message stored as a run ends starts the next one by itself.", _FAULTS),
    "F-10": _says("What is queued is handled, whatever the run died of.", _FAULTS),
    "F-11": _says("A message after a stop stays queued and is handled.", _FAULTS),
    "F-12": _says("Three follow-ups are three rounds in order.", _FAULTS),
    "F-13": _says("Who wrote is what the server knows, never what a payload says.", _FAULTS),
    "F-14": _says("A thousand messages to a lane are all kept, and held by the quota.", _FAULTS),
    "F-15": _says("The same message twice is one input and one run.", _FAULTS),
    "F-45": _says("A suspended run that is stopped leaves its conversation usable.", _FAULTS),
    "F-54": _says("A killed worker's run is another's within its lease.", _FAULTS),
    "F-55": _says("A run that was claimed and not begun is taken over the same way.", _FAULTS),
    "F-56": _says("A run that kills its workers ends after three takeovers.", _FAULTS),
    "F-57": _says("Two who see the same dead run count one takeover.", _FAULTS),
    "F-58": _says("Nobody takes a live lease, and nobody adopts its own run.", _FAULTS),
    "F-59": _says("A crash in a run that a timer woke leaves its lane working.", _FAULTS),
    "F-62": _says("A timer that fell due while nothing ran fires once.", _FAULTS),
    "F-63": _says("False, zero and nothing are answers to a wait.", _FAULTS),
    "F-66": _says("Of two answers to a wait the second is an ordinary input.", _FAULTS),
    "F-78": _says("Two agents are held after six in a row, until a person writes.", _FAULTS),
    "K-1": _says("A message that was stored and not delivered is delivered once.", _KILLS),
    "K-23": _says("A process that is told to end loses no run and counts no takeover.", _KILLS),
}
