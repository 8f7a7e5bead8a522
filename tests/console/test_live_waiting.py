"""What waits on one stream: its order, what may go before what, and what speaks for what."""

import asyncio
from collections.abc import Sequence

import pytest

from app.console.live import families
from app.console.live.rendering import Partial, Pass, Render
from app.console.live.waiting import Waiting
from app.identity.facts import AccessChanged
from app.kernel import clock, deltas
from app.kernel.event_log import Gap, Position
from app.kernel.feed import Item, News
from app.kernel.models import LoggedEvent
from app.kernel.streams import Passing

pytestmark = pytest.mark.anyio
ROW, STATE, TURN = "test.row", "test.state", "test.turn"
Told = Item | Passing


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that stands apart, a state that stands apart, and a turn, which holds growing text."""
    found = families.Families(
        renders={
            ROW: [Render(lambda *_: [], is_apart=True)],
            STATE: [Render(lambda *_: [], is_standing=True, is_apart=True)],
            TURN: [Render(lambda *_: [])],
        },
        passes={AccessChanged: Pass(lambda *_: [Partial("#p", "outerHTML")])},
    )
    monkeypatch.setattr(families, "found", lambda: found)


class Line:
    """One that waits, drawn by hand."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.woken = asyncio.Event()
        self.waiting = Waiting(self._draw, self.woken.set)
        self._futures: dict[str, asyncio.Future[bytes]] = {}
        self._names: dict[int, str] = {}

    def add(self, *named: tuple[str, Told]) -> None:
        """Let things wait, each under a name."""
        self._names |= {id(item): name for name, item in named}
        self.waiting.add([item for _, item in named])

    async def draw(self, *names: str) -> None:
        """Some of what is being drawn is done."""
        for name in names:
            self._futures[name].set_result(name.encode())
        await asyncio.wait_for(self.woken.wait(), 5)
        self.woken.clear()

    def sent(self) -> str:
        """What can be sent now, by names; `-` for what sends nothing."""
        return " ".join(drawn.decode() or "-" for _, drawn in self.waiting.take())

    def _draw(self, item: Told) -> bytes | asyncio.Future[bytes]:
        name = self._names[id(item)]
        if isinstance(item, Gap) or (isinstance(item, Passing) and deltas.NAME in item.drawn):
            return name.encode()
        self.asked.append(name)
        future = self._futures[name] = asyncio.get_running_loop().create_future()
        return future


def news(kind: str, subject: str = "s", user_id: str | None = "u") -> News:
    event = LoggedEvent(
        tenant_id="t", seq=1, at=clock.now(), kind=kind, subject=subject, user_id=user_id, data={}
    )
    return News(Position("e", 1), event)


def passing(drawn: Sequence[str] = ()) -> Passing:
    event = AccessChanged(tenant_id="t", ends=False, why="")
    return Passing(event, dict.fromkeys(drawn, b""))


def text() -> Passing:
    return passing([deltas.NAME])


@pytest.mark.requirement("UI-36")
async def test_growing_text_waits_for_its_room_and_for_no_row() -> None:
    line = Line()
    line.add(("row", news(ROW)), ("room", passing()), ("text", text()))

    assert line.sent() == "", "nothing is drawn, and text never comes before its room"
    await line.draw("room")
    assert line.sent() == "room text"
    line.add(("more", text()))
    assert line.sent() == "more"
    await line.draw("row")
    assert line.sent() == "row"
    assert len(line.waiting) == 0


@pytest.mark.requirement("UI-36", "UI-37")
async def test_room_waits_for_the_turn_before_it_and_text_for_nothing_else() -> None:
    line = Line()
    line.add(("turn", news(TURN)), ("old", text()), ("room", passing()), ("new", text()))
    await line.draw("room")

    assert line.sent() == "old", "what is to be replaced may grow until then"
    await line.draw("turn")
    assert line.sent() == "turn room new"


@pytest.mark.requirement("UI-39")
async def test_nothing_goes_before_a_gap() -> None:
    line = Line()
    line.add(("row", news(ROW)), ("gap", Gap(Position("e", 2))), ("text", text()))

    assert line.sent() == ""
    await line.draw("row")
    assert line.sent() == "row gap text"


@pytest.mark.requirement("UI-34")
async def test_events_of_the_log_come_in_order_and_are_drawn_one_at_a_time() -> None:
    line = Line()
    line.add(("first", news(ROW, "1")), ("second", news(ROW, "2")), ("third", news(TURN)))

    assert line.asked == ["first"]
    await line.draw("first")
    assert line.asked == ["first"], "who does not read has no more drawn"
    assert line.sent() == "first"
    assert line.asked == ["first", "second"]
    await line.draw("second")
    assert line.sent() == "second"
    await line.draw("third")
    assert line.sent() == "third"


@pytest.mark.requirement("UI-34", "UI-39")
async def test_of_how_one_thing_stands_the_newest_that_waits_is_drawn() -> None:
    line = Line()
    line.add(("begun", news(STATE)))
    line.add(("skipped", news(STATE)), ("row", news(ROW)))
    line.add(("other", news(STATE, "2")), ("auditors", news(STATE, user_id=None)))
    line.add(("newest", news(STATE)))

    said = []
    for name in ("begun", "row", "other", "auditors", "newest"):
        await line.draw(name)
        said.append(line.sent())

    assert said == ["begun -", "row", "other", "auditors", "newest"]
    line.add(("later", news(STATE)))
    assert line.asked[-1] == "later", "nothing that was sent speaks for what comes"


async def test_what_ends_lets_go_of_what_is_being_drawn() -> None:
    line = Line()
    line.add(("row", news(ROW)), ("room", passing()))

    line.waiting.close()

    await asyncio.sleep(0)
    assert all(future.cancelled() for future in line._futures.values())
    assert line.sent() == ""
