"""A process with its master key and signing keys, for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.identity import signing_keys
from app.kernel import keyring, sealing
from app.kernel.settings import Settings


@pytest.fixture
def keys(opened: str, tmp_path: Path) -> Iterator[str]:
    """The open database, with keys that sign checkpoints and redact; its URL."""
    sealing.open_with(Settings(data_dir=tmp_path))
    signing_keys.prepare()
    try:
        yield opened
    finally:
        signing_keys.close()
        keyring.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where checkpoints go."""
    return tmp_path / "checkpoints"
