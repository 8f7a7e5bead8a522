"""What drawing the turns of runs needs to know for one reader: names, approvals, ways back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlmodel import Session

from app.commands import approval_reading, catalogue
from app.commands.approval_reading import Listed
from app.commands.catalogue import Catalogue
from app.commands.descriptors import Descriptor
from app.identity.principal import Principal
from app.kernel import clock
from app.kernel.i18n import N_, gettext, language
from app.runs.run_models import ToolCall
from app.runs.states import CallKind, CallState
from app.runs.timeline import Call, Turn

TOOLS = {
    "await_approval": N_("Wait for a decision"),
    "await_message": N_("Wait for a message"),
    "await_timer": N_("Wait for a time"),
    "delegate": N_("Hand work to another agent"),
    "finish_silently": N_("Finish without a message"),
    "read_conversation": N_("Read the conversation"),
    "read_record": N_("Read a record"),
    "run_command": N_("Run a command"),
    "search_commands": N_("Look for commands"),
    "send_message": N_("Send a message"),
    "task_list": N_("Look at its tasks"),
    "task_update": N_("Report on a task"),
}
MOST = 4_000  # characters of arguments or a result that a card shows


@dataclass(frozen=True, slots=True)
class Undo:
    """The form of the command that takes a call back, and what stands in it."""

    command: Descriptor
    fill: str


@dataclass(frozen=True, slots=True)
class RunView:
    """How one reader sees calls.

    Attributes:
        is_own: whether the runs are the reader's: acts are offered to nobody else.
        now: by which an approval that nobody decided is over.
    """

    seen: Catalogue
    is_own: bool
    now: datetime
    approvals: Mapping[str, Listed] = field(default_factory=dict)

    def command(self, call: ToolCall) -> Descriptor | None:
        """The command of a call, as far as the reader may call it too."""
        return self.seen.find(call.command) if call.command else None

    def name(self, call: ToolCall) -> str:
        """What a call is called: a command by its name, a tool of the framework in words."""
        if (command := self.command(call)) is not None:
            return command.definition.display_name.in_(language())
        if call.tool in TOOLS and call.kind != CallKind.COMMAND:
            return gettext(TOOLS[call.tool])
        return call.command or call.tool

    def beside_messages(self, turn: Turn, conversation_id: str | None) -> list[Call]:
        """The calls of a turn that a conversation shows; what a done one said stands there."""
        told = {said.call_id for said in turn.said if said.conversation_id == conversation_id}
        return [
            call
            for call in turn.calls
            if call.row.state != CallState.DONE or call.row.id not in told
        ]

    def undo(self, call: Call) -> Undo | None:
        """The way back, offered to the person whose run it was and who may go it."""
        undo = call.undo
        command = self.seen.find(str(undo["cmdCode"])) if undo and self.is_own else None
        if undo is None or command is None:
            return None
        return Undo(command, json.dumps(undo["input"], ensure_ascii=False))

    def approval(self, call: Call) -> Listed | None:
        """The approval a call waits or waited for, if the reader may see it."""
        return self.approvals.get(call.row.approval_id or "")


def of(session: Session, reader: Principal, turns: Sequence[Turn], *, is_own: bool) -> RunView:
    """What drawing `turns` needs, for one reader; without a call that is no catalogue."""
    calls = [call.row for turn in turns for call in turn.calls]
    seen = catalogue.of(session, reader) if calls else Catalogue(reader.tenant_id, ())
    wanted = {row.approval_id for row in calls if row.approval_id}
    return RunView(seen, is_own, clock.now(), approval_reading.rows_for(session, reader, wanted))


def as_json(data: Any) -> str:
    """Arguments or a result as text, shortened in the middle of nothing: its end is cut."""
    text = json.dumps(data, ensure_ascii=False, indent=2)
    return text if len(text) <= MOST else text[: MOST - 1] + "…"
