"""The offline planner as a model: no network, no chance, no clock but the ask's (RUN-106).

It is what it is called: everywhere its work shows it is named offline planner, and it never poses
as a language model.
"""

import asyncio
from collections.abc import AsyncIterator

from app.kernel import json
from app.kernel.i18n import N_
from app.runs.models.planner import planner
from app.runs.models.planner.planner import Turn
from app.runs.models.protocol import Answered, Ask, Delta, Proposed, Response, ThoughtDelta, Usage

NAME, VERSION = "offline planner", "1"
LABEL = N_("offline planner")
CONTEXT_TOKENS = 128_000


class OfflinePlanner:
    """A model without a model; the same ask gives the same bytes."""

    name = NAME
    version = VERSION
    label = LABEL
    provider = "offline"
    context_tokens = CONTEXT_TOKENS
    ids_are_per_response = True

    async def stream(self, ask: Ask) -> AsyncIterator[Delta]:
        """Think aloud, sentence by sentence, then answer."""
        turn = await asyncio.to_thread(planner.plan, ask)  # an index of many commands takes a while
        sentences = [f"{sentence}\n" for sentence in turn.thoughts]
        for sentence in sentences:
            yield ThoughtDelta(sentence)
        yield Answered(_response(ask, turn, tuple(sentences)))


def _response(ask: Ask, turn: Turn, sentences: tuple[str, ...]) -> Response:
    last = ask.entries[-1].seq if ask.entries else 0
    calls = tuple(
        Proposed(
            provider_id=f"p{turn.upto}-{last}-{place}{call.purpose.value}",
            name=call.tool,
            arguments=json.dumps(dict(call.arguments)).decode(),
        )
        for place, call in enumerate(turn.move.calls)
    )
    return Response(
        thoughts=("".join(sentences),) if sentences else (),
        text=turn.move.text,
        calls=calls,
        finish="tool_calls" if calls else "stop",
        usage=Usage(input_tokens=0, output_tokens=0),
        model_version=VERSION,
    )
