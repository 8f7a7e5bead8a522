"""The door in this process or on a port, with people who work on expenses."""

from collections.abc import AsyncIterator, Iterator

import pytest

from app.kernel import rates
from app.mcp import shapes
from tests.mcp import connecting
from tests.mcp.connecting import Mcp
from tests.packs.expenses.desk import Desk
from tests.people import World


@pytest.fixture
def desk(world: World, spenders: None) -> Iterator[Desk]:
    """Everybody who spends, manages and pays; rates are counted from nought, nothing is framed."""
    rates.of_process.cache_clear()
    shapes.frames.forget()
    yield Desk(world)
    rates.of_process.cache_clear()


@pytest.fixture
async def mcp(desk: Desk) -> AsyncIterator[Mcp]:
    """The door in this process, on a database of each kind in turn."""
    async with connecting.inside(desk.world) as made:
        yield made


@pytest.fixture
def served(desk: Desk) -> Iterator[Mcp]:
    """The door on a port, with everything the application starts with."""
    with connecting.served(desk.world) as made:
        yield made
