"""Promises of what a run says, which tools it has, and what a call of one comes to."""

from tests.promises.requirement import Requirement

_SPEC = "spec/agent-loop.md, 1"
_BATCH = "spec/agent-loop.md, 7"
_TOOLS = "spec/agent-loop.md, 8"
_AUTHORITY = "spec/agent-loop.md, 9"
_FAULTS = "spec/agent-loop.md, 15"


def _says(text: str, source: str = _SPEC) -> Requirement:
    return Requirement(text, source=source)


PROMISES = {
    "AUN-4": _says(
        "An agent sends text and json; what looks like a call of a tool is refused.",
        "spec/aun.md, 1.1",
    ),
    "RUN-7": _says("A sub-run has its own context, the release of that moment, the root's steps."),
    "RUN-31": _says("A batch is checked whole before any effect, delegation rights included."),
    "RUN-32": _says("A tool that waits or ends is alone in its batch."),
    "RUN-37": _says("Framework tools check identity, membership and permission themselves."),
    "RUN-39": _says("A business refusal is that call's result, and the batch goes on."),
    "RUN-41": _says("What went wrong inside is told to the operator alone, by `diagnose-call`."),
    "RUN-45": _says("A run ends with text or with silence, and silence publishes nothing."),
    "RUN-46": _says("A closing text is not published where this scope already spoke."),
    "RUN-47": _says("Neither outcome of a run stands for the report of assigned work."),
    "RUN-54": _says("None, one or many messages for one input are equally right."),
    "RUN-55": _says("Nothing waits for an answer, and nothing follows from silence."),
    "RUN-57": _says("Agents ask each other in text or json; a tool payload is a picture."),
    "RUN-65": _says("The command of a worker that was replaced rolls back."),
    "RUN-74": _says("However a sub-run ends, its parent's call has one result that says how."),
    "RUN-87": _says("A result says by its outcome what happened: done, refused, denied, unknown."),
    "RUN-89": _says("Only an explicit assent lets a call run, with the stored arguments.", _BATCH),
    "RUN-92": _says("A wait is a pause of the agent's own; its call is done at once.", _BATCH),
    "RUN-93": _says(
        "Commands are tools by the catalogue of that turn, and by no other list.", _TOOLS
    ),
    "RUN-94": _says(
        "Each framework tool keeps to its own: places, records, tasks, agents.", _TOOLS
    ),
    "RUN-95": _says("A framework effect and the record of its call are one commit.", _TOOLS),
    "RUN-97": _says(
        "The chain of a message is the run that said it, never its payload.", _AUTHORITY
    ),
    "RUN-99": _says("Approvals of a chain are the originating person's.", _AUTHORITY),
    "F-21": _says("A forged event or a null decision runs nothing.", _FAULTS),
    "F-26": _says("A decision with other arguments: only the stored ones can run.", _FAULTS),
    "F-39": _says("A denial reaches the model word for word.", _FAULTS),
    "F-79": _says("A run that sent a message and ends with text has sent one.", _FAULTS),
    "F-80": _says("The same send is the same message; in the next round it is a new one.", _FAULTS),
    "F-82": _says("A send, then silence: no second message.", _FAULTS),
    "F-86": _says("What a tool raises is told in public words; the cause stays private.", _FAULTS),
}
