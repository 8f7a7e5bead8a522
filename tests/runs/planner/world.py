"""A loop in small: it runs what the planner calls against an office of records, turn by turn."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

import jsonschema_rs

from app.commands import registry
from app.commands.descriptors import Descriptor
from app.commands.stored import StoredDefinition
from app.kernel import json
from app.runs import toolbox
from app.runs.models.offline import OfflinePlanner
from app.runs.models.planner.ranking import ranked
from app.runs.models.protocol import Answered, Ask, Entry, Offered, Response, ThoughtDelta
from app.runs.states import EntryKind
from app.runs.toolbox import search_commands

NOW = datetime(2026, 11, 30, 2, 0, tzinfo=UTC)
FRAMEWORK = ("send_message", "read_record", "await_message", "await_timer", "finish_silently")
TURNS = 20


@cache
def descriptors(*packs: str) -> tuple[Descriptor, ...]:
    """Every command of the shipped packs that an agent may find, as published."""
    if not registry.declared():
        registry.discover()
    stored = [
        StoredDefinition.of(declared, registry.pack_of(code) or "")
        for code, declared in registry.declared().items()
    ]
    return tuple(
        Descriptor(each, 1, each.content_hash)
        for each in sorted(stored, key=lambda each: each.code)
        if not each.people_only and (not packs or each.pack in packs)
    )


def record(
    type: str, id: str, label: str, state: str, may: Sequence[str], **fields: Any
) -> dict[str, Any]:
    """A record as `read_record` shows it."""
    return {
        "id": id.rjust(26, "0"),
        "type": type,
        "label": label,
        "number": label,
        "state": state,
        "version": 1,
        "fields": fields,
        "may": list(may),
    }


Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass
class Office:
    """Records, and what commands answer; what is not scripted is done."""

    records: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def read(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        assert ("id" in asked) != ("query" in asked), "one of the two"
        found = [each for each in self.records if each["type"] == asked["type"]]
        if "id" in asked:
            found = [each for each in found if each["id"] == asked["id"]]
        for word in str(asked.get("query", "")).lower().split():
            found = [each for each in found if word in _text(each)]
        shown = found[: asked.get("limit", 10)]
        return {"outcome": "done", "result": {"records": shown, "more": len(found) > len(shown)}}

    def run(self, code: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        self.ran.append((code, dict(given)))
        queue = self.answers.get(code)
        if queue:
            return queue.pop(0)(given) if len(queue) > 1 else queue[0](given)
        return {"outcome": "done", "result": {}}


@dataclass
class Talk:
    """One run: messages in, what was said and called out."""

    office: Office
    commands: Sequence[Descriptor] = ()
    locale: str = "en"
    is_large: bool = False
    recent: list[Mapping[str, Any]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    questions: list[Mapping[str, Any]] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    turns: int = 0

    def tell(self, text: str, **more: Any) -> list[str]:
        """Send a message, let the planner work until it is silent or asks; what it said."""
        before = len(self.said)
        self.add(text, **more)
        self.work()
        return self.said[before:]

    def add(self, text: str, *, kind: EntryKind = EntryKind.INPUT, **more: Any) -> None:
        body = {
            "message_id": str(len(self.entries)),
            "sender": "alice",
            "sender_name": "Alice",
            "sender_kind": "person",
            "text": text,
            "is_principal": True,
            "is_own": False,
        }
        self._entry(kind, {**body, **more})

    def work(self) -> None:
        for _ in range(TURNS):
            response = self.turn()
            if not response.calls:
                if response.text:
                    self.said.append(response.text)
                return
            if self._batch(response):
                return
        raise AssertionError(f"no end after {TURNS} turns: {self.entries[-4:]}")

    def ask(self) -> Ask:
        self.now = NOW
        return Ask(
            entries=tuple(self.entries),
            tools=self._tools(),
            recent=tuple(self.recent),
            locale=self.locale,
            now=NOW,
            timezone="Asia/Shanghai",
        )

    def turn(self) -> Response:
        response, thoughts = answered(self.ask())
        self.thoughts += thoughts
        self.turns += 1
        calls = [
            {
                "id": f"c{self.turns}-{place}",
                "provider_id": each.provider_id,
                "tool": each.name,
                "arguments": each.arguments,
            }
            for place, each in enumerate(response.calls)
        ]
        body = {"thoughts": list(response.thoughts), "text": response.text, "calls": calls}
        self._entry(EntryKind.RESPONSE, body)
        return response

    def _batch(self, response: Response) -> bool:
        """Run the calls; whether the run waits or is over now."""
        told_before = False
        waits = False
        for place, call in enumerate(response.calls):
            given = json.of_column(call.arguments)
            schema = {each.name: each.schema for each in self._tools()}[call.name]
            jsonschema_rs.validator_for(dict(schema)).validate(given)
            if call.name in {"await_message", "await_timer"}:
                assert len(response.calls) == 1, "a wait is alone in its batch"
            result = self._run(call.name, given, told_before)
            told_before = told_before or call.name == "send_message"
            waits = waits or call.name == "await_message"
            body = {
                "call_id": f"c{self.turns}-{place}",
                "tool": call.name,
                "text": json.dumps(result).decode(),
            }
            self._entry(EntryKind.RESULTS, body)
            if call.name == "await_timer":
                self._entry(EntryKind.NOTE, {"kind": "timer", "text": "The timer is due."})
        return waits

    def _run(self, tool: str, given: dict[str, Any], told: bool) -> Mapping[str, Any]:
        match tool:
            case "send_message":
                self.said.append(given["text"])
                return {"outcome": "done", "result": {"message_id": "m"}}
            case "read_record":
                return self.office.read(given)
            case "await_message":
                assert len(json.dumps(given["expects"])) <= 4_096
                self.questions.append(given)
                lines = [given["question"], *given.get("choices", ())]
                self.said.append("\n".join(lines))
                return {"outcome": "done", "waiting_for": "message"}
            case "await_timer":
                return {"outcome": "done", "waiting_for": "timer"}
            case "search_commands":
                found = [each for each, _ in ranked(given["query"], self.commands, "en")]
                shown = [search_commands._told(each, self.locale) for each in found]
                shown = shown[: given["limit"]]
                return {"outcome": "done", "result": {"commands": shown}}
            case "run_command":
                return self._command(given["code"], given["arguments"], told)
        return self._command(tool.replace("-", "."), given, told)

    def _command(self, code: str, given: dict[str, Any], told: bool) -> Mapping[str, Any]:
        command = next(each for each in self.commands if each.code == code)
        if command.definition.risk == "L2" and not told:
            return {
                "outcome": "refused",
                "reason": "brief_first",
                "advice": "fix_arguments",
                "detail": "Say it first.",
            }
        jsonschema_rs.validator_for(command.definition.input_schema).validate(given)
        result = self.office.run(code, given)
        if result["outcome"] == "done":
            entry = {
                "cmdCode": code,
                "arguments": given,
                "record": result.get("record"),
                "undo": result.get("undo"),
            }
            self.recent.insert(0, entry)
        return result

    def _entry(self, kind: EntryKind, body: Mapping[str, Any]) -> None:
        self.entries.append(Entry(seq=len(self.entries) + 1, kind=kind, body=body, turn=self.turns))

    def _tools(self) -> list[Offered]:
        shown = list(self.commands)
        framework = list(FRAMEWORK)
        if self.is_large:
            text = next(
                (e.body["text"] for e in reversed(self.entries) if e.kind == EntryKind.INPUT), ""
            )
            shown = [each for each, _ in ranked(text, self.commands, self.locale)][:12]
            framework += ["search_commands", "run_command"]
        known = toolbox.discover()
        tools = [
            Offered(name=name, description="", schema=known[name].schema) for name in framework
        ]
        return tools + [
            Offered(
                name=each.code.replace(".", "-"),
                description=each.definition.display_name.in_(self.locale),
                schema=each.definition.input_schema,
                descriptor=each,
            )
            for each in shown
        ]


def answered(ask: Ask) -> tuple[Response, list[str]]:
    """What the planner answers to one ask, and the sentences it thought."""

    async def run() -> tuple[Response, list[str]]:
        thoughts: list[str] = []
        async for piece in OfflinePlanner().stream(ask):
            match piece:
                case ThoughtDelta(text=text):
                    thoughts.append(text)
                case Answered(response=response):
                    return response, thoughts
        raise AssertionError("the stream ended without an answer")

    return asyncio.run(run())


def _text(told: Mapping[str, Any]) -> str:
    return " ".join(map(str, [told["label"], told["state"], *told["fields"].values()])).lower()
