"""Servers that the guard lets a test reach."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from app.kernel import settings
from tests.outside.servers import Outsider, running
from tests.runs.conftest import scripted, stage

__all__ = ["outside", "scripted", "stage"]


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Outsider]]:
    """Starts servers on loopback, which the operator exempts from the guard."""
    with ExitStack() as stack:
        pairs: list[str] = []

        def start(outsider: Outsider | None = None) -> Outsider:
            made = stack.enter_context(running(outsider))
            pairs.append(made.pair)
            monkeypatch.setenv("ASSENT_OUTBOUND_ALLOW", ",".join(pairs))
            settings.current.cache_clear()
            return made

        yield start
    settings.current.cache_clear()
