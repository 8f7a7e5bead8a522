"""Odd answers of a model server: each is an answer that can be kept, or a fault (RUN-102)."""

import asyncio
import warnings
from dataclasses import asdict, replace

import pytest

from app.kernel import json
from app.runs.models import faults, foreign, prices
from app.runs.models.protocol import Answered, Ask, Model, ModelFault, Profile, Response
from app.runs.models.provider import ProviderModel
from app.runs.models.usage import MOST_TOKENS
from tests import strict_provider
from tests.runs.models import odd_answers
from tests.runs.models.asking import ask, input_entry, system_entry
from tests.strict_provider import KEY

pytestmark = pytest.mark.requirement("RUN-102")

LONGEST_S = 60
HELLO = replace(ask(system_entry(), input_entry("Hello")), output_limit=64)


async def outcome(model: Model, asked: Ask) -> Response | ModelFault | str:
    """What came of it; a text is what should never come of it."""
    try:
        async with asyncio.timeout(LONGEST_S):
            async for piece in model.stream(asked):
                if isinstance(piece, Answered):
                    return piece.response
                if any(not isinstance(each, str) for each in asdict(piece).values()):
                    return f"a piece: {piece}"
    except ModelFault as fault:
        return fault
    except Exception as error:  # noqa: BLE001 - the finding
        return f"{type(error).__name__}: {error}"
    return "no answer and no fault"


def wrong_with(found: Response | ModelFault | str, profile: Profile) -> str:
    """Why it cannot be kept, shown or gone on with; empty: it can."""
    match found:
        case ModelFault():
            found.diagnostic.encode()
            if not 0 <= (found.retry_after_s or 0) < LONGEST_S * 1_000:
                return f"wait: {found.retry_after_s}"
            is_ours = found.kind in faults.PUBLIC and found.public == faults.PUBLIC[found.kind]
            return "" if is_ours and KEY not in found.diagnostic else repr(vars(found))
        case Response():
            texts = [*found.thoughts, found.text, found.model_version or ""]
            texts += [text for call in found.calls for text in asdict(call).values()]
            if texts != [foreign.clean(text) for text in texts]:
                return f"texts: {texts!r:.200}"
            counted = asdict(found.usage).values() if found.usage else ()
            if any(type(each) is not int or not 0 <= each <= MOST_TOKENS for each in counted):
                return f"usage: {found.usage}"
            prices.of(profile, found.model_version, found.usage)
            return "" if json.dumps(asdict(found) | {"provider_body": None}) else "nothing"
    return found


@pytest.mark.parametrize("about", ["bytes", "counted", "worded", "shaped"])
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_every_odd_answer_is_one_that_can_be_kept_or_a_fault(wire: str, about: str) -> None:
    wrong = {}
    with strict_provider.serving() as provider, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library's, about what it read
        profile = Profile(
            kind=wire,
            model="strict-1",
            base_url=provider.url(wire),
            price_input=1_000_000.0,
            price_output=1_000_000.0,
        )
        allowed = frozenset({("127.0.0.1", provider.port)})
        answers = odd_answers.of(wire, about)
        for name, odd in answers.items():
            provider.will(odd)
            found = await outcome(ProviderModel(profile, KEY, allowed), HELLO)
            if why := wrong_with(found, profile):
                wrong[name] = why

    assert wrong == {}
    assert provider.complaints == []
    assert len(provider.asked) == len(answers) > 10, "each was asked once, and no redirect followed"
