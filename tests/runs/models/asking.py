"""What a model is asked in tests: entries of a transcript, and the ask that holds them."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from app.runs.models.protocol import Ask, Entry, Offered
from app.runs.states import EntryKind

NOW = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
SEND = Offered(
    name="send_message",
    description="Say something.",
    schema={
        "type": "object",
        "properties": {"text": {"type": "string", "description": "what to say"}},
        "required": ["text"],
        "additionalProperties": False,
    },
)
_seq = itertools.count(1)


def entry(kind: EntryKind, turn: int = 0, /, **body: Any) -> Entry:
    return Entry(seq=next(_seq), kind=kind, body=body, turn=turn)


def system_entry(text: str = "You are Ada's agent.") -> Entry:
    return entry(EntryKind.SYSTEM, text=text)


def input_entry(
    text: str, id: str = "m1", *, is_principal: bool = True, kind: EntryKind = EntryKind.INPUT
) -> Entry:
    return entry(
        kind,
        message_id=id,
        sender="ada.example" if is_principal else "bot.example",
        sender_name="Ada" if is_principal else "Bot",
        sender_kind="person" if is_principal else "agent",
        at="2026-05-04T09:29:00Z",
        text=text,
        is_principal=is_principal,
        is_own=False,
    )


def response_entry(
    text: str = "", calls: Sequence[str] = (), turn: int = 1, thoughts: Sequence[str] = ()
) -> Entry:
    return entry(
        EntryKind.RESPONSE,
        turn,
        thoughts=list(thoughts),
        text=text,
        calls=[
            {"id": f"call-{turn}-{n}", "provider_id": f"p{n}", "tool": tool, "arguments": "{}"}
            for n, tool in enumerate(calls)
        ],
    )


def result_entry(call_id: str, text: str = '{"outcome":"done"}', tool: str = "x") -> Entry:
    return entry(EntryKind.RESULTS, call_id=call_id, tool=tool, text=text)


def ask(*entries: Entry, tools: Sequence[Offered] = (SEND,), tools_on: bool = True) -> Ask:
    return Ask(entries=entries or (input_entry("Hello"),), tools=tools, tools_on=tools_on, now=NOW)
