"""Which models there are, and where their keys are and are not (RUN-101)."""

from dataclasses import replace

import pytest
import sqlalchemy as sa
from pydantic import SecretStr
from sqlmodel import Session

from app.kernel import db, sealing, settings
from app.kernel.settings import Settings
from app.runs.models import chosen, profiles, trial
from app.runs.models.protocol import ModelFault, Profile
from tests import strict_provider
from tests.people import World
from tests.strict_provider import KEY

pytestmark = pytest.mark.requirement("RUN-101")

SECRET = "sk-never-to-be-seen"
CLAUDE = Profile(
    name="claude",
    kind="anthropic",
    model="claude-next",
    context_tokens=200_000,
    thinking="low",
    price_input=3.0,
    price_output=15.0,
)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "current", lambda: Settings(model_api_key=None))


def test_the_settings_are_the_profile_default() -> None:
    asked = Settings(
        model="openai:qwen3:8b",
        model_base_url="http://127.0.0.1:11434/v1/",
        model_context_tokens=32_000,
        model_usage="last",
        model_call_ids="response",
        model_max_tokens_field="old",
        model_requires_finish=False,
        model_price_input=0.5,
        model_api_key=SecretStr(SECRET),
    )

    found = profiles.of_settings(asked)

    assert (found.name, found.kind, found.model) == ("default", "openai", "qwen3:8b")
    assert found.base_url == "http://127.0.0.1:11434/v1"
    assert (found.context_tokens, found.output_tokens) == (32_000, 4_096)
    assert (found.usage, found.call_ids, found.max_tokens_field) == ("last", "response", "old")
    assert (found.requires_finish, found.price_input, found.price_output) == (False, 0.5, None)
    assert SECRET not in repr(found)
    assert SECRET not in repr(asked)


def test_nothing_set_is_the_planner() -> None:
    assert profiles.of_settings(Settings()).kind == "offline"


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "gpt-9"},
        {"model": "openai:"},
        {"model": "bedrock:x"},
        {"model_base_url": "ftp://host/v1"},
        {"model_base_url": "https://user:pass@host/v1"},
        {"model_base_url": "host/v1"},
        {"model_currency": "euro"},
        {"model_price_input": -1},
        {"model_thinking": "deep"},
    ],
)
def test_what_is_malformed_stops_the_start(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Settings.model_validate(wrong)


async def test_an_administrators_profile_is_of_its_tenant_alone(world: World) -> None:
    await db.transaction(profiles.keep, world.acme.id, CLAUDE, SECRET)

    found = await db.read(profiles.find, world.acme.id, "claude")
    listed = await db.read(profiles.all_of, world.acme.id)

    assert found.model == "claude-next"
    assert (found.thinking, found.price_output) == ("low", 15.0)
    assert [each.name for each in listed] == ["default", "claude"]
    with pytest.raises(ModelFault) as caught:
        await db.read(profiles.find, world.globex.id, "claude")
    assert (caught.value.kind, caught.value.public) == ("misconfigured", profiles.UNKNOWN)


async def test_a_key_is_sealed_for_its_profile_and_stands_nowhere_else(world: World) -> None:
    await db.transaction(profiles.keep, world.acme.id, CLAUDE, SECRET)
    await db.transaction(profiles.keep, world.acme.id, CLAUDE, None)  # keeps it

    found = await db.read(profiles.find, world.acme.id, "claude")
    stored = await db.read(_stored)

    assert SECRET not in repr(found)
    assert SECRET not in stored
    assert profiles.key_of(found) == SECRET


async def test_a_key_moved_to_another_profile_opens_nothing(world: World) -> None:
    other = Profile(name="other", kind="openai", model="x")
    await db.transaction(profiles.keep, world.acme.id, CLAUDE, SECRET)
    await db.transaction(profiles.keep, world.acme.id, other, "sk-other")
    await db.transaction(_move_keys)
    found = await db.read(profiles.find, world.acme.id, "other")

    with pytest.raises(sealing.CannotUnseal):
        profiles.key_of(found)
    with pytest.raises(ModelFault) as caught:
        await chosen.model_for(found)
    assert (caught.value.kind, caught.value.public) == ("misconfigured", profiles.NO_KEY)


async def test_a_key_given_for_another_address_never_goes_to_the_one_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with strict_provider.serving() as before, strict_provider.serving() as after:
        ports = [f"127.0.0.1:{each.port}" for each in (before, after)]
        monkeypatch.setattr(settings, "current", lambda: Settings(outbound_allow=ports))
        named = Profile(name="own", kind="openai", model="x", base_url=before.openai)
        await db.transaction(profiles.keep, world.acme.id, named, KEY)
        found = await db.read(profiles.find, world.acme.id, "own")
        moved = replace(named, base_url=after.openai)

        await db.transaction(profiles.keep, world.acme.id, moved, "sk-of-the-new-address")
        tried = await trial.of(found)

        assert (tried.text, tried.fault) == ("OK.", "")
        assert [each.headers["authorization"] for each in before.asked] == [f"Bearer {KEY}"]
        assert after.asked == []
    assert (await db.read(profiles.find, world.acme.id, "own")).base_url == moved.base_url


async def test_nobody_may_take_the_operators_name(world: World) -> None:
    with pytest.raises(ValueError, match="default"):
        await db.transaction(profiles.keep, world.acme.id, Profile(name="default"), None)


def _stored(session: Session) -> str:
    return repr(session.execute(sa.text("SELECT * FROM model_profile")).all())


def _move_keys(work: db.Work) -> None:
    work.session.execute(
        sa.text(
            "UPDATE model_profile SET key_sealed = "
            "(SELECT key_sealed FROM model_profile WHERE name = 'claude') WHERE name = 'other'"
        )
    )
