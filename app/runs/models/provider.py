"""A model behind a provider's wire: OpenAI's chat completions or Anthropic's messages (RUN-102).

Retries are the loop's; a response without a finish reason was cut off, whatever it looks like.
Imported in a worker thread when the first run needs it: it takes seconds.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import direct
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from app.kernel import http
from app.runs.models import bounded, faults, foreign, messages, provider_faults, usage
from app.runs.models.protocol import (
    Answered,
    Ask,
    CallDelta,
    Delta,
    Offered,
    Profile,
    Proposed,
    Response,
    TextDelta,
    ThoughtDelta,
)

OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"
NO_KEY = "none"  # a server without keys gets one all the same: the SDKs insist
CONNECT_S, BETWEEN_CHUNKS_S, FIRST_EVENT_S, WHOLE_S = 10.0, 120.0, 60.0, 600.0
THINKING_TOKENS = {"low": 2_048, "medium": 8_192, "high": 16_384}
VERSION = 200  # characters
LEAST_THINKING, LEFT_TO_SAY = 1_024, 1_024  # tokens; the first is Anthropic's own limit
FINISHES = {
    "stop": "stop",
    "tool_call": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
    "error": "error",
}


class ProviderModel:
    """The model of a profile; every request has a client of its own, closed with its stream."""

    def __init__(self, profile: Profile, key: str | None, allow: http.Pairs) -> None:
        self._profile, self._key, self._allow = profile, key, allow
        self.name = profile.model
        self.version = ""
        self.label = profile.model
        self.provider = profile.kind
        self.context_tokens = profile.context_tokens
        self.ids_are_per_response = profile.call_ids == "response"

    async def stream(self, ask: Ask) -> AsyncIterator[Delta]:
        """Ask, and pass on what comes; closing the iterator closes the connection.

        Raises:
            ModelFault: there is no answer.
        """
        has_begun = False
        try:
            sent = messages.messages_of(ask.entries, self.provider)
        except messages.Unanswered as error:
            raise faults.fault("rejected", diagnostic=str(error)) from None
        try:
            async with self._opened(ask, sent) as stream:
                async for event in stream:
                    has_begun = True
                    if (delta := _delta(event)) is not None:
                        yield delta
                answer = _response(stream.get())
        except Exception as error:  # noqa: BLE001 - an odd answer may make the library stumble
            raise self._fault(error, has_begun) from None
        yield Answered(answer)

    @asynccontextmanager
    async def _opened(self, ask: Ask, sent: list[ModelMessage]) -> AsyncIterator[Any]:
        tools = ModelRequestParameters(function_tools=[_tool(offered) for offered in ask.tools])
        longest = bounded.whole(ask.output_limit)
        async with http.client(self._allow, body_limit=longest) as client:
            client.event_hooks = {"response": [bounded.bound]}
            model = self._model(client)
            chosen = self._settings(ask) | self._thinking(model, ask.output_limit)
            async with direct.model_request_stream(
                model,
                sent,
                model_settings=chosen,  # type: ignore[arg-type]  # keys of the adapters
                model_request_parameters=tools,
                instrument=False,
            ) as stream:
                yield stream

    def _model(self, client: httpx2.AsyncClient) -> LibraryModel:
        profile = self._profile
        key = self._key or NO_KEY
        if profile.kind == "anthropic":
            return AnthropicModel(
                profile.model,
                provider=AnthropicProvider(
                    anthropic_client=AsyncAnthropic(
                        api_key=key,
                        base_url=profile.base_url or ANTHROPIC,
                        http_client=client,
                        max_retries=0,
                    )
                ),
            )
        return OpenAIChatModel(
            profile.model,
            provider=OpenAIProvider(
                openai_client=AsyncOpenAI(
                    api_key=key,
                    base_url=profile.base_url or OPENAI,
                    http_client=client,
                    max_retries=0,
                )
            ),
            profile=OpenAIModelProfile(
                openai_chat_streaming_requires_finish_reason=profile.requires_finish,
                openai_chat_supports_max_completion_tokens=profile.max_tokens_field == "new",
            ),
        )

    def _settings(self, ask: Ask) -> dict[str, Any]:
        options = self._profile.options
        chosen: dict[str, Any] = {
            "max_retries": 0,
            "max_tokens": ask.output_limit,
            "first_event_timeout": options.get("first_event_s", FIRST_EVENT_S),
            "timeout": httpx2.Timeout(
                options.get("between_chunks_s", BETWEEN_CHUNKS_S), connect=CONNECT_S
            ),
            "request_timeout": options.get("whole_s", WHOLE_S),
        }
        if ask.tools and not ask.tools_on:
            chosen["tool_choice"] = "none"
        if self._profile.kind == "openai" and self._profile.usage == "last":
            chosen["openai_continuous_usage_stats"] = True
        return chosen

    def _thinking(self, model: LibraryModel, limit: int) -> dict[str, Any]:
        """How long it thinks; where that is a number of tokens, they are part of the output."""
        level = self._profile.thinking
        if level == "off":
            return {"thinking": False}
        by_tokens = not model.profile.get("anthropic_supports_adaptive_thinking", False)
        if self._profile.kind != "anthropic" or not by_tokens:
            return {"thinking": level}
        budget = min(THINKING_TOKENS[level], limit - LEFT_TO_SAY)
        if budget < LEAST_THINKING:
            return {"thinking": False}
        return {"anthropic_thinking": {"type": "enabled", "budget_tokens": budget}}

    def _fault(self, error: Exception, has_begun: bool) -> Exception:
        too_long = self._profile.options.get("overflow_texts", ())
        fault = provider_faults.read(error, has_begun=has_begun, too_long=too_long)
        if self._key:
            fault.diagnostic = fault.diagnostic.replace(self._key, "…")
        return fault


def endpoint(profile: Profile) -> tuple[str, int]:
    """Host and port a profile is asked at."""
    address = profile.base_url or (ANTHROPIC if profile.kind == "anthropic" else OPENAI)
    parts = urlsplit(address)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _tool(offered: Offered) -> ToolDefinition:
    return ToolDefinition(
        name=offered.name,
        description=offered.description,
        parameters_json_schema=dict(offered.schema),
        strict=False,
    )


def _delta(event: ModelResponseStreamEvent) -> Delta | None:
    match event:
        case PartStartEvent(part=ThinkingPart(content=str(text))) if text:
            return ThoughtDelta(text)
        case PartStartEvent(part=TextPart(content=str(text))) if text:
            return TextDelta(text)
        case PartStartEvent(part=ToolCallPart(tool_name=name)):
            return CallDelta(foreign.text_of(name))
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))) if text:
            return ThoughtDelta(text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=str(text))) if text:
            return TextDelta(text)
    return None


def _response(answer: ModelResponse) -> Response:
    parts = answer.parts
    return Response(
        thoughts=tuple(
            foreign.clean(p.content) for p in parts if isinstance(p, ThinkingPart) if p.content
        ),
        text=foreign.clean("".join(part.content for part in parts if isinstance(part, TextPart))),
        calls=tuple(
            Proposed(
                provider_id=foreign.text_of(p.tool_call_id),
                name=foreign.text_of(p.tool_name),
                arguments=foreign.text_of(p.args),
            )
            for p in parts
            if isinstance(p, ToolCallPart)
        ),
        finish=FINISHES.get(answer.finish_reason or ""),
        usage=usage.measured(answer.usage),
        model_version=_version(answer.model_name),
        provider_body=ModelMessagesTypeAdapter.dump_python([answer], mode="json"),
    )


def _version(named: object) -> str | None:
    return foreign.clean(named)[:VERSION] if isinstance(named, str) else None
