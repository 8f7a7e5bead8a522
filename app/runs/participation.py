"""Whether an agent takes part when something is said in a group (RUN-71); the first match decides.

What is said between two, by a person, or to the agent always reaches it. Anything else is judged by
its release; what it lets pass by never enters a context (RUN-16).
"""

from enum import StrEnum
from typing import Any

from app.aun import channel
from app.aun.group_models import MentionMode
from app.runs.states import SenderKind

AGAIN_S = 60  # until an input that waits is judged once more
MOST = 3  # times one is judged
NOT_FOR_ME = "not_for_me"


class Verdict(StrEnum):
    """What becomes of it."""

    PARTICIPATE = "participate"
    SILENT = "silent"
    WAIT = "wait"


def judge(payload: dict[str, Any], kind: SenderKind, aid: str, policy: str) -> Verdict:
    """What the agent `aid` does with a group's message that its channel let pass, and is no answer.

    `policy` is its release's; `WAIT` under `model`: the model is asked before anything is taken.
    """
    if kind == SenderKind.PERSON or is_mentioned(payload, aid):
        return Verdict.PARTICIPATE
    match policy:
        case "open":
            return Verdict.PARTICIPATE
        case "model":
            return Verdict.WAIT
    return Verdict.SILENT


def is_mentioned(payload: dict[str, Any], aid: str) -> bool:
    """Whether a payload's structured mentions name an agent, or everybody."""
    return channel.passes(MentionMode.MENTION_ONLY, payload, aid)
