"""A conversation of Alice and an agent with a run in it, for pages, streams and programs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
from sqlmodel import Session, col, select

from app.aun.models import Message
from app.identity.models import Agent
from app.kernel import db
from app.kernel.db import Work
from tests.console import run_rows
from tests.console.run_rows import RunRows
from tests.people import World


@dataclass
class Stage:
    """Alice wrote to the agent `stock`; `path` is their conversation."""

    world: World
    conversation_id: str
    alice_id: str
    agent: Agent

    @property
    def path(self) -> str:
        """The page of the conversation."""
        return f"/conversations/{self.conversation_id}"

    def run(self, play: Callable[[RunRows], Any]) -> str:
        """Let a run happen after what was said last; its id."""
        return db.transact_now(self._run, play)

    def newest(self) -> Message:
        """What was said last."""
        return db.read_now(lambda session: _newest(session, self.conversation_id))

    def _run(self, work: Work, play: Callable[[RunRows], Any]) -> str:
        rows = run_rows.of(
            work, self.agent, self.alice_id, _newest(work.session, self.conversation_id)
        )
        play(rows)
        return rows.run_id


async def opened(world: World, browser: httpx2.AsyncClient, text: str = "Hello") -> Stage:
    """Alice's first message to the agent."""
    found = db.read_now(_agent, world.acme.agents["stock"])
    sent = await browser.post(
        "/conversations", data={"to": found.aid or "", "text": text, "client_id": "c-run"}
    )
    assert sent.status_code == 303, sent.text
    conversation_id = sent.headers["location"].rpartition("/")[2]
    return Stage(world, conversation_id, world.acme["alice"].id, found)


def _agent(session: Session, agent: Agent) -> Agent:
    return session.get_one(Agent, (agent.tenant_id, agent.id))


def _newest(session: Session, conversation_id: str) -> Message:
    query = select(Message).where(Message.conversation_id == conversation_id)
    found = session.exec(query.order_by(col(Message.log_seq).desc())).first()
    assert found is not None
    return found
