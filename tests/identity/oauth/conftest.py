from collections.abc import Iterator

import pytest

from app.identity import signing_keys
from app.identity.oauth import cimd
from app.kernel import rates
from tests.identity.oauth.flow import Flow
from tests.people import World


@pytest.fixture
def flow(world: World) -> Iterator[Flow]:
    """The authorization server of the world, seen by a client and by Alice's browser."""
    rates.of_process.cache_clear()
    cimd._failures.clear()
    signing_keys.prepare()
    yield Flow(world)
    signing_keys.close()
