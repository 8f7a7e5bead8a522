"""The master key, what is sealed under it, and rings of keys."""

import base64
import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.kernel import clock, db, events, keyring, sealing
from app.kernel.db import Work
from app.kernel.events import Broadcast
from app.kernel.settings import Settings


def settings(folder: Path, key: str | None = None) -> Settings:
    return Settings(data_dir=folder, master_key=SecretStr(key) if key else None)


@pytest.fixture
def sealed_here(tmp_path: Path) -> Iterator[Settings]:
    chosen = settings(tmp_path)
    sealing.open_with(chosen)
    yield chosen
    keyring.close()


@pytest.mark.requirement("SEC-80")
def test_the_first_start_makes_a_key_only_its_owner_can_read(tmp_path: Path) -> None:
    sealing.open_with(settings(tmp_path / "new"))

    assert (tmp_path / "new" / "master.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("SEC-80")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_stops_the_start(tmp_path: Path, mode: int) -> None:
    sealing.open_with(settings(tmp_path))
    (tmp_path / "master.key").chmod(mode)

    with pytest.raises(sealing.MasterKeyProblem, match="chmod 600"):
        sealing.open_with(settings(tmp_path))


@pytest.mark.requirement("SEC-80")
def test_two_processes_that_start_together_have_one_key(tmp_path: Path) -> None:
    found: list[bytes] = []
    starting = threading.Barrier(8)

    def start() -> None:
        starting.wait(5)
        found.append(sealing._master_key(settings(tmp_path)))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert len(found) == 8
    assert len(set(found)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["master.key"]


@pytest.mark.requirement("SEC-80")
def test_what_is_sealed_opens_for_its_purpose_and_under_its_key_only(tmp_path: Path) -> None:
    ours = base64.urlsafe_b64encode(os.urandom(32)).decode()
    theirs = base64.urlsafe_b64encode(os.urandom(32)).decode()
    sealing.open_with(settings(tmp_path, ours))
    sealed = sealing.seal(b"secret", "signing_key:1")

    assert sealing.unseal(sealed, "signing_key:1") == b"secret"
    assert b"secret" not in sealed
    with pytest.raises(sealing.CannotUnseal):
        sealing.unseal(sealed, "signing_key:2")
    with pytest.raises(sealing.CannotUnseal):
        sealing.unseal(sealed[:-1] + bytes([sealed[-1] ^ 1]), "signing_key:1")
    sealing.open_with(settings(tmp_path, theirs))
    with pytest.raises(sealing.CannotUnseal):
        sealing.unseal(sealed, "signing_key:1")


@pytest.mark.requirement("SEC-80")
@pytest.mark.parametrize("key", ["short", "A" * 44, base64.b64encode(b"x" * 16).decode()])
def test_a_malformed_key_is_told_without_showing_it(tmp_path: Path, key: str) -> None:
    with pytest.raises(sealing.MasterKeyProblem) as problem:
        sealing.open_with(settings(tmp_path, key))

    assert key not in str(problem.value)


@pytest.mark.requirement("SEC-82")
async def test_a_rotated_ring_signs_anew_and_still_verifies_the_old(
    opened: str, sealed_here: Settings
) -> None:
    await in_thread(keyring.prepare, "csrf")
    old = keyring.sign("csrf", "session:1")

    await db.transaction(keyring.rotate, "csrf")
    await in_thread(keyring.reload)

    assert keyring.sign("csrf", "session:1") != old
    assert keyring.verifies("csrf", "session:1", old)
    assert not keyring.verifies("csrf", "session:2", old)

    await db.transaction(keyring.end_retiring, "csrf", clock.now() + timedelta(seconds=1))
    await in_thread(keyring.reload)
    assert not keyring.verifies("csrf", "session:1", old)


@pytest.mark.requirement("SEC-82")
async def test_a_ring_that_units_hold_is_read_anew_wherever_it_was_rotated(
    opened: str, sealed_here: Settings
) -> None:
    purpose = "redaction:01JDXP5Y8GZ0000000000000AB"
    first = await db.transaction(keyring.held, purpose)
    again = await db.transaction(keyring.held, purpose)

    await db.transaction(keyring.rotate, purpose)
    second = await db.transaction(keyring.held, purpose)

    assert again == first
    assert second[1:] == first, "the old one still opens"
    assert second[0] != first[0]

    news = keyring.RingRotated(tenant_id="", purpose=purpose).to_wire()  # of another process
    before = await db.transaction(keyring.held, purpose)
    await db.transaction(_rotate_unheard, purpose)
    unheard = await db.transaction(keyring.held, purpose)
    events.deliver(Broadcast.from_wire(news))
    heard = await db.transaction(keyring.held, purpose)

    assert unheard == before
    assert heard[1:] == before


def _rotate_unheard(work: Work, purpose: str) -> None:
    """What another process did: the rows, and no news of it here."""
    keyring.rotate(work, purpose)
    work._events.clear()


@pytest.mark.requirement("SEC-82")
async def test_a_ring_is_the_same_after_a_restart(opened: str, sealed_here: Settings) -> None:
    await in_thread(keyring.prepare, "csrf")
    mac = keyring.sign("csrf", "session:1")

    keyring.close()
    await in_thread(keyring.prepare, "csrf")

    assert keyring.verifies("csrf", "session:1", mac)


async def in_thread(function: "object", *arguments: object) -> None:
    import asyncio

    assert callable(function)
    await asyncio.to_thread(function, *arguments)
