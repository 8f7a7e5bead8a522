"""One attempt to run a command, as every door hands it over (CMD-26)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.identity.principal import Principal
from app.kernel import ids
from app.kernel.db import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a call of an agent came from, for the trail and for approvals.

    Attributes:
        prompt_ref: id of the message that asked for it; `prompt_digest` is SHA-256 of its text.
        brief: id of the message that told the user before an L2 call, `agent_asserted`, or `none`.
    """

    run_id: str | None = None
    turn: int | None = None
    tool_call_id: str | None = None
    conversation_id: str | None = None
    prompt_ref: str | None = None
    prompt_digest: str | None = None
    model: str | None = None
    model_version: str | None = None
    brief: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt.

    Attributes:
        input: what the caller sent, by the names of the wire, target fields included.
        call_id: unique in the tenant; a run gives one that it can look up after a crash.
        guard: run last in the transaction; it raises `CallerGone` when its caller lost its work.
        parent_call_id, depth: of a call that follows from another one.
    """

    code: str
    input: Mapping[str, Any]
    principal: Principal
    call_id: str = field(default_factory=ids.ulid)
    idempotency_key: str | None = None
    expected_version: int | None = None
    approval_id: str | None = None
    preview: bool = False
    origin: Origin = Origin()
    guard: Callable[[Work], None] | None = None
    parent_call_id: str | None = None
    depth: int = 0
