"""What a request cost: the profile's price, else the list price, else unknown (RUN-104).

Unknown is None, which pages show as such; it is never 0.
"""

import contextlib
import warnings
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from app.kernel import clock
from app.runs.models.protocol import Profile, Usage

MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Price:
    """A price in millionths of `currency`; `source` is `profile` or `list`."""

    micros: int
    currency: str
    source: str


def of(profile: Profile, model_version: str | None, usage: Usage | None) -> Price | None:
    """What a request that used `usage` cost; None: unknown."""
    if usage is None:
        return None
    if profile.price_input is not None and profile.price_output is not None:
        return _by_profile(profile, profile.price_input, profile.price_output, usage)
    if profile.kind not in {"openai", "anthropic"} or profile.base_url:
        return None  # what answers at an address of one's own has no list price
    return _by_list(profile.kind, model_version or profile.model, usage)


def _by_profile(profile: Profile, price_in: float, price_out: float, usage: Usage) -> Price:
    whole = usage.input_tokens * Decimal(str(price_in))
    whole += usage.output_tokens * Decimal(str(price_out))
    return Price(_rounded(whole), profile.currency, "profile")


def _by_list(provider: str, model: str, usage: Usage) -> Price | None:
    import genai_prices  # noqa: PLC0415 - only who uses a provider needs it

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    with contextlib.suppress(LookupError, ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = genai_prices.calc_price(
            counted,
            model,
            provider_id=provider,
            genai_request_timestamp=clock.now(),
        )
        return Price(_rounded(found.total_price * MILLION), "USD", "list")
    return None


def _rounded(micros: Decimal) -> int:
    return int(micros.quantize(Decimal(1), rounding=ROUND_HALF_UP))
