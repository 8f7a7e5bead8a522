"""A run's thoughts for a viewer outside: the head that their own client reads (aun.md, 7.2).

The console reads the run's own events. Nobody but the AID through which the run's user speaks ever
gets a head; what it says of calls is masked as the record is, and short.
"""

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session

from app.aun import kinds, queries, thoughts
from app.aun.thoughts import Heading
from app.kernel import db, json
from app.kernel.db import Work
from app.runs.outcome import Result, Suspended
from app.runs.session import Facts, RunSession
from app.runs.tool import Prepared

SHORT = 4 << 10  # bytes of arguments, and of a result
CONTEXT = "run"


async def look(run: RunSession) -> None:
    """Find out who is to see what the run thinks, outside of here; mostly nobody."""
    current = run.current_input
    run.viewer_aid = None
    if current is None or run.facts.user_id is None:
        return
    if await kinds.is_hosted(run.facts.tenant_id, current.sender_aid):
        return
    if await db.read(_is_of_principal, run.facts, current.sender_aid):
        run.viewer_aid = current.sender_aid


def _is_of_principal(session: Session, facts: Facts, aid: str) -> bool:
    """Whether the run's user speaks through it still: a link may have ended meanwhile."""
    return aid in queries.aids_of_user(session, facts.tenant_id, facts.user_id or "")


def thought(work: Work, run: RunSession, text: str, thought_id: str) -> None:
    """What the model said to itself."""
    if text.strip():
        payload = {"type": "thought", "text": text[:SHORT], "stage": "thinking"}
        _append(work, run, f"mt-{thought_id}", payload)


def started(work: Work, run: RunSession, call: Prepared) -> None:
    """A tool call began."""
    payload = {
        "type": "tool_call",
        "call_id": call.call.id,
        "name": call.call.tool,
        "arguments": _short(call.redacted),
        "text": call.call.tool,
    }
    _append(work, run, f"mt-{call.call.id}-{call.attempt}", payload)


def finished(work: Work, run: RunSession, call: Prepared, result: Result | Suspended) -> None:
    """A tool call has its result."""
    if isinstance(result, Suspended):
        return
    data = result.data()
    ok = data["outcome"] == "done"
    payload = {
        "type": "tool_result",
        "call_id": call.call.id,
        "ok": ok,
        "result" if ok else "error": _short(data),
        "text": f"{call.call.tool}: {data['outcome']}",
    }
    _append(work, run, f"mt-{call.call.id}-{call.attempt}-result", payload)


def _append(work: Work, run: RunSession, thought_id: str, payload: dict[str, Any]) -> None:
    if run.viewer_aid is None:
        return
    heading = Heading(
        tenant_id=run.facts.tenant_id,
        sender_aid=run.facts.agent_aid,
        peer=run.viewer_aid,
        context_type=CONTEXT,
        context_id=run.facts.run_id,
    )
    thoughts.append(work, heading, thought_id, payload)


def _short(value: Mapping[str, Any]) -> Any:
    text = json.dumps(dict(value))
    return dict(value) if len(text) <= SHORT else {"cut": text[:SHORT].decode("utf-8", "ignore")}
