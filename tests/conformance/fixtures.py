"""What the official scenarios call by name, on the product's own server and behind its own door.

Registered in the test process alone: the product has no trace of any of it. A tool or a list of the
product goes on as it is; these come in addition.
"""

import asyncio
import json
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.types import (
    INVALID_PARAMS,
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ImageContent,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListRootsRequest,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY

from app.kernel import json as kernel_json
from app.mcp import calling, entered, server

Context = ServerRequestContext[Any, Any]
Answer = CallToolResult | InputRequiredResult
Tool = Callable[[Context, CallToolRequestParams], Awaitable[Answer]]

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJg"
    "gg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
TEMPLATE = "test://template/{id}/data"
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
ASKED = {
    "name": ElicitRequestFormParams(
        message="What is your name?",
        requested_schema={
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    ),
    "ok": ElicitRequestFormParams(
        message="Please confirm",
        requested_schema={
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"],
        },
    ),
}

TOOLS: dict[str, tuple[Tool, dict[str, Any]]] = {}
_bus = InMemorySubscriptionBus()


def build(version: str) -> Server[Any]:
    """The product's server, with the fixtures on it."""
    made = _build(version)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        _register(made)
    return made


_build = server.build


def _register(made: Server[Any]) -> None:
    for method, params, handler in (
        ("tools/list", PaginatedRequestParams, _list_tools),
        ("tools/call", CallToolRequestParams, _call_tool),
        ("resources/list", PaginatedRequestParams, _resources),
        ("resources/templates/list", PaginatedRequestParams, _templates),
        ("resources/read", ReadResourceRequestParams, _read),
        ("resources/subscribe", SubscribeRequestParams, _nothing),
        ("resources/unsubscribe", UnsubscribeRequestParams, _nothing),
        ("prompts/list", PaginatedRequestParams, _prompts),
        ("prompts/get", GetPromptRequestParams, _prompt),
        ("completion/complete", CompleteRequestParams, _complete),
        ("logging/setLevel", SetLevelRequestParams, _nothing),
        ("subscriptions/listen", SubscriptionsListenRequestParams, ListenHandler(_bus)),
    ):
        made.add_request_handler(method, params, handler)  # type: ignore[arg-type]


def tool(name: str, schema: dict[str, Any] = NOTHING) -> Callable[[Tool], Tool]:
    """Let the function below answer for a tool."""

    def known(answers: Tool) -> Tool:
        TOOLS[name] = (answers, schema)
        return answers

    return known


async def _list_tools(ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    result = await server.list_tools(ctx, params)
    who = entered.of_context(ctx)
    if result.next_cursor is None:
        own = json.loads(who.spliced)
        more = [
            {"name": name, "description": name, "inputSchema": schema}
            for name, (_, schema) in TOOLS.items()
        ]
        who.spliced = kernel_json.dumps(own + more)
    return result


async def _call_tool(ctx: Context, params: CallToolRequestParams) -> Answer:
    if params.name in TOOLS:
        return await TOOLS[params.name][0](ctx, params)
    return await calling.call_tool(ctx, params)


def _said(text: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], **more)


def _embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return EmbeddedResource(type="resource", resource=contents)


@tool("test_simple_text")
async def _simple(_ctx: Context, _params: CallToolRequestParams) -> Answer:
    return _said("This is a simple text response for testing.")


@tool("test_image_content")
async def _image(_ctx: Context, _params: CallToolRequestParams) -> Answer:
    return CallToolResult(content=[ImageContent(type="image", data=PNG, mime_type="image/png")])


@tool("test_audio_content")
async def _audio(_ctx: Context, _params: CallToolRequestParams) -> Answer:
    return CallToolResult(content=[AudioContent(type="audio", data=WAV, mime_type="audio/wav")])


@tool("test_embedded_resource")
async def _embed(_ctx: Context, _params: CallToolRequestParams) -> Answer:
    text = "This is an embedded resource content."
    return CallToolResult(content=[_embedded("test://embedded-resource", "text/plain", text)])


@tool("test_multiple_content_types")
async def _mixed(_ctx: Context, _params: CallToolRequestParams) -> Answer:
    data = '{"test":"data","value":123}'
    return CallToolResult(
        content=[
            TextContent(type="text", text="Multiple content types test:"),
            ImageContent(type="image", data=PNG, mime_type="image/png"),
            _embedded("test://mixed-content-resource", "application/json", data),
        ]
    )


@tool("test_error_handling")
async def _error(_ctx: Context, _params: CallToolRequestParams) -> Answer:
    return _said("This tool intentionally returns an error for testing", is_error=True)


@tool("test_tool_with_progress")
async def _progress(ctx: Context, _params: CallToolRequestParams) -> Answer:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await asyncio.sleep(0.01)
    return _said("It is done.")


@tool("test_tool_with_logging")
async def _logging(ctx: Context, _params: CallToolRequestParams) -> Answer:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await _log(ctx, text)
        await asyncio.sleep(0.01)
    return _said("It is done.")


@tool("test_logging_tool")
async def _quiet(ctx: Context, _params: CallToolRequestParams) -> Answer:
    await _log(ctx, "Nobody asked for this")
    return _said("It is done.")


async def _log(ctx: Context, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        await ctx.session.send_log_message("info", text, related_request_id=ctx.request_id)


@tool("test_sampling", {"type": "object", "properties": {"prompt": {"type": "string"}}})
async def _sampling(ctx: Context, params: CallToolRequestParams) -> Answer:
    prompt = str((params.arguments or {}).get("prompt"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        answer = await ctx.session.create_message(
            [SamplingMessage(role="user", content=TextContent(type="text", text=prompt))],
            max_tokens=100,
            related_request_id=ctx.request_id,
        )
    return _said(f"LLM response: {getattr(answer.content, 'text', '')}")


@tool("test_elicitation", {"type": "object", "properties": {"message": {"type": "string"}}})
async def _elicitation(ctx: Context, params: CallToolRequestParams) -> Answer:
    properties = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    return await _elicited(ctx, str((params.arguments or {}).get("message")), properties)


@tool("test_elicitation_sep1034_defaults")
async def _defaults(ctx: Context, _params: CallToolRequestParams) -> Answer:
    choices = ["active", "inactive", "pending"]
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": choices, "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await _elicited(ctx, "Please look over these", properties)


@tool("test_elicitation_sep1330_enums")
async def _enums(ctx: Context, _params: CallToolRequestParams) -> Answer:
    titled = [
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]
    plain = ["option1", "option2", "option3"]
    names = ["Option One", "Option Two", "Option Three"]
    properties = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await _elicited(ctx, "Please choose", properties)


async def _elicited(ctx: Context, message: str, properties: dict[str, Any]) -> Answer:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    content = json.dumps(answer.content or {})
    return _said(f"Elicitation completed: action={answer.action}, content={content}")


@tool("json_schema_2020_12_tool", SCHEMA_2020)
async def _schema(_ctx: Context, _params: CallToolRequestParams) -> Answer:
    return _said("It is done.")


@tool("test_missing_capability")
async def _missing(ctx: Context, _params: CallToolRequestParams) -> Answer:
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Sampling is needed", data)
    return _said("It is done.")


@tool("test_streaming_elicitation")
async def _streaming(ctx: Context, params: CallToolRequestParams) -> Answer:
    await ctx.session.report_progress(0, 1)
    return await _ask_name(ctx, params)


@tool("test_trigger_tool_change")
async def _tools_change(_ctx: Context, _params: CallToolRequestParams) -> Answer:
    await _bus.publish(ToolsListChanged())
    return _said("It is done.")


@tool("test_trigger_prompt_change")
async def _prompts_change(_ctx: Context, _params: CallToolRequestParams) -> Answer:
    await _bus.publish(PromptsListChanged())
    return _said("It is done.")


@tool("test_input_required_result_elicitation")
async def _ask_name(_ctx: Context, params: CallToolRequestParams) -> Answer:
    answer = (params.input_responses or {}).get("user_name")
    if not isinstance(answer, ElicitResult):
        return _asking(user_name=ElicitRequest(params=ASKED["name"]))
    return _said(f"Hello, {(answer.content or {}).get('name')}!")


@tool("test_input_required_result_sampling")
async def _ask_model(_ctx: Context, params: CallToolRequestParams) -> Answer:
    if not params.input_responses:
        return _asking(capital_question=_sample("What is the capital of France?"))
    return _said("The model answered.")


@tool("test_input_required_result_list_roots")
async def _ask_roots(_ctx: Context, params: CallToolRequestParams) -> Answer:
    if not params.input_responses:
        return _asking(client_roots=ListRootsRequest())
    return _said("The roots are known.")


@tool("test_input_required_result_request_state")
@tool("test_input_required_result_tampered_state")
async def _ask_with_state(_ctx: Context, params: CallToolRequestParams) -> Answer:
    if params.request_state != "asked":
        return _asking("asked", confirm=ElicitRequest(params=ASKED["ok"]))
    return _said("state-ok")


@tool("test_input_required_result_multiple_inputs")
async def _ask_much(_ctx: Context, params: CallToolRequestParams) -> Answer:
    if len(params.input_responses or {}) < 3:
        return _asking(
            "asked",
            user_name=ElicitRequest(params=ASKED["name"]),
            greeting=_sample("Generate a greeting"),
            client_roots=ListRootsRequest(),
        )
    return _said("All of it is known.")


@tool("test_input_required_result_multi_round")
async def _ask_twice(_ctx: Context, params: CallToolRequestParams) -> Answer:
    match params.request_state:
        case "first":
            return _asking("second", step2=ElicitRequest(params=ASKED["ok"]))
        case "second":
            return _said("Both are known.")
    return _asking("first", step1=ElicitRequest(params=ASKED["name"]))


@tool("test_input_required_result_capabilities")
async def _ask_what_is_there(ctx: Context, params: CallToolRequestParams) -> Answer:
    if params.input_responses:
        return _said("It is known.")
    capabilities = ctx.session.client_capabilities
    asked: dict[str, Any] = {}
    if capabilities is not None and capabilities.sampling is not None:
        asked["model"] = _sample("Hello?")
    if capabilities is not None and capabilities.elicitation is not None:
        asked["user_name"] = ElicitRequest(params=ASKED["name"])
    return _asking(**asked)


def _asking(state: str | None = None, **requests: Any) -> InputRequiredResult:
    return InputRequiredResult(input_requests=requests, request_state=state)


def _sample(prompt: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return CreateMessageRequest(
        params=CreateMessageRequestParams(messages=[message], max_tokens=100)
    )


async def _resources(_ctx: Context, _params: Any) -> ListResourcesResult:
    return ListResourcesResult(
        resources=[
            Resource(uri="test://static-text", name="text", mime_type="text/plain"),
            Resource(uri="test://static-binary", name="binary", mime_type="image/png"),
            Resource(uri="test://watched-resource", name="watched", mime_type="text/plain"),
        ]
    )


async def _templates(_ctx: Context, _params: Any) -> ListResourceTemplatesResult:
    made = ResourceTemplate(uri_template=TEMPLATE, name="data", mime_type="application/json")
    return ListResourceTemplatesResult(resource_templates=[made])


async def _read(_ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    uri = str(params.uri)
    begin, _, end = TEMPLATE.partition("{id}")
    contents: Any
    if uri == "test://static-binary":
        contents = BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri in {"test://static-text", "test://watched-resource"}:
        text = "This is the content of the static text resource."
        contents = TextResourceContents(uri=uri, mime_type="text/plain", text=text)
    elif uri.startswith(begin) and uri.endswith(end):
        id = uri.removeprefix(begin).removesuffix(end)
        data = json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})
        contents = TextResourceContents(uri=uri, mime_type="application/json", text=data)
    else:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    return ReadResourceResult(contents=[contents], ttl_ms=0, cache_scope="private")


async def _prompts(_ctx: Context, _params: Any) -> ListPromptsResult:
    arguments = {
        "test_prompt_with_arguments": ("arg1", "arg2"),
        "test_prompt_with_embedded_resource": ("resourceUri",),
    }
    names = ("test_simple_prompt", *arguments, "test_prompt_with_image", _ASKING_PROMPT)
    return ListPromptsResult(
        prompts=[
            Prompt(
                name=name,
                description=name,
                arguments=[
                    PromptArgument(name=each, description=each, required=True)
                    for each in arguments.get(name, ())
                ],
            )
            for name in names
        ]
    )


_ASKING_PROMPT = "test_input_required_result_prompt"


async def _prompt(
    _ctx: Context, params: GetPromptRequestParams
) -> GetPromptResult | InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return _prompted(_words("This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            said = f"arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
            return _prompted(_words(f"Prompt with arguments: {said}"))
        case "test_prompt_with_embedded_resource":
            text = "Embedded resource content for testing."
            return _prompted(
                _embedded(given.get("resourceUri", ""), "text/plain", text),
                _words("Please process the embedded resource above."),
            )
        case "test_prompt_with_image":
            image = ImageContent(type="image", data=PNG, mime_type="image/png")
            return _prompted(image, _words("Please analyze the image above."))
        case name if name == _ASKING_PROMPT:
            if not params.input_responses:
                return _asking(user_context=ElicitRequest(params=ASKED["name"]))
            return _prompted(_words("The context is known."))
    raise MCPError(INVALID_PARAMS, "Unknown prompt")


def _words(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _prompted(*contents: Any) -> GetPromptResult:
    return GetPromptResult(messages=[PromptMessage(role="user", content=each) for each in contents])


async def _complete(_ctx: Context, _params: CompleteRequestParams) -> CompleteResult:
    return CompleteResult(completion=Completion(values=[], total=0, has_more=False))


async def _nothing(_ctx: Context, _params: Any) -> EmptyResult:
    return EmptyResult()
