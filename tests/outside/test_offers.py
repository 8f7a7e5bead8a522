"""What a server offers is named, cleaned and pinned, or refused with the reason."""

import pytest

from app.outside import names, offers, texts
from app.outside.offers import Listed
from app.outside.schemas import Unfit
from tests.outside.servers import CITY


def listed(name: str = "forecast", description: str = "", **more: object) -> Listed:
    return Listed(name, description, more.get("input", CITY), more.get("output"))


@pytest.mark.requirement("SEC-68")
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("get_weather", ""),
        ("Get-Weather.v2", ""),
        ("", "name"),
        ("1st", "name"),
        ("поиск", "name"),
        ("get weather", "name"),
        ("get\u200bweather", "name"),
        ("a" * 65, "name"),
        ("../admin", "name"),
    ],
)
def test_a_name_is_of_plain_letters_or_not_taken(name: str, rule: str) -> None:
    (offer,) = offers.of([listed(name)])

    assert offer.unfit == rule


@pytest.mark.requirement("SEC-68")
def test_two_tools_that_would_have_one_name_here_are_both_refused() -> None:
    found = offers.of([listed("send-it"), listed("Send_It"), listed("other")])

    assert [each.unfit for each in found] == ["same_name_here", "same_name_here", ""]
    with pytest.raises(Unfit, match="same_name"):
        offers.of([listed("twice"), listed("twice")])


@pytest.mark.requirement("SEC-68")
def test_no_server_offers_more_than_can_be_looked_at() -> None:
    assert len(offers.of(listed(f"t{number}") for number in range(200))) == 200
    with pytest.raises(Unfit, match="too_many_tools"):
        offers.of(listed(f"t{number}") for number in range(201))


@pytest.mark.requirement("SEC-68")
def test_a_pin_is_of_every_word_that_was_said() -> None:
    first = listed("a", "Reads.")
    others = [
        listed("b", "Reads."),
        listed("a", "Reads. "),
        listed("a", "Reads.", input={**CITY, "title": "x"}),
        listed("a", "Reads.", output=CITY),
    ]

    assert len({offers.pin(each) for each in (first, *others)}) == 5
    assert offers.pin(first) == offers.pin(listed("a", "Reads."))
    assert offers.pin(listed("a", "\ud800")), "what cannot be stored can still be pinned"


@pytest.mark.requirement("SEC-68")
def test_a_description_hides_nothing_and_ends() -> None:
    (offer,) = offers.of([listed("a", "Reads\x1b[31m \u202eliame\u202c\x00" + "x" * 3_000)])

    said = offer.content["description"]
    assert said.startswith("Reads[U+001B][31m [U+202E]liame[U+202C][U+0000]xxx")
    assert len(said) == texts.LONGEST
    assert texts.shown("a\U000e0101b\u3164") == "a[U+E0101]b[U+3164]"
    assert texts.shown("two\nlines\tand 中文 🙂") == "two\nlines\tand 中文 🙂"


@pytest.mark.requirement("RUN-96")
def test_names_of_two_servers_never_meet() -> None:
    assert names.is_server("weather2")
    assert not any(map(names.is_server, ("", "Weather", "a_b", "a-b", "a.b", "2x", "a" * 25)))
    assert names.code("weather", names.local("Get-Forecast.v2") or "") == (
        "mcp.weather.get_forecast_v2"
    )
