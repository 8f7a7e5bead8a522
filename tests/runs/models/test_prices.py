"""What a request costs, and when nobody knows (RUN-104)."""

import pytest

from app.runs.models import prices
from app.runs.models.prices import Price
from app.runs.models.protocol import Profile, Usage

pytestmark = pytest.mark.requirement("RUN-104")

USAGE = Usage(input_tokens=1_000_000, output_tokens=100_000, cache_read_tokens=500_000)


def test_the_price_of_a_profile_comes_first() -> None:
    profile = Profile(
        kind="openai", model="gpt-4o", price_input=2.0, price_output=10.0, currency="EUR"
    )

    assert prices.of(profile, "gpt-4o", USAGE) == Price(3_000_000, "EUR", "profile")


def test_a_model_that_costs_nothing_costs_nothing() -> None:
    profile = Profile(kind="openai", model="x", price_input=0, price_output=0)

    assert prices.of(profile, None, USAGE) == Price(0, "USD", "profile")


def test_the_list_price_counts_cached_tokens_once_and_as_such() -> None:
    cached = prices.of(Profile(kind="openai", model="gpt-4o"), None, USAGE)
    plain = prices.of(
        Profile(kind="openai", model="gpt-4o"),
        None,
        Usage(input_tokens=1_000_000, output_tokens=100_000),
    )

    assert cached is not None
    assert plain is not None
    assert (cached.currency, cached.source) == ("USD", "list")
    assert 0 < cached.micros < plain.micros


@pytest.mark.parametrize(
    ("profile", "usage"),
    [
        (Profile(kind="openai", model="gpt-4o"), None),
        (Profile(kind="openai", model="nobody-sells-this"), USAGE),
        (Profile(kind="openai", model="gpt-4o", base_url="http://127.0.0.1:1/v1"), USAGE),
        (Profile(kind="offline"), USAGE),
        (Profile(kind="openai", model="gpt-4o", price_input=1.0, base_url="http://h"), USAGE),
        (
            Profile(kind="openai", model="gpt-4o"),
            Usage(input_tokens=1, output_tokens=1, cache_read_tokens=2),
        ),
    ],
)
def test_what_nobody_knows_is_unknown_and_never_nothing(
    profile: Profile, usage: Usage | None
) -> None:
    assert prices.of(profile, None, usage) is None
