"""Thoughts on their way: what a model streams, to the one person who may watch (RUN-80, UI-5).

The pieces are ephemeral; a logged event ends them and brings the text whole. A new attempt writes
into a node of its own, so that no text shows twice (F-67, F-84).
"""

from dataclasses import dataclass

from app.kernel import deltas
from app.kernel.db import Work
from app.runs.session import RunSession
from app.runs.told import Began


@dataclass(slots=True)
class Thinking:
    """One attempt's growing text."""

    run: RunSession
    thought_id: str
    attempt: int
    text: str = ""
    _at: int = 0

    def begin(self, work: Work) -> None:
        """Announce the attempt in the commit that records it: pages make room for its text."""
        facts = self.run.facts
        if facts.watcher_id is not None:
            work.announce(
                Began(
                    tenant_id=facts.tenant_id,
                    user_id=facts.watcher_id,
                    run_id=facts.run_id,
                    conversation_id=facts.conversation_id,
                    turn=self.run.turn,
                    thought_id=self.thought_id,
                    attempt=self.attempt,
                )
            )

    def grow(self, text: str) -> None:
        """Take in a piece, and show it."""
        if not text:
            return
        self.text += text
        facts = self.run.facts
        if facts.watcher_id is not None:
            deltas.append(facts.tenant_id, facts.watcher_id, self._node, self._at, text)
        self._at += deltas.units(text)

    @property
    def _node(self) -> str:
        return f"thought-{self.thought_id}-{self.attempt}-text"
