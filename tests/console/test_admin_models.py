"""An administrator sets up a model, tries it, gives it to an agent; its key goes nowhere else."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx2
import pytest
from sqlalchemy import text
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.kernel import clock, db, http, settings
from app.kernel.db import Work
from app.kernel.settings import Settings
from app.runs.models import administered, profiles, trial
from app.runs.models.profile_models import ModelProfile
from app.runs.models.protocol import Profile
from tests import strict_provider
from tests.people import World
from tests.runs.models import odd_answers
from tests.strict_provider import KEY, LEAK, Counted, Fail, Say, StrictProvider

BLOCKS = text("SELECT 1 FROM pg_locks WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)) LIMIT 1")
LONGEST_S, PATIENCE_S = 20, 3
SOUND = {
    "name": "fast",
    "kind": "openai",
    "model": "gpt-5-mini",
    "api_key": KEY,
    "requires_finish": "true",
}
SOUND_CHANGE = {"kind": "openai", "model": "gpt-5-mini"}


@pytest.fixture
def provider(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictProvider]:
    with strict_provider.serving() as served:
        chosen = Settings(outbound_allow=[f"127.0.0.1:{served.port}"])
        monkeypatch.setattr(settings, "current", lambda: chosen)
        yield served


def stored(session: Session, name: str = "fast") -> ModelProfile | None:
    return session.exec(select(ModelProfile).where(ModelProfile.name == name)).first()


def key_of(world: World) -> str | None:
    return profiles.key_of(db.read_now(profiles.find, world.acme.id, "fast"))


def entries(session: Session) -> list[AuditEntry]:
    query = select(AuditEntry).where(col(AuditEntry.command).startswith("model.profile."))
    return list(session.exec(query.order_by(col(AuditEntry.seq))).all())


async def add(browser: httpx2.AsyncClient, **changed: str) -> httpx2.Response:
    return await browser.post("/admin/models", data=SOUND | changed)


@pytest.mark.requirement("RUN-101")
async def test_a_model_is_added_shown_and_chosen_and_its_key_never_seen(world: World) -> None:
    ada = world.client(world.acme["ada"])

    made = await add(ada, price_input="1.25", price_output="10", currency="CNY")
    page = await ada.get("/admin/models/fast")
    listed = await ada.get("/admin/models")
    form = await ada.get("/admin/models/fast/edit")
    agent = await ada.get(f"/admin/agents/{world.acme.agents['stock'].id}/edit")

    assert made.headers["location"] == "/admin/models/fast"
    row = db.read_now(stored)
    assert row is not None
    assert (row.kind, row.model, row.price_output, row.currency) == (
        "openai", "gpt-5-mini", 10.0, "CNY",
    )  # fmt: skip
    assert key_of(world) == KEY
    assert "gpt-5-mini" in page.text
    assert "gpt-5-mini" in listed.text
    assert "fast (gpt-5-mini)" in agent.text
    recorded = db.read_now(entries)
    assert [each.command for each in recorded] == ["model.profile.add"]
    assert KEY not in page.text + listed.text + form.text + repr(recorded)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("name", {"name": "default"}),
        ("name", {"name": "new"}),
        ("name", {"name": "Fast One"}),
        ("kind", {"kind": "offline"}),
        ("model", {"model": " "}),
        ("base_url", {"base_url": "http://10.0.0.1/v1"}),
        ("api_key", {"api_key": "sk-one sk-two"}),
        ("api_key", {"api_key": "sk-\tx"}),
        ("api_key", {"api_key": "密钥"}),
        ("base_url", {"base_url": "https://user:pass@host.example/v1"}),
        ("price_output", {"price_input": "1"}),
        ("price_input", {"price_input": "-1", "price_output": "2"}),
        ("currency", {"currency": "euro"}),
        ("output_tokens", {"context_tokens": "4000", "output_tokens": "4000"}),
        ("context_tokens", {"context_tokens": "many"}),
    ],
)
async def test_what_will_not_do_is_said_at_its_field_and_nothing_typed_is_lost(
    world: World, field: str, wrong: dict[str, str]
) -> None:
    answer = await add(world.client(world.acme["ada"]), **wrong)

    assert answer.status_code == 422
    assert f'id="field-{field}-error"' in answer.text
    if "model" not in wrong:
        assert "gpt-5-mini" in answer.text
    assert KEY not in answer.text
    assert db.read_now(stored) is None


async def test_a_second_one_of_a_name_is_not_made(world: World) -> None:
    ada = world.client(world.acme["ada"])
    await add(ada)

    answer = await add(ada, model="other")

    assert answer.status_code == 422
    assert "Another model has this name." in answer.text


@pytest.mark.requirement("RUN-101")
async def test_a_key_does_not_follow_to_another_address(world: World) -> None:
    ada = world.client(world.acme["ada"])
    await add(ada)
    said = {"kind": "openai", "model": "gpt-5"}
    moved = said | {"base_url": "https://elsewhere.example/v1"}

    kept = await ada.post("/admin/models/fast", data=said)
    refused = await ada.post("/admin/models/fast", data=moved)
    other_wire = await ada.post("/admin/models/fast", data=said | {"kind": "anthropic"})
    row = db.read_now(stored)
    renewed = await ada.post("/admin/models/fast", data=moved | {"api_key": "sk-elsewhere"})
    key = key_of(world)
    forgotten = await ada.post("/admin/models/fast", data=said | {"forgets_key": "true"})

    assert kept.status_code == renewed.status_code == forgotten.status_code == 303
    assert refused.status_code == other_wire.status_code == 422
    assert 'id="field-api_key-error"' in refused.text
    assert row is not None
    assert (row.model, row.base_url) == ("gpt-5", "")
    assert key == "sk-elsewhere"
    assert key_of(world) is None
    changes = [each.changes or [] for each in db.read_now(entries)[1:]]
    fields = [[each["field"] for each in entry] for entry in changes]
    assert fields == [["model"], ["base_url", "key"], ["base_url", "key"]]
    assert "sk-elsewhere" not in repr(changes)


async def test_a_model_an_agent_thinks_with_is_not_removed(world: World) -> None:
    ada = world.client(world.acme["ada"])
    await add(ada)
    stock = world.acme.agents["stock"]
    draft = {"name": "Stock", "admin_user_id": world.acme["olga"].id, "version": "1"}

    chosen = await ada.post(f"/admin/agents/{stock.id}", data=draft | {"model": "fast"})
    page = await ada.get("/admin/models/fast")
    refused = await ada.post("/admin/models/fast/removal")
    await ada.post(f"/admin/agents/{stock.id}", data=draft | {"model": "default", "version": "2"})
    removed = await ada.post("/admin/models/fast/removal")

    assert chosen.status_code == 303, chosen.text
    assert f"/admin/agents/{stock.id}" in page.text
    assert refused.status_code == 409
    assert "Agents think with it: Stock." in refused.text
    assert removed.headers["location"] == "/admin/models"
    assert db.read_now(stored) is None
    assert db.read_now(entries)[-1].command == "model.profile.remove"


@pytest.mark.requirement("RUN-101", "RUN-102")
async def test_trying_a_model_shows_its_answer_what_it_counted_and_what_it_cost(
    world: World, provider: StrictProvider
) -> None:
    ada = world.client(world.acme["ada"])
    prices = {"price_input": "1000", "price_output": "2000"}
    await add(ada, base_url=provider.openai, **prices)
    provider.will(Say(text=["<b>re", "ady</b>"], usage=Counted(input=20, output=5)))

    answer = await ada.post("/admin/models/fast/trial")

    assert answer.status_code == 200
    assert provider.complaints == []
    assert "&lt;b&gt;ready&lt;/b&gt;" in answer.text
    assert "20 in, 5 out" in answer.text
    assert "0.03 USD" in answer.text


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Fail("authentication"), "did not accept the key"),
        (Fail("not_found"), "does not know this model"),
        (Say(text=["rea"], end="early"), "broke off"),
    ],
)
async def test_trying_a_model_that_fails_says_why_in_our_words(
    world: World, provider: StrictProvider, answer: Say | Fail, sentence: str
) -> None:
    ada = world.client(world.acme["ada"])
    await add(ada, base_url=provider.openai)
    provider.will(answer)

    page = await ada.post("/admin/models/fast/trial")

    assert page.status_code == 200
    assert sentence in page.text
    assert LEAK not in page.text


@pytest.mark.requirement("RUN-102")
@pytest.mark.parametrize("address", ["https://nowhere.invalid/v1", "https://127.0.0.1:{port}/v1"])
async def test_trying_a_model_that_cannot_be_reached_says_so(
    world: World, provider: StrictProvider, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        if host != "127.0.0.1":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [host]

    monkeypatch.setattr(http, "_resolve", resolve)
    ada = world.client(world.acme["ada"])
    await add(ada, base_url=address.format(port=provider.port))

    page = await ada.post("/admin/models/fast/trial")

    assert page.status_code == 200
    assert "The model could not be reached." in page.text


@pytest.mark.requirement("RUN-102")
@pytest.mark.filterwarnings("ignore::UserWarning")  # the library's, about what it read
@pytest.mark.parametrize(
    ("about", "name", "sentence"),
    [
        ("bytes", "html", "fault of its own"),
        ("bytes", "deep json", "fault of its own"),
        ("bytes", "gzip", "fault of its own"),
        ("counted", "usage.prompt_tokens is huge", "tokens unknown"),
        ("counted", "usage.completion_tokens is a fraction", "tokens unknown"),
        ("counted", "created is a word", "fault of its own"),
        ("worded", "model is a list", "It answered."),
        ("worded", "choices.0.delta.content is half a character", "a�b"),
        ("worded", "choices is a number", "fault of its own"),
    ],
)
async def test_trying_a_model_that_answers_oddly_shows_what_can_be_shown(
    world: World, provider: StrictProvider, about: str, name: str, sentence: str
) -> None:
    ada = world.client(world.acme["ada"])
    await add(ada, base_url=provider.openai, price_input="1000000", price_output="1000000")
    provider.will(odd_answers.of("openai", about)[name])

    page = await ada.post("/admin/models/fast/trial")

    assert page.status_code == 200
    assert sentence in page.text


async def test_a_trial_nobody_can_wait_for_ends(
    world: World, provider: StrictProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "WITHIN_S", 0.2)
    ada = world.client(world.acme["ada"])
    await add(ada, base_url=provider.openai)
    provider.will(Say(text=["a", "b", "c", "d"], gate="never"))

    page = await ada.post("/admin/models/fast/trial")

    assert page.status_code == 200
    assert "did not answer in time" in page.text


async def test_the_operators_model_is_shown_and_not_changed(world: World) -> None:
    ada = world.client(world.acme["ada"])

    page = await ada.get("/admin/models/default")
    edit = await ada.get("/admin/models/default/edit")
    change = await ada.post("/admin/models/default", data={"kind": "openai", "model": "x"})
    removal = await ada.post("/admin/models/default/removal")

    assert page.status_code == 200
    assert "cannot be changed here" in page.text
    assert edit.status_code == change.status_code == removal.status_code == 404


async def test_who_may_not_set_up_models_sees_none(world: World) -> None:
    bob = world.client(world.acme["bob"])

    listed = await bob.get("/admin/models")
    made = await add(bob)

    assert listed.status_code == made.status_code == 403
    assert db.read_now(stored) is None


async def at_once(
    unit: Callable[[Work], object], request: Callable[[], Awaitable[httpx2.Response]]
) -> httpx2.Response:
    """The answer to a request that comes while a unit has written and not yet committed.

    PostgreSQL lets them meet; SQLite has one writer, and the request comes second anyway.
    """
    is_under_way = threading.Event()

    def first(work: Work) -> None:
        unit(work)
        work.session.flush()
        is_under_way.set()
        until_s = clock.monotonic_s() + PATIENCE_S
        while not db.is_sqlite() and work.connection.execute(BLOCKS).first() is None:
            if clock.monotonic_s() > until_s:
                break  # it does not even wait

    async def then() -> httpx2.Response:
        assert await asyncio.to_thread(is_under_way.wait, LONGEST_S)
        return await request()

    _, answer = await asyncio.gather(db.transaction(first), then())
    return answer


@pytest.mark.requirement("RUN-101")
async def test_two_changes_at_once_leave_the_key_of_one_with_the_address_of_the_same(
    world: World,
) -> None:
    ada, olga = world.client(world.acme["ada"]), world.person(world.acme["olga"])
    await add(ada)
    moved = Profile(name="fast", kind="openai", model="x", base_url="https://hers.example/v1")

    answer = await at_once(
        lambda work: administered.change(work, olga, moved, "sk-hers"),
        lambda: ada.post("/admin/models/fast", data=SOUND_CHANGE | {"api_key": "sk-his"}),
    )
    row = db.read_now(stored)

    assert answer.status_code == 303
    assert row is not None
    assert (row.base_url, key_of(world)) == ("", "sk-his")


@pytest.mark.requirement("RUN-101")
async def test_a_change_that_was_overtaken_has_to_say_the_key_again(world: World) -> None:
    ada, olga = world.client(world.acme["ada"]), world.person(world.acme["olga"])
    await add(ada)
    moved = Profile(name="fast", kind="openai", model="x", base_url="https://hers.example/v1")

    answer = await at_once(
        lambda work: administered.change(work, olga, moved, "sk-hers"),
        lambda: ada.post("/admin/models/fast", data=SOUND_CHANGE),
    )
    row = db.read_now(stored)

    assert answer.status_code == 422
    assert 'id="field-api_key-error"' in answer.text
    assert row is not None
    assert (row.base_url, key_of(world)) == ("https://hers.example/v1", "sk-hers")


@pytest.mark.parametrize("path", ["/admin/models/fast", "/admin/models/fast/removal"])
async def test_what_is_being_removed_is_neither_changed_nor_removed_again(
    world: World, path: str
) -> None:
    ada, olga = world.client(world.acme["ada"]), world.person(world.acme["olga"])
    await add(ada)
    form: dict[str, Any] = {} if path.endswith("removal") else SOUND_CHANGE

    answer = await at_once(
        lambda work: administered.remove(work, olga, "fast"), lambda: ada.post(path, data=form)
    )

    assert answer.status_code == 404
    assert db.read_now(stored) is None
    assert [each.command for each in db.read_now(entries)] == [
        "model.profile.add", "model.profile.remove",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("fast", "Another model has this name."),
        ("slow", "There are as many models as there can be."),
    ],
)
async def test_of_two_added_at_once_the_second_hears_why_it_is_not(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, sentence: str
) -> None:
    monkeypatch.setattr(administered, "MOST", 1)
    ada, olga = world.client(world.acme["ada"]), world.person(world.acme["olga"])
    hers = Profile(name="fast", kind="openai", model="hers")

    answer = await at_once(
        lambda work: administered.add(work, olga, hers, ""), lambda: add(ada, name=name)
    )
    row = db.read_now(stored)

    assert answer.status_code == 422
    assert sentence in answer.text
    assert row is not None
    assert (row.model, db.read_now(stored, "slow")) == ("hers", None)
