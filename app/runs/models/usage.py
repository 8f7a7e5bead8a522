"""What the provider counted, read so that nothing is added twice or lost (RUN-102, RUN-104)."""

from dataclasses import asdict

from pydantic_ai.usage import RequestUsage

from app.runs.models.protocol import Usage

MOST_TOKENS = 10**8  # of one request: what no model reads, a server made up


def measured(counted: RequestUsage) -> Usage | None:
    """The usage of one request; None where nothing, or nothing but zeros or nonsense, was said.

    Both adapters include cached tokens in the input; they are kept apart and never added again.
    """
    if counted.unmeasured_requests or not (counted.input_tokens or counted.output_tokens):
        return None
    details = counted.details or {}
    said = Usage(
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        cache_read_tokens=counted.cache_read_tokens,
        cache_write_tokens=counted.cache_write_tokens,
        reasoning_tokens=counted.output_reasoning_tokens or details.get("reasoning_tokens", 0),
    )
    is_sound = all(type(each) is int and 0 <= each <= MOST_TOKENS for each in asdict(said).values())
    return said if is_sound else None
