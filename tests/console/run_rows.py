"""Runs as rows: what the loop would have written, for pages and programs that read them."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import SQLModel, select

from app.aun.models import Message
from app.identity.models import Agent
from app.identity.principal import Principal
from app.kernel import ids
from app.kernel.db import Work
from app.runs.run_models import (
    AgentSchedule,
    Lane,
    ModelRequest,
    Run,
    RunInput,
    RunWait,
    SentMessage,
    ToolCall,
    TranscriptEntry,
)


@dataclass
class RunRows:
    """One run of an agent for a user in a conversation; each method adds what happened next."""

    work: Work
    agent: Agent
    user_id: str
    conversation_id: str
    at: datetime
    lane_id: str = field(default_factory=ids.ulid)
    run_id: str = field(default_factory=ids.ulid)
    seq: int = 0
    turn: int = 0

    def begin(self, **run: Any) -> "RunRows":
        """Its lane and the run itself, running."""
        party = f"user:{self.user_id}"
        known = select(Lane).where(
            Lane.tenant_id == self.agent.tenant_id,
            Lane.agent_id == self.agent.id,
            Lane.party == party,
            Lane.conversation_id == self.conversation_id,
        )
        if lane := self.work.session.exec(known).first():
            self.lane_id = lane.id
        else:
            self._add(
                Lane(
                    tenant_id=self.agent.tenant_id,
                    id=self.lane_id,
                    agent_id=self.agent.id,
                    party=party,
                    user_id=self.user_id,
                    conversation_id=self.conversation_id,
                    created_at=self.at,
                )
            )
        defaults: dict[str, Any] = {
            "kind": "conversation",
            "state": "running",
            "started_at": self.at,
        }
        self._add(
            Run(
                tenant_id=self.agent.tenant_id,
                id=self.run_id,
                agent_id=self.agent.id,
                lane_id=self.lane_id,
                conversation_id=self.conversation_id,
                request_key=f"test:{self.run_id}",
                user_id=self.user_id,
                actors=[self.agent.id],
                root_run_id=self.run_id,
                queued_at=self.at,
                **(defaults | run),
            )
        )
        return self

    def hear(self, message: Message, **row: Any) -> RunInput:
        """An input; accepted, unless said otherwise."""
        made = RunInput(
            **{
                "tenant_id": self.agent.tenant_id,
                "id": ids.ulid(),
                "agent_id": self.agent.id,
                "message_id": message.id,
                "log_seq": message.log_seq,
                "lane_id": self.lane_id,
                "sender_aid": message.sender_aid,
                "sender_kind": "person",
                "mode": "steering",
                "state": "accepted",
                "run_id": self.run_id,
                "round": 1,
                "arrived_at": self.at,
                "accepted_at": self.at,
                **row,
            }
        )
        self._add(made)
        if made.state != "queued":
            self._entry("input", {"text": "…"}, input_id=made.id)
        return made

    def think(self, thought: str, text: str = "", took_s: float = 1.2, **request: Any) -> str:
        """A turn with one request that was answered; the thought's id."""
        self.turn += 1
        thought_id = self.ask(took_s=took_s, **request)
        self._entry("response", {"thoughts": [thought], "text": text, "calls": []})
        return thought_id

    def ask(self, attempt: int = 1, took_s: float = 1.2, **request: Any) -> str:
        """One attempt to ask the model."""
        self.at += timedelta(milliseconds=1)
        row = ModelRequest(
            **{
                "tenant_id": self.agent.tenant_id,
                "id": ids.ulid(),
                "run_id": self.run_id,
                "turn": self.turn,
                "attempt": attempt,
                "purpose": "turn",
                "thought_id": ids.ulid(),
                "provider": "planner",
                "model": "offline planner",
                "model_version": "1",
                "request_digest": "0" * 64,
                "state": "done",
                "finish": "stop",
                "input_tokens": 1_200,
                "output_tokens": 80,
                "measured": True,
                "started_at": self.at,
                "ended_at": self.at + timedelta(seconds=took_s),
                **request,
            }
        )
        self._add(row)
        return row.thought_id

    def call(self, tool: str, **row: Any) -> ToolCall:
        """A tool call of the turn at hand; done, unless said otherwise."""
        self.at += timedelta(milliseconds=1)
        before = select(ToolCall).where(
            ToolCall.tenant_id == self.agent.tenant_id,
            ToolCall.run_id == self.run_id,
            ToolCall.turn == self.turn,
        )
        made = ToolCall(
            **{
                "tenant_id": self.agent.tenant_id,
                "id": ids.ulid(),
                "run_id": self.run_id,
                "turn": self.turn,
                "ordinal": len(self.work.session.exec(before).all()),
                "provider_call_id": "c",
                "tool": tool,
                "kind": "command" if "." in tool else "framework",
                "command": tool if "." in tool else None,
                "arguments_sha256": "0" * 64,
                "state": "done",
                "started_at": self.at,
                "ended_at": self.at + timedelta(milliseconds=30),
                **row,
            }
        )
        self._add(made)
        return made

    def say(self, message: Message, call_id: str | None = None) -> None:
        """Note that a message was sent by it."""
        self._add(
            SentMessage(
                tenant_id=self.agent.tenant_id,
                run_id=self.run_id,
                scope=1,
                conversation_id=message.conversation_id,
                content_sha256=ids.ulid(),
                message_id=message.id,
                call_id=call_id,
                turn=self.turn,
                at=message.sent_at,
            )
        )

    def wait(self, kind: str, **row: Any) -> None:
        """It waits for something."""
        self._add(
            RunWait(
                tenant_id=self.agent.tenant_id,
                id=ids.ulid(),
                run_id=self.run_id,
                kind=kind,
                opened_at=self.at,
                **row,
            )
        )
        self.become("suspended")

    def become(self, state: str, **row: Any) -> Run:
        """The run is in another state."""
        found = self.row
        values = {"state": state, "turn": self.turn, **row}
        if state not in {"queued", "running", "suspended"}:
            values.setdefault("ended_at", self.at)
        for name, value in values.items():
            setattr(found, name, value)
        self._add(found)
        return found

    @property
    def row(self) -> Run:
        """The run."""
        return self.work.session.get_one(Run, (self.agent.tenant_id, self.run_id))

    def _entry(self, kind: str, body: dict[str, Any], input_id: str | None = None) -> None:
        self.seq += 1
        self._add(
            TranscriptEntry(
                tenant_id=self.agent.tenant_id,
                run_id=self.run_id,
                seq=self.seq,
                kind=kind,
                body=body,
                input_id=input_id,
                turn=self.turn,
            )
        )

    def _add(self, row: SQLModel) -> None:
        self.work.session.add(row)
        self.work.session.flush()


def of(work: Work, agent: Agent, user_id: str, message: Message) -> RunRows:
    """A run that a message opens, right after it."""
    at = message.sent_at + timedelta(milliseconds=1)
    return RunRows(work, agent, user_id, message.conversation_id, at)


def something(work: Work, person: Principal, conversation_id: str) -> dict[str, str]:
    """A run that waits for somebody, its lane, an unknown call, a schedule: theirs; the ids."""
    agent = work.session.exec(select(Agent).where(Agent.tenant_id == person.tenant_id)).first()
    message = work.session.exec(
        select(Message).where(Message.conversation_id == conversation_id)
    ).first()
    assert agent is not None
    assert message is not None
    rows = of(work, agent, person.user_id, message).begin(state="suspended", turn=1)
    rows.turn = 1
    rows.ask()
    called = rows.call("read_record", state="unknown")
    schedule = AgentSchedule(
        tenant_id=person.tenant_id,
        id=ids.ulid(),
        agent_id=agent.id,
        user_id=person.user_id,
        instruction="Look what is new.",
        rule="weekdays 9:00",
        zone="UTC",
        next_at=rows.at + timedelta(days=3),
        created_at=rows.at,
    )
    work.session.add(schedule)
    work.session.flush()
    return {
        "run_id": rows.run_id,
        "lane_id": rows.lane_id,
        "tool_call_id": called.id,
        "schedule_id": schedule.id,
    }
