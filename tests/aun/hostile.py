"""Frames and parameters that no client sends: made up by schema, then broken byte by byte."""

import json
import random
from typing import Any

from app.aun import rpc

LONGEST_TEXT = 3_000
NASTY = (
    "",
    "\x00",
    "' OR 1=1 --",
    "{{7*7}}",
    "../../etc/passwd",
    "\u202etext",
    "\ufffd",
    "é" * 300,
    "x" * LONGEST_TEXT,
)
NUMBERS = (0, 1, -1, 2**31, 2**53 - 1, 2**53, -(2**63), 10**40, 1.5, float("nan"), float("inf"))
PIECES = (
    b"[" * 70,
    b'{"a":' * 2_000,
    b"NaN",
    b"1e999",
    b'"\\ud800"',
    b"\xff\xfe",
    b"\x00",
    b'"id":',
    b"9" * 400,
    b"}",
)


class Maker:
    """Everything from one seed; `known` are names and ids that exist, for calls that go deep."""

    def __init__(self, seed: int, known: list[str]) -> None:
        self.random = random.Random(seed)  # noqa: S311 - nothing secret, and the same every time
        self._known = known
        self._methods = sorted(rpc.table())
        self._schemas = {
            name: method.params.model_json_schema() for name, (method, _) in rpc.table().items()
        }

    def call(self, name: str | None = None) -> tuple[str, dict[str, Any]]:
        """A method and parameters, most of which fit its schema."""
        name = name or self.random.choice(self._methods)
        schema = self._schemas[name]
        params = {
            key: self._of(each, schema) if self.random.random() < 0.8 else self.anything()
            for key, each in schema.get("properties", {}).items()
            if key in schema.get("required", ()) or self.random.random() < 0.4
        }
        if self.random.random() < 0.1:
            params[self.random.choice(NASTY)] = self.anything()
        return name, params

    def frame(self, request_id: str) -> bytes:
        """A call as a frame, whole or broken."""
        name, params = self.call()
        if self.random.random() < 0.05:
            name = self.random.choice(NASTY)
        asked = {"jsonrpc": "2.0", "id": request_id, "method": name, "params": params}
        raw = json.dumps(asked).encode("utf-8", "surrogatepass")
        return raw if self.random.random() < 0.5 else self.broken(raw)

    def broken(self, raw: bytes) -> bytes:
        """Some bytes of it lost, doubled, changed, or with something put between them."""
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randrange(len(raw) + 1)
            match self.random.randrange(5):
                case 0:
                    raw = raw[:at]
                case 1:
                    raw = raw[:at] + self.random.choice(PIECES) + raw[at:]
                case 2:
                    raw = raw[:at] + self.random.randbytes(self.random.randint(1, 8)) + raw[at:]
                case 3:
                    raw = raw[:at] + raw[at + self.random.randint(1, 30) :]
                case _:
                    raw = raw[:at] + raw[:200] + raw[at:]
        return raw

    def anything(self, depth: int = 0) -> Any:
        """Any value of JSON, and some that only lenient readers know."""
        choice = self.random.randrange(7 if depth < 4 else 5)
        if choice == 0:
            return self.random.choice(NUMBERS)
        if choice in {1, 2}:
            return self._text()
        if choice in {3, 4}:
            return self.random.choice((None, True, False))
        many = range(self.random.randint(0, 3))
        if choice == 5:
            return [self.anything(depth + 1) for _ in many]
        return {self._text(): self.anything(depth + 1) for _ in many}

    def _text(self) -> str:
        return self.random.choice(self._known if self.random.random() < 0.7 else NASTY)

    def _of(self, schema: dict[str, Any], root: dict[str, Any]) -> Any:
        if "$ref" in schema:
            return self._of(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
        if "enum" in schema or "const" in schema:
            return self.random.choice(schema.get("enum") or [schema["const"]])
        if each := schema.get("anyOf") or schema.get("oneOf"):
            return self._of(self.random.choice(each), root)
        match schema.get("type"):
            case "string":
                return self._text()
            case "integer":
                return self.random.choice((0, 1, 2, 50, 200, 10_000))
            case "number":
                return 1.5
            case "boolean":
                return self.random.random() < 0.5
            case "array":
                many = range(self.random.randint(0, 3))
                return [self._of(schema.get("items", {}), root) for _ in many]
            case "object" if "properties" in schema:
                given = schema["properties"].items()
                return {key: self._of(each, root) for key, each in given}
            case "object":
                return {"type": "text", "text": self._text()}
            case _:
                return self.anything(3)
