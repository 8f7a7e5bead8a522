"""What the loop asks a model, and what a model answers; the only words they share (RUN-100).

`Ask.entries` are our transcript in neutral JSON. The bodies, by kind:

- `system`   `{"text"}`: one, the first
- `history`, `input`  `{"message_id", "sender", "sender_name", "sender_kind", "at", "text",
  "is_principal", "is_own", "mode"?, "data"?}`: `text` is data; only where `is_principal` is true
  it is the principal's own person who speaks, all else is quoted
- `response` `{"thoughts": [str], "text": str, "calls": [{"id", "provider_id", "tool",
  "arguments"}]}`: `id` is ours, `arguments` is the raw JSON text
- `results`  `{"call_id", "tool", "text"}`: one call's result; `text` is JSON with `outcome`
- `note`     `{"text", "kind"?, …}`: a line of the host; a `schedule` has the `sender_name` of its
  person too
- `summary`  `{"text", "until_seq"}`: in the place of what was before
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from app.commands.descriptors import Descriptor
from app.runs.states import EntryKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A piece of the transcript; `provider_body` is the library's own form of a response."""

    seq: int
    kind: EntryKind
    body: Mapping[str, Any]
    turn: int = 0
    provider: str | None = None
    provider_body: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A tool as the model sees it; `descriptor` is there for a command."""

    name: str
    description: str
    schema: Mapping[str, Any]
    waits: bool = False
    descriptor: Descriptor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request.

    Attributes:
        recent: the lane's last done commands, the newest first: `{"cmdCode", "record", "undo"}`.
        tools_on: False: tools stay listed, and none may be called.
        locale, timezone: of the principal; `now` is aware.
    """

    entries: Sequence[Entry]
    tools: Sequence[Offered]
    recent: Sequence[Mapping[str, Any]] = ()
    tools_on: bool = True
    output_limit: int = 4_096
    locale: str = "en"
    now: datetime
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """The model's reasoning grew by `text`."""

    text: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The model's text grew by `text`; thought, until the whole response is known."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A call is being written; for progress only."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A call as the model wrote it; `arguments` is its raw text."""

    provider_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the provider counted; `input_tokens` includes cached ones (RUN-104)."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A whole answer; without a `finish` it was cut off, whatever it looks like (RUN-102).

    Attributes:
        finish: `stop`, `tool_calls`, `length`, `content_filter`, `error`; None: the stream ended.
        usage: None where it was not measured.
        model_version: as the provider named what answered.
    """

    thoughts: tuple[str, ...] = ()
    text: str = ""
    calls: tuple[Proposed, ...] = ()
    finish: str | None = None
    usage: Usage | None = None
    model_version: str | None = None
    provider_body: Any = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The stream is over, and this is all of it."""

    response: Response


Delta = ThoughtDelta | TextDelta | CallDelta | Answered


class ModelFault(Exception):
    """The model gave no answer.

    Attributes:
        kind: `connection`, `timeout`, `cut`, `rate_limited`, `overloaded`, `server`, `overflow`,
            `authentication`, `not_found`, `quota`, `rejected`, `filter`, `misconfigured`.
        public: a sentence for people, without anything of the provider's text.
        diagnostic: the hidden cause; for the private record only (RUN-41).
    """

    def __init__(
        self,
        kind: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        public: str = "",
        diagnostic: str = "",
    ) -> None:
        super().__init__(kind)
        self.kind = kind
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.public = public
        self.diagnostic = diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How a model is reached and what it costs; a release names one (RUN-101).

    Attributes:
        kind: `offline`, `openai`, `anthropic`, or `scripted`.
        price_input, price_output: of a million tokens, in `currency`; None: unknown.
        api_key_name: of the secret; the key itself stands in no row, event or fault.
        key_sealed: an administrator's key as it is stored, read with the address it was given for:
            no later change can send it to another one.
    """

    name: str = "default"
    kind: str = "offline"
    model: str = ""
    base_url: str = ""
    api_key_name: str = ""
    key_sealed: bytes | None = field(default=None, repr=False)
    context_tokens: int = 128_000
    output_tokens: int = 4_096
    requires_finish: bool = True
    usage: str = "sum"
    call_ids: str = "run"
    max_tokens_field: str = "new"
    thinking: str = "off"
    price_input: float | None = None
    price_output: float | None = None
    currency: str = "USD"
    options: Mapping[str, Any] = field(default_factory=dict)


class Model(Protocol):
    """What the loop knows of a model.

    Attributes:
        name, version: for the record (`offline planner`, `1`); `label` is what people read.
        provider: `offline`, `openai`, `anthropic`, `scripted`.
        context_tokens: of its window.
        ids_are_per_response: a provider id seen in an earlier response is a new call (RUN-82).
    """

    name: str
    version: str
    label: str
    provider: str
    context_tokens: int
    ids_are_per_response: bool

    def stream(self, ask: Ask) -> AsyncIterator[Delta]:
        """Answer, piece by piece; the last piece is `Answered`.

        Raises:
            ModelFault: there is no answer.
        """
        ...
