"""A sentence put to the model of agents, dry: what it goes for, with nothing carried out.

It is offered what a run would offer it. What it looks up is answered by whoever asks; the first
command that writes, or else the first that reads, is what it goes for.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.commands.descriptors import Descriptor
from app.kernel import clock, json
from app.runs import command_tool, context, offering, toolbox
from app.runs.models.protocol import Answered, Ask, Entry, Model, Proposed, Response
from app.runs.states import EntryKind
from app.runs.toolbox import search_commands

TURNS = 8
FRAMEWORK = ("send_message", "read_record", "await_message", "finish_silently")
RUN_ANY, WAIT, SILENCE = "run_command", "await_message", "finish_silently"

Look = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a model went for.

    Attributes:
        code: the command it called, or asked values for; None: neither.
        input: of the call; None where it asked first.
        among: the commands between which it asked.
        said: what it would have said meanwhile.
    """

    code: str | None = None
    input: Mapping[str, Any] | None = None
    among: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


@dataclass
class Sentence:
    """One sentence of a person, and what the model makes of it, turn by turn.

    Attributes:
        look: answers `read_record`, and by their codes commands that only read.
    """

    text: str
    commands: Sequence[Descriptor]
    locale: str
    look: Look
    timezone: str = "UTC"
    _entries: list[Entry] = field(default_factory=list)
    _said: list[str] = field(default_factory=list)
    _read: Wanted | None = None

    async def put_to(self, model: Model) -> Wanted:
        """What `model` goes for.

        Raises:
            ModelFault: it gives no answer.
        """
        self._begin()
        for turn in range(1, TURNS + 1):
            response = await _answer(model, self._ask())
            told = [_told(turn, place, each) for place, each in enumerate(response.calls)]
            body = {"thoughts": list(response.thoughts), "text": response.text, "calls": told}
            self._entry(EntryKind.RESPONSE, body, turn)
            for call in told:
                if wanted := await self._goes_for(turn, call):
                    return wanted
            if not told:
                self._said += filter(None, [response.text])
                break
        return self._in_the_end()

    def _begin(self) -> None:
        self._entry(EntryKind.SYSTEM, {"text": context.PREAMBLE.format(name="Assent")}, 0)
        person = {"sender": "user", "sender_name": "User", "sender_kind": "person"}
        said = {"message_id": "1", "at": clock.rfc3339(clock.now()), "text": self.text}
        self._entry(EntryKind.INPUT, {**person, **said, "is_principal": True, "is_own": False}, 0)

    def _ask(self) -> Ask:
        shown, names = list(self.commands), list(FRAMEWORK)
        if len(shown) > offering.ALL_UP_TO:
            shown = command_tool.best(self.text, shown, self.locale)[: offering.BEST]
            names += offering.OF_COMMANDS
        known = toolbox.discover()
        tools = [known[name] for name in sorted(names)]
        tools += [command_tool.tool_for(each, self.locale) for each in shown]
        return Ask(
            entries=tuple(self._entries),
            tools=offering.offered({tool.name: tool for tool in tools}),
            locale=self.locale,
            now=clock.now(),
            timezone=self.timezone,
        )

    async def _goes_for(self, turn: int, call: Mapping[str, str]) -> Wanted | None:
        """What a call is about; None: it looks or speaks, and was answered."""
        given = _object(call["arguments"])
        code, given = self._command(call["tool"], given)
        if code is not None:
            wanted = Wanted(code, given, said=tuple(self._said))
            if self._writes(code):
                return wanted
            self._read = self._read or wanted
        elif call["tool"] == WAIT:
            return self._asked(given)
        result = await self._result(code or call["tool"], given)
        body = {"call_id": call["id"], "tool": call["tool"], "text": json.dumps(result).decode()}
        self._entry(EntryKind.RESULTS, body, turn)
        return self._in_the_end() if call["tool"] == SILENCE else None

    def _command(self, tool: str, given: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
        if tool == RUN_ANY:
            return str(given.get("code")), given.get("arguments") or {}
        codes = {command_tool.name_of(each.code): each.code for each in self.commands}
        return codes.get(tool), given

    def _writes(self, code: str) -> bool:
        return any(each.code == code and each.definition.writes for each in self.commands)

    def _asked(self, given: Mapping[str, Any]) -> Wanted:
        """A question: the planner keeps in it what it is about."""
        expects = given.get("expects")
        about = expects if isinstance(expects, Mapping) else {}
        options = about.get("options") if about.get("kind") == "command" else None
        said = (*self._said, str(given.get("question", "")))
        return Wanted(about.get("code"), None, tuple(options or ()), said)

    async def _result(self, name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        match name:
            case "send_message":
                self._said.append(str(given.get("text", "")))
            case "search_commands":
                best = command_tool.best(str(given.get("query")), self.commands, self.locale)
                shown = [self._found(each) for each in best[: search_commands.USUAL]]
                return {"outcome": "done", "result": {"commands": shown}}
            case "finish_silently":
                pass
            case _:
                return await self.look(name, given)
        return {"outcome": "done", "result": {}}

    def _found(self, each: Descriptor) -> Mapping[str, Any]:
        said = each.data(self.locale)
        told = {"code": each.code, "description": command_tool.described(each, self.locale)}
        return told | {name: said[name] for name in search_commands.SHOWN}

    def _in_the_end(self) -> Wanted:
        return replace(self._read or Wanted(), said=tuple(self._said))

    def _entry(self, kind: EntryKind, body: Mapping[str, Any], turn: int) -> None:
        self._entries.append(Entry(seq=len(self._entries) + 1, kind=kind, body=body, turn=turn))


async def _answer(model: Model, ask: Ask) -> Response:
    async for piece in model.stream(ask):
        if isinstance(piece, Answered):
            return piece.response
    return Response()


def _told(turn: int, place: int, call: Proposed) -> dict[str, str]:
    own = {"id": f"c{turn}-{place}", "provider_id": call.provider_id}
    return {**own, "tool": call.name, "arguments": call.arguments}


def _object(arguments: str) -> Mapping[str, Any]:
    try:
        given = json.loads((arguments or "{}").encode())
    except ValueError:
        return {}
    return given if isinstance(given, Mapping) else {}
