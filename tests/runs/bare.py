"""A run's session without a database, for what decides by itself."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from app.kernel import clock
from app.runs.lease import Claim
from app.runs.models.protocol import Entry, Profile, Response, Usage
from app.runs.models.scripted import Script, ScriptedModel
from app.runs.outcome import ProposedCall
from app.runs.release import Content
from app.runs.session import Facts, RunSession, Transcript
from app.runs.states import EntryKind, RunKind
from app.runs.tool import Prepared, Ran, Tool

FACTS = Facts(
    tenant_id="t",
    run_id="r",
    root_run_id="r",
    kind=RunKind.CONVERSATION,
    agent_id="a",
    agent_aid="helper.example.test",
    agent_name="Helper",
    release_id="e",
    lane_id="l",
    conversation_id="c",
    group_id=None,
    other_aid="alice.example.test",
    discussion="",
    user_id="u",
    watcher_id="u",
    task_id=None,
    parent_run_id=None,
    depth=1,
)


def session(entries: Sequence[Entry] = (), **content: Any) -> RunSession:
    """A session that nobody claimed."""
    run = RunSession(
        claim=Claim("t", "r", "token"),
        facts=FACTS,
        content=Content.of(content),
        fingerprint="f",
        principal=None,
        profile=Profile(),
        model=ScriptedModel(Script()),
        transcript=Transcript(entries),
        began_at=clock.now(),
    )
    run.stop = asyncio.Event()
    return run


def tool(name: str = "look", schema: Mapping[str, Any] | None = None, **more: Any) -> Tool:
    """A tool that nobody runs."""

    async def run(_run: RunSession, _call: Prepared) -> Ran:
        raise AssertionError("nothing is to run here")

    shape = schema if schema is not None else {"type": "object", "properties": {}}
    return Tool(name=name, description=name, schema=shape, run=run, **more)


def call(
    name: str = "look", arguments: str = "{}", *, id: str = "1", provider_id: str | None = None
) -> ProposedCall:
    """A call of a response."""
    return ProposedCall(
        id=id,
        provider_id=provider_id or f"p-{id}",
        tool=name,
        arguments=arguments,
        ordinal=0,
        turn=1,
    )


def entry(seq: int, kind: EntryKind, turn: int = 0, **body: Any) -> Entry:
    """A piece of a transcript."""
    return Entry(seq=seq, kind=kind, body=body, turn=turn)


def measured(*, input_tokens: int, output_tokens: int = 1) -> Response:
    """An answer whose tokens the provider counted."""
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    return Response(text="x", finish="stop", usage=usage)
