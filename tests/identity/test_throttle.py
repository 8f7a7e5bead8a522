"""Guessing gets slow for one account from one network, and for nobody else (SEC-41)."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.identity import throttle
from app.kernel import db
from app.kernel.errors import TooMany
from tests.clock import Clock

TENANT = "0" * 26
NETWORK, ANOTHER = "192.0.2.0/24", "198.51.100.0/24"


def wait_s(login: str = "alice", network: str = NETWORK) -> int:
    try:
        db.read_now(throttle.check, TENANT, login, network)
    except TooMany as refused:
        return refused.retry_after_s
    return 0


def fail(times: int = 1) -> None:
    for _ in range(times):
        db.transact_now(throttle.failed, TENANT, "alice", NETWORK)


@pytest.mark.requirement("SEC-41")
def test_from_the_fifth_failure_the_wait_doubles_up_to_five_minutes(
    clock: Clock, opened: str
) -> None:
    fail(4)
    assert wait_s() == 0

    waits = []
    for _ in range(12):
        fail()
        waits.append(wait_s() - 1)
        clock.move(minutes=5)
        assert wait_s() == 0

    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


@pytest.mark.requirement("SEC-41", "SEC-T36")
def test_failures_side_by_side_all_count(clock: Clock, opened: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(fail, [1] * 6))

    assert wait_s() - 1 == 2, "as after six in a row"


@pytest.mark.requirement("SEC-41", "SEC-T36")
def test_nobody_else_waits(clock: Clock, opened: str) -> None:
    fail(20)

    assert wait_s() > 0
    assert wait_s("bob") == 0
    assert wait_s("alice", ANOTHER) == 0


@pytest.mark.requirement("SEC-41")
def test_a_success_and_a_quiet_day_are_a_new_beginning(clock: Clock, opened: str) -> None:
    fail(10)
    db.transact_now(throttle.succeeded, TENANT, "alice", NETWORK)
    assert wait_s() == 0
    fail(4)
    assert wait_s() == 0

    fail(6)
    clock.move(hours=25)
    fail()

    assert wait_s() == 0


def test_old_failures_are_forgotten(clock: Clock, opened: str) -> None:
    fail(10)
    db.transact_now(throttle.forget_old, clock.move(hours=1))

    fail()

    assert wait_s() == 0


@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2345::1", "2001:db8:1:2300::/56"),
        ("fe80::1%eth0", "fe80::/56"),
        ("", "unknown"),
        ("testclient", "unknown"),
    ],
)
def test_an_address_counts_with_its_network(address: str, prefix: str) -> None:
    assert throttle.prefix_of(address) == prefix
