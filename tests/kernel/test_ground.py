"""Clock, ids, languages and the schedule."""

import threading
from datetime import UTC, datetime

import pytest

from app.kernel import clock as clocks
from app.kernel import i18n, ids
from app.kernel.schedule import Job, Schedule
from tests.clock import Clock


def test_ids_grow_even_when_the_clock_stands_or_goes_back(clock: Clock) -> None:
    made = [ids.ulid() for _ in range(1_000)]
    clock.move(hours=-1)
    earlier = ids.ulid()

    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(map(ids.is_ulid, made))
    assert ids.is_ulid(earlier)


@pytest.mark.parametrize("text", ["", "01", "8" + "0" * 25, "0" * 25 + "i", "0" * 27, "../../etc"])
def test_what_is_no_id_is_told(text: str) -> None:
    assert not ids.is_ulid(text)


@pytest.mark.requirement("SEC-5")
def test_a_secret_names_its_tenant_and_nothing_else_does() -> None:
    tenant = ids.ulid()
    secret = ids.secret(tenant)

    assert ids.tenant_of(secret) == tenant
    assert [
        ids.tenant_of(text)
        for text in ("", ".", tenant, f"{tenant}.", f"{tenant}.short", f"x.{'a' * 43}", "a" * 200)
    ] == [None] * 7


def test_times_are_aware_and_written_with_microseconds(clock: Clock) -> None:
    clock.set(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC))

    assert clocks.now().tzinfo is UTC
    assert clocks.rfc3339(clocks.now()) == "2026-01-02T03:04:05.000006Z"


@pytest.mark.requirement("UI-96")
@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("zh-TW,zh;q=0.9,en;q=0.8", "zh-CN"),
        ("fr-FR,en;q=0.3,zh;q=0.2", "en"),
        ("zh;q=0,en", "en"),
        ("de", None),
        ("", None),
        ("en;q=flarp,zh;q=0.1", "zh-CN"),
        (";;;,,,q=1", None),
    ],
)
def test_the_browser_s_languages_decide_in_their_order(header: str, language: str | None) -> None:
    assert i18n.best_match(header) == language


@pytest.mark.requirement("UI-96")
def test_words_are_those_of_the_language_spoken_here() -> None:
    with i18n.speaking("zh-CN"):
        chinese = i18n.gettext("Sign in to go on.")
    with i18n.speaking("tlh"):
        unknown = i18n.gettext("Sign in to go on.")

    assert chinese != "Sign in to go on."
    assert unknown == "Sign in to go on."


def test_a_job_that_fails_stops_neither_itself_nor_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.kernel.schedule.LOOK_S", 0.001)
    ran = {"bad": 0, "good": 0}
    twice = threading.Event()

    def bad() -> None:
        ran["bad"] += 1
        raise LookupError

    def good() -> None:
        ran["good"] += 1
        if ran["good"] >= 2 and ran["bad"] >= 2:
            twice.set()

    schedule = Schedule([Job("bad", 0.001, bad), Job("good", 0.001, good)])
    schedule.start()
    try:
        assert twice.wait(10)
    finally:
        schedule.stop()
