"""What one frame asks of the database: fifty runs that begin at once draw hundreds of them (R3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event
from sqlmodel import Session

from app.access import standing
from app.aun.delivery import STORED
from app.console.live import drawing
from app.console.live.rendering import Hearer
from app.kernel import db, event_log
from app.kernel.db import Work
from app.kernel.event_log import Position
from app.kernel.feed import News
from app.kernel.models import LoggedEvent
from app.kernel.streams import Passing
from app.runs import told
from app.runs.run_models import Run
from tests.console import run_stage
from tests.console.run_rows import RunRows
from tests.console.run_stage import Stage
from tests.people import World


@contextmanager
def asked() -> Iterator[list[str]]:
    """What is read inside the block."""
    said: list[str] = []

    def note(_c: Any, _u: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().startswith("SELECT"):
            said.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield said
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def hers(world: World) -> Hearer:
    """Alice, as her own stream hears of things."""
    person = world.person(world.acme["alice"])
    rights = db.read_now(standing.rights, person)
    assert rights is not None
    return Hearer(person, "en", "UTC", rights.aid)


def newest(stage: Stage, kind: str) -> LoggedEvent:
    """The newest event of a kind that Alice hears of as the one whose run it is."""

    def read(session: Session) -> LoggedEvent:
        log = event_log.since(session, stage.world.acme.id, "", 0)
        assert isinstance(log, list)
        return [each for each in log if each.kind == kind and (each.user_id or each.topic)][-1]

    return db.read_now(read)


async def drawn(stage: Stage, kind: str) -> tuple[str, int]:
    """The frame of the newest event of a kind for Alice, and how much was read for it."""
    news = News(Position("e", 1), newest(stage, kind))
    hearer = hers(stage.world)
    with asked() as said:
        frame = await drawing.of_news(news, hearer)
    return frame.decode(), len(said)


@pytest.mark.requirement("RUN-80", "UI-36")
async def test_room_for_a_thought_costs_the_run_its_request_and_a_place(world: World) -> None:
    async with world.client(world.acme["alice"]) as browser:
        stage = await run_stage.opened(world, browser)

    def play(rows: RunRows) -> None:
        rows.begin()
        rows.turn = 1
        rows.ask(state="started", ended_at=None, finish=None)

    began = told.Began(
        tenant_id=world.acme.id,
        user_id=stage.alice_id,
        run_id=stage.run(play),
        conversation_id=stage.conversation_id,
        turn=1,
        thought_id="t",
        attempt=1,
    )

    hearer = hers(world)
    with asked() as said:
        frame = await drawing.of_passing(Passing(began), hearer)

    assert b"data-streaming" in frame
    assert len(said) == 3, said


async def test_how_a_run_stands_costs_the_run_and_two_names(world: World) -> None:
    async with world.client(world.acme["alice"]) as browser:
        stage = await run_stage.opened(world, browser)
    run_id = stage.run(lambda rows: rows.begin())
    await db.transaction(tell_run, world.acme.id, run_id)

    frame, read = await drawn(stage, told.RUN)

    assert f"run-{run_id}-strip" in frame
    assert read == 3


def tell_run(work: Work, tenant_id: str, run_id: str) -> None:
    """The run is in another state."""
    told.run(work, work.session.get_one(Run, (tenant_id, run_id)))


async def test_nobody_reads_for_a_word_about_a_message_of_their_own(world: World) -> None:
    async with world.client(world.acme["alice"]) as browser:
        stage = await run_stage.opened(world, browser)

    frame, read = await drawn(stage, STORED)

    assert "message-own" in frame
    assert "New message from" not in frame
    assert read <= 21
