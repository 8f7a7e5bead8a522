"""What a tool answered, as data: text, JSON, or a word for what is neither (RUN-96)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.kernel import json
from app.outside import schemas, texts

LARGEST = 1 << 20  # bytes of a result
SAYS_NO = 2_000  # characters of a refusal
UNREAD = "The answer could not be read."
INPUT, UNAUTHORIZED = "input_not_supported", "unauthorized"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call that was answered.

    Attributes:
        outcome: `refused`: the tool, or its server, said no.
        reason: of a refusal, or `result_unfit`: it was done, and what it gave cannot be used.
        data: `{"text"}` or `{"json"}`; of a refusal what was said, as far as it is shown.
    """

    outcome: Literal["done", "refused"]
    reason: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


class Lost(Exception):
    """There is no answer; `rule` says why, and nothing of what the other side wrote.

    Attributes:
        was_sent: whether the call may have reached the server.
    """

    def __init__(self, rule: str, *, was_sent: bool = False) -> None:
        super().__init__(rule)
        self.rule = rule
        self.was_sent = was_sent


def refused(reason: str, said: str = "") -> Answer:
    """A no, with what the server said to it."""
    return Answer("refused", reason, {"said": texts.shown(said, SAYS_NO)} if said else {})


def done(blocks: Iterable[Any], structured: Any, output: Mapping[str, Any] | None) -> Answer:
    """What a tool gave back; `output` is the schema it promised to keep to.

    A server that answers has done it, also where its answer is of no use: that is not "failed".
    """
    if structured is not None:
        try:
            value = json.loads(json.dumps(structured), max_bytes=LARGEST)
        except (TypeError, ValueError, json.BadJSON):
            return _UNREAD
        if output is not None and not schemas.is_valid(value, output):
            return _UNREAD
        return Answer("done", data={"json": _shown(value)})
    return Answer("done", data={"text": said(blocks)})


def said(blocks: Iterable[Any]) -> str:
    """The blocks of an answer as one text."""
    return texts.shown("\n".join(map(_of_block, blocks)), LARGEST)


_UNREAD = Answer("done", "result_unfit", {"text": UNREAD})


def _shown(value: Any) -> Any:
    """JSON in whose texts nothing hides."""
    match value:
        case str():
            return texts.shown(value, LARGEST)
        case list():
            return [_shown(each) for each in value]
        case dict():
            return {texts.shown(name, LARGEST): _shown(each) for name, each in value.items()}
    return value


def _of_block(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}, {_size(block.data)}]"
        case "resource_link":
            return f"[link to {block.name}: {block.uri}]"
        case "resource":
            inside = block.resource
            found = getattr(inside, "text", None)
            return str(found) if found is not None else f"[file, {_size(inside.blob)}]"
    return "[something else]"


def _size(encoded: str) -> str:
    number = len(encoded) * 3 // 4
    return f"{number} bytes" if number < 1_000 else f"{round(number / 1_000)} kB"
