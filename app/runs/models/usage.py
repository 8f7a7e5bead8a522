"""What the provider counted, read so that nothing is added twice or lost (RUN-102, RUN-104)."""

from pydantic_ai.usage import RequestUsage

from app.runs.models.protocol import Usage


def measured(counted: RequestUsage) -> Usage | None:
    """The usage of one request; None where nothing, or nothing but zeros, was said.

    Both adapters include cached tokens in the input; they are kept apart and never added again.
    """
    if counted.unmeasured_requests or not (counted.input_tokens or counted.output_tokens):
        return None
    details = counted.details or {}
    return Usage(
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        cache_read_tokens=counted.cache_read_tokens,
        cache_write_tokens=counted.cache_write_tokens,
        reasoning_tokens=counted.output_reasoning_tokens or details.get("reasoning_tokens", 0),
    )
