"""What of a conversation reaches the model of a receiving agent; decided here, before the model.

The server labels group messages and delivers them all; a hosted agent's own channel filters. What
it holds back stays in the conversation and in the archive of the agent's inputs: it is not lost,
not read, and nothing anybody would have to answer (AUN-15, AUN-16, AUN-17).
"""

from collections.abc import Mapping
from typing import Any

from app.aun.group_models import MentionMode

NOT_MENTIONED = "not_mentioned"  # why the input of a filtered message is archived
EVERYBODY = "all"


def passes(label: str | None, payload: Mapping[str, Any] | None, own_aid: str) -> bool:
    """Whether an agent's model is to see a message with this label and this readable payload.

    Only what the payload's `mentions` say counts, never an "@" in a text. A message between two
    has no label, and passes.
    """
    if label != MentionMode.MENTION_ONLY:
        return True
    mentions = (payload or {}).get("mentions")
    return isinstance(mentions, list) and any(_means(each, own_aid) for each in mentions)


def _means(mention: Any, own_aid: str) -> bool:
    if not isinstance(mention, Mapping):
        return False
    return bool(mention.get("scope") == EVERYBODY or mention.get("aid") == own_aid)
