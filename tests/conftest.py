"""The tests below the browser; their fixtures are in `tests/house.py`."""

import pytest

from tests import house


def pytest_configure(config: pytest.Config) -> None:
    house.join(config)
