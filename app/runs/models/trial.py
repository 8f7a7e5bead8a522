"""One small request to a model, by which an administrator sees that it is set up right."""

from contextlib import aclosing
from dataclasses import dataclass

import anyio

from app.kernel import clock
from app.runs.models import chosen, faults, prices
from app.runs.models.prices import Price
from app.runs.models.protocol import Answered, Ask, Entry, ModelFault, Profile, Response
from app.runs.states import EntryKind

SYSTEM = "You are being tried out by an administrator. Answer with the one word: ready"
QUESTION = "Are you ready?"
WITHIN_S = 120.0  # somebody waits for the page
OUTPUT_TOKENS = 2_048  # some models think before they say a word, whatever they are told
SHOWN = 200  # characters


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it: an answer, or the public sentence of a fault (RUN-41).

    Attributes:
        took_s: seconds until the whole answer.
        price: None: unknown.
    """

    took_s: float
    text: str = ""
    version: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    price: Price | None = None
    fault: str = ""


async def of(profile: Profile) -> Trial:
    """Ask the model of a profile for one word."""
    began = clock.monotonic_s()
    try:
        with anyio.fail_after(WITHIN_S):
            response = await _answer(profile)
    except ModelFault as fault:
        return Trial(clock.monotonic_s() - began, fault=fault.public)
    except TimeoutError:
        return Trial(clock.monotonic_s() - began, fault=faults.PUBLIC["timeout"])
    took_s, used = clock.monotonic_s() - began, response.usage
    return Trial(
        took_s,
        text=response.text.strip()[:SHOWN],
        version=response.model_version or "",
        input_tokens=used.input_tokens if used else None,
        output_tokens=used.output_tokens if used else None,
        price=prices.of(profile, response.model_version, used),
    )


async def _answer(profile: Profile) -> Response:
    model = await chosen.model_for(profile)
    async with aclosing(model.stream(_ask(profile))) as stream:  # type: ignore[type-var]
        async for delta in stream:
            if isinstance(delta, Answered) and delta.response.finish is not None:
                return delta.response
    raise faults.fault("cut")


def _ask(profile: Profile) -> Ask:
    said = {
        "message_id": "trial",
        "sender": "administrator",
        "sender_name": "Administrator",
        "sender_kind": "person",
        "at": clock.now().isoformat(),
        "text": QUESTION,
        "is_principal": True,
        "is_own": False,
    }
    return Ask(
        entries=(
            Entry(seq=1, kind=EntryKind.SYSTEM, body={"text": SYSTEM}),
            Entry(seq=2, kind=EntryKind.INPUT, body=said),
        ),
        tools=(),
        output_limit=min(OUTPUT_TOKENS, profile.output_tokens),
        now=clock.now(),
    )
