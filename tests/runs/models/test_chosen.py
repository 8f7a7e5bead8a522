"""The model of a profile, loaded when it is needed and not before (RUN-100, RUN-101)."""

import subprocess
import sys

import pytest
from pydantic import SecretStr

from app.kernel import settings
from app.kernel.settings import Settings
from app.runs.models import chosen, profiles, scripted
from app.runs.models.protocol import ModelFault, Profile
from app.runs.models.scripted import Step
from tests.sources import ROOT

LOADS = """
import asyncio, sys, threading

class Watch:
    threads = {}
    def find_spec(self, name, path=None, target=None):
        self.threads.setdefault(name, threading.current_thread())

sys.meta_path.insert(0, Watch())
import app.main
from app.runs.models import chosen, scripted
from app.runs.models.protocol import Profile

HEAVY = {"pydantic_ai", "openai", "anthropic", "genai_prices"}
assert not HEAVY & sys.modules.keys(), "loaded at the start"
scripted.register("s", [])
asyncio.run(chosen.model_for(Profile(kind="scripted", model="s")))
asyncio.run(chosen.model_for(Profile()))
assert not HEAVY & sys.modules.keys(), "loaded without need"
here = Profile(kind="openai", model="m", base_url="http://127.0.0.1:1/v1",
               api_key_name="ASSENT_MODEL_API_KEY")
asyncio.run(chosen.model_for(here))
assert HEAVY <= sys.modules.keys()
assert Watch.threads["pydantic_ai"] is not threading.main_thread()
print("as it should be")
"""


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "current", lambda: Settings(model_api_key=SecretStr("sk-1")))


@pytest.mark.requirement("RUN-101")
def test_a_providers_library_is_loaded_by_the_first_run_that_needs_it_in_a_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADS], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.stdout.strip().endswith("as it should be"), done.stderr


@pytest.mark.requirement("RUN-100")
async def test_each_kind_of_model_says_what_the_loop_knows_of_it(operator: None) -> None:
    scripted.register("story", [Step()])
    kinds = {
        "offline": Profile(kind="offline"),
        "scripted": Profile(kind="scripted", model="story"),
        "openai": Profile(
            kind="openai", model="m", api_key_name=profiles.OPERATORS_KEY, call_ids="response"
        ),
        "anthropic": Profile(kind="anthropic", model="m", api_key_name=profiles.OPERATORS_KEY),
    }

    models = {kind: await chosen.model_for(profile) for kind, profile in kinds.items()}

    assert {kind: model.provider for kind, model in models.items()} == {k: k for k in kinds}
    assert all(model.name and model.label for model in models.values())
    assert models["openai"].ids_are_per_response
    assert not models["anthropic"].ids_are_per_response


@pytest.mark.requirement("RUN-101")
async def test_a_provider_without_a_key_is_misconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "current", Settings)

    with pytest.raises(ModelFault) as caught:
        await chosen.model_for(
            Profile(kind="openai", model="m", api_key_name=profiles.OPERATORS_KEY)
        )

    assert (caught.value.kind, caught.value.retryable) == ("misconfigured", False)
    assert caught.value.public == profiles.NO_KEY


@pytest.mark.requirement("RUN-101")
@pytest.mark.parametrize(
    ("key", "address"), [("sk-1\n", ""), ("sk-é", ""), ("sk-1", "https://host:99999/v1")]
)
async def test_what_no_request_can_be_made_of_is_misconfigured(
    monkeypatch: pytest.MonkeyPatch, key: str, address: str
) -> None:
    monkeypatch.setattr(settings, "current", lambda: Settings(model_api_key=SecretStr(key)))
    profile = Profile(
        kind="openai", model="m", base_url=address, api_key_name=profiles.OPERATORS_KEY
    )

    with pytest.raises(ModelFault) as caught:
        await chosen.model_for(profile)

    assert (caught.value.kind, caught.value.retryable) == ("misconfigured", False)
    assert key not in caught.value.diagnostic + caught.value.public


@pytest.mark.requirement("RUN-101")
@pytest.mark.parametrize("kind", ["bedrock", ""])
async def test_a_kind_nobody_knows_is_misconfigured(kind: str) -> None:
    with pytest.raises(ModelFault) as caught:
        await chosen.model_for(Profile(kind=kind))

    assert caught.value.kind == "misconfigured"


@pytest.mark.requirement("RUN-101", "SEC-56")
@pytest.mark.parametrize(("name", "is_exempt"), [("default", True), ("added", False)])
async def test_the_guard_makes_way_for_the_operators_address_alone(
    operator: None, name: str, is_exempt: bool
) -> None:
    profile = Profile(
        name=name,
        kind="openai",
        model="m",
        base_url="http://127.0.0.1:4711/v1",
        api_key_name=profiles.OPERATORS_KEY,
    )

    model = await chosen.model_for(profile)

    assert (("127.0.0.1", 4711) in model._allow) is is_exempt  # type: ignore[attr-defined]
