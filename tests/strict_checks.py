"""The rules a strict provider holds a request to, on both wires (RUN-110)."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
OPENAI_FIELDS = {
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "max_completion_tokens",
    "max_tokens",
    "reasoning_effort",
}
OPENAI_ROLES = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "reasoning_content"},
    "tool": {"role", "content", "tool_call_id"},
}
ANTHROPIC_FIELDS = {
    "model",
    "messages",
    "system",
    "stream",
    "tools",
    "tool_choice",
    "max_tokens",
    "thinking",
    "output_config",
}
ANTHROPIC_BLOCKS = {
    "text": {"type", "text"},
    "thinking": {"type", "thinking", "signature"},
    "tool_use": {"type", "id", "name", "input"},
    "tool_result": {"type", "tool_use_id", "content", "is_error"},
}


def openai(
    body: Mapping[str, Any], *, knows_continuous_usage: bool, knows_max_tokens_only: bool
) -> list[str]:
    """What is wrong with a request for a chat completion."""
    wrong = list(_unknown("request", body, OPENAI_FIELDS))
    wrong += _openai_options(body, knows_continuous_usage, knows_max_tokens_only)
    for tool in body.get("tools", []):
        function = tool["function"]
        wrong += _unknown("tool", tool, {"type", "function"})
        wrong += _unknown("function", function, {"name", "description", "parameters", "strict"})
        wrong += _tool(function["name"], function["parameters"], function.get("strict"))
    if "tool_choice" in body and body["tool_choice"] not in ("none", "auto"):
        wrong.append("tool_choice")
    return wrong + _openai_messages(body["messages"])


def _openai_options(
    body: Mapping[str, Any], knows_continuous_usage: bool, knows_max_tokens_only: bool
) -> list[str]:
    wrong = [] if body.get("stream") is True else ["not a stream"]
    options = {"include_usage"} | ({"continuous_usage_stats"} if knows_continuous_usage else set())
    wrong += _unknown("stream_options", body.get("stream_options", {}), options)
    limits = {"max_completion_tokens", "max_tokens"} & body.keys()
    if len(limits) != 1 or (knows_max_tokens_only and limits != {"max_tokens"}):
        wrong.append(f"limits of the output: {sorted(limits)}")
    return wrong


def _openai_messages(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    wrong = _system([message["role"] for message in messages])
    seen: set[str] = set()
    expected: list[str] = []
    for message in messages:
        role = message["role"]
        if role not in OPENAI_ROLES:
            wrong.append(f"role {role}")
            continue
        wrong += _unknown(role, message, OPENAI_ROLES[role])
        if role == "tool":
            wrong += _answers(message["tool_call_id"], expected)
            continue
        wrong += [f"call {id} has no result" for id in expected]
        expected = []
        if role == "assistant":
            expected, more = _openai_turn(message, seen)
            wrong += more
        elif not isinstance(message["content"], str) or not message["content"].strip():
            wrong.append(f"an empty message of {role}")
    wrong += [f"call {id} has no result" for id in expected]
    if messages[-1]["role"] not in ("user", "tool"):
        wrong.append("the model spoke last")
    return wrong


def _openai_turn(message: Mapping[str, Any], seen: set[str]) -> tuple[list[str], list[str]]:
    wrong, ids = [], []
    calls = message.get("tool_calls") or []
    if not calls and not message.get("content"):
        wrong.append("an empty message of assistant")
    for call in calls:
        wrong += _unknown("call", call, {"id", "type", "function"})
        wrong += _unknown("function", call["function"], {"name", "arguments"})
        wrong += _new(call["id"], seen)
        wrong += _name(call["function"]["name"])
        ids.append(call["id"])
        if not isinstance(_read(call["function"]["arguments"]), dict):
            wrong.append(f"arguments of {call['id']} are no object")
    return ids, wrong


def anthropic(body: Mapping[str, Any], headers: Mapping[str, str]) -> list[str]:
    """What is wrong with a request for a message."""
    wrong = list(_unknown("request", body, ANTHROPIC_FIELDS))
    if "anthropic-version" not in headers:
        wrong.append("no version")
    if body.get("stream") is not True or "max_tokens" not in body:
        wrong.append("not a stream, or no limit of the output")
    if body.get("thinking", {}).get("budget_tokens", 0) >= body["max_tokens"]:
        wrong.append("more to think than to say")
    for block in body.get("system", []) if isinstance(body.get("system"), list) else []:
        wrong += _unknown("system", block, {"type", "text"})
    for tool in body.get("tools", []):
        wrong += _unknown("tool", tool, {"name", "description", "input_schema", "strict"})
        wrong += _tool(tool["name"], tool["input_schema"], tool.get("strict"))
    if "tool_choice" in body and body["tool_choice"]["type"] not in ("none", "auto"):
        wrong.append("tool_choice")
    return wrong + _anthropic_messages(body["messages"])


def _anthropic_messages(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    wrong, seen = [], set[str]()
    expected: list[str] = []
    for number, message in enumerate(messages):
        wrong += _unknown("message", message, {"role", "content"})
        if message["role"] != ("user", "assistant")[number % 2]:
            wrong.append(f"{message['role']} out of turn")
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if not blocks:
            wrong.append("an empty message")
        others_began = False
        for block in blocks:
            wrong += _unknown(block["type"], block, ANTHROPIC_BLOCKS.get(block["type"], set()))
            if block["type"] == "tool_result":
                if others_began:
                    wrong.append("a result behind other content")
                wrong += _answers(block["tool_use_id"], expected)
            else:
                others_began = True
            if block["type"] == "text" and not block["text"].strip():
                wrong.append("an empty text")
        wrong += [f"call {id} has no result" for id in expected]
        expected = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for id in expected:
            wrong += _new(id, seen)
        for block in blocks:
            if block["type"] == "tool_use":
                wrong += _name(block["name"])
                if not isinstance(block["input"], dict):
                    wrong.append(f"arguments of {block['id']} are no object")
    wrong += [f"call {id} has no result" for id in expected]
    if messages[-1]["role"] != "user":
        wrong.append("the model spoke last")
    return wrong


def _system(roles: Sequence[str]) -> list[str]:
    if roles.count("system") != 1 or roles[0] != "system":
        return [f"{roles.count('system')} system messages, or not first"]
    return []


def _answers(id: str, expected: list[str]) -> list[str]:
    if id not in expected:
        return [f"result {id} answers nothing"]
    expected.remove(id)
    return []


def _new(id: str, seen: set[str]) -> list[str]:
    is_old = not id or id in seen
    seen.add(id)
    return [f"call id {id!r} is empty or not new"] if is_old else []


def _tool(name: str, schema: Mapping[str, Any], strict: bool | None) -> list[str]:
    wrong = _name(name)
    if schema.get("type") != "object":
        wrong.append(f"schema of {name}")
    return wrong + (["strict"] if strict else [])


def _name(name: str) -> list[str]:
    return [] if NAME.fullmatch(name) else [f"name {name!r}"]


def _unknown(what: str, given: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    return [f"{what}: unknown {name}" for name in sorted(set(given) - set(known))]


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
