"""Which passwords do, and what a digest costs whom (SEC-40)."""

import asyncio

import pytest
from argon2 import extract_parameters

from app.identity import passwords
from app.kernel.errors import Busy, Invalid
from tests.signing_in import DIGEST, PASSWORD

PERSONAL = ("alice@example.com", "Alice Wang 王爱丽", "Example Trading")


@pytest.mark.requirement("SEC-40")
@pytest.mark.parametrize(
    ("password", "says"),
    [
        ("123456789", "Use at least 10 characters."),
        ("ﬀ" * 4, "Use at least 10 characters."),  # NFKC makes eight of them
        ("a" * 257, "Use at most 256 bytes."),
        ("爱" * 86, "Use at most 256 bytes."),
        ("1234567890", "This is one of the most common passwords."),
        ("Qwertyuiop", "This is one of the most common passwords."),
        (
            "\uff11\uff12\uff13\uff14\uff15\uff16\uff17\uff18\uff19\uff10",
            "This is one of the most common passwords.",
        ),
        ("ALICE@example.com", "Do not use your name, login or tenant."),
        ("example trading", "Do not use your name, login or tenant."),
    ],
)
def test_a_weak_password_is_refused_and_told_why(password: str, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        passwords.check_new(password, PERSONAL)

    assert [(error.pointer, error.says) for error in refused.value.errors] == [("password", says)]


@pytest.mark.requirement("SEC-40")
@pytest.mark.parametrize("password", [PASSWORD, "爱" * 10, "a" * 256, "          ", "aaaaaaaaab"])
def test_length_is_all_that_a_password_needs(password: str) -> None:
    assert passwords.check_new(password, PERSONAL)


@pytest.mark.requirement("SEC-40")
async def test_a_digest_has_the_parameters_we_promise() -> None:
    parameters = extract_parameters(await passwords.digest(PASSWORD))

    assert (parameters.type.name, parameters.memory_cost) == ("ID", 19_456)
    assert (parameters.time_cost, parameters.parallelism) == (2, 1)


@pytest.mark.requirement("SEC-40")
async def test_a_password_is_the_same_however_its_characters_were_composed() -> None:
    stored = await passwords.digest(passwords.check_new("café au lait, s'il", ()))

    assert await passwords.is_right(stored, "cafe\u0301 au lait, s'il")
    assert not await passwords.is_right(stored, "cafe au lait, s'il")


@pytest.mark.requirement("SEC-40")
async def test_without_a_digest_nothing_is_right() -> None:
    assert await passwords.is_right(None, PASSWORD) is False
    assert await passwords.is_right("", PASSWORD) is False
    assert await passwords.is_right("$argon2id$broken", PASSWORD) is False
    assert await passwords.is_right(DIGEST, PASSWORD) is True


@pytest.mark.requirement("SEC-40")
async def test_at_most_fifty_wait_and_the_next_is_told_to_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passwords, "_taken", passwords.AT_ONCE + passwords.WAITING - 1)

    last = asyncio.ensure_future(passwords.is_right(DIGEST, PASSWORD))
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await passwords.is_right(DIGEST, PASSWORD)

    assert await last is True


def test_a_digest_of_older_parameters_is_recognised() -> None:
    from argon2 import PasswordHasher

    old = PasswordHasher(time_cost=1, memory_cost=8_192, parallelism=1).hash(PASSWORD)

    assert passwords.is_outdated(old)
    assert not passwords.is_outdated(DIGEST)
