"""Rates: moving windows, each with its own key."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from app.kernel import rates, settings
from app.kernel.errors import TooMany
from app.kernel.rates import Rates

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.requirement("SEC-51")
def test_one_too_many_is_told_when_to_come_back_and_may_then() -> None:
    limits = Rates({"call": "3/minute"})
    with time_machine.travel(START, tick=False) as clock:
        for _ in range(3):
            limits.hit("call", "01T", "01U", "01A")
            clock.shift(timedelta(seconds=10))
        with pytest.raises(TooMany) as refused:
            limits.hit("call", "01T", "01U", "01A")

        clock.shift(timedelta(seconds=refused.value.retry_after_s))
        limits.hit("call", "01T", "01U", "01A")

    assert refused.value.retry_after_s == 31


@pytest.mark.requirement("SEC-51")
def test_the_window_moves_and_does_not_start_afresh_at_the_minute() -> None:
    limits = Rates({"call": "2/minute"})
    with time_machine.travel(START + timedelta(seconds=59), tick=False) as clock:
        limits.hit("call", "01U")
        limits.hit("call", "01U")
        clock.shift(timedelta(seconds=2))

        assert limits.is_full("call", "01U")


@pytest.mark.requirement("SEC-51")
def test_nobody_uses_up_the_tries_of_another() -> None:
    limits = Rates({"call": "1/minute", "token": "1/minute"})
    callers: list[tuple[str | None, ...]] = [
        ("01T", "01U", "01A"),
        ("01T", "01U", None),
        ("01T", "01U", "None"),
        ("01T", "01U01A"),
        ("01T/01U", "01A"),
        ("01T", "01U/01A"),
        ("01M", "01U", "01A"),
    ]

    for who in callers:
        limits.hit("call", *who)
        limits.hit("token", *who)

    for who in callers:
        assert limits.is_full("call", *who)


def test_asking_counts_nothing_and_forgetting_starts_anew() -> None:
    limits = Rates({"sign_in": "1/minute"})

    for _ in range(5):
        assert not limits.is_full("sign_in", "ada")
    limits.hit("sign_in", "ada")
    assert limits.is_full("sign_in", "ada")
    limits.forget("sign_in", "ada")
    limits.hit("sign_in", "ada")


def test_a_class_without_a_rule_and_a_rule_without_sense_are_faults() -> None:
    with pytest.raises(KeyError):
        Rates({}).hit("call", "01U")
    with pytest.raises(ValueError, match="couldn't parse"):
        Rates({"call": "often"})


@pytest.mark.requirement("SEC-51")
def test_the_rates_of_the_spec_are_the_defaults() -> None:
    Rates()
    assert rates.DEFAULTS["call"] == "120/minute"
    assert rates.DEFAULTS["write"] == "60/minute"
    assert rates.DEFAULTS["session"] == "600/minute"
    assert rates.DEFAULTS["token"] == "60/minute"


@pytest.mark.parametrize(("name", "variable"), [("call", "CALLS"), ("write", "WRITES")])
def test_an_operator_says_how_often_an_agent_may_call(
    name: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ASSENT_RATE_{variable}", "1/minute")
    settings.current.cache_clear()
    chosen = rates.of_process.__wrapped__()
    settings.current.cache_clear()

    chosen.hit(name, "tenant", "delegation")

    with pytest.raises(TooMany):
        chosen.hit(name, "tenant", "delegation")
