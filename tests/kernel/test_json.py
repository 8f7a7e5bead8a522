"""Strict JSON in, canonical JSON out."""

import contextlib
import hashlib

import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from app.kernel import json
from app.kernel.errors import Invalid

PRINTABLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def is_exact(number: float) -> bool:
    return not json.MAX_INTEGER < abs(number) < json.WRITTEN_AS_FLOAT


NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=20)
SAFE = st.integers(-json.MAX_INTEGER, json.MAX_INTEGER)
PLAIN = st.none() | st.booleans() | SAFE | PRINTABLE
AUDIT_VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=5)
)
AUDIT_ROWS = st.dictionaries(NAMES, AUDIT_VALUES, max_size=20)
ANY_JSON = st.recursive(
    PLAIN | st.floats(allow_nan=False, allow_infinity=False).filter(is_exact),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(PRINTABLE, inner, max_size=5),
)


@given(AUDIT_ROWS)
def test_sorted_bytes_of_an_audit_row_are_its_canonical_bytes(row: dict[str, object]) -> None:
    assert json.dumps_sorted(row) == json.canonical(row)


@given(ANY_JSON)
def test_what_goes_out_comes_in_again(value: object) -> None:
    if b"\\u0000" in orjson.dumps(value):
        with pytest.raises(json.BadJSON):
            json.loads(json.dumps(value))
    else:
        assert json.loads(json.dumps(value)) == value


@given(ANY_JSON)
def test_what_was_let_in_has_a_canonical_form(value: object) -> None:
    raw = orjson.dumps(value)
    try:
        let_in = json.loads(raw)
    except json.BadJSON:
        return

    assert json.canonical(let_in) == json.canonical(json.loads(json.canonical(let_in)))


@given(st.binary(max_size=200))
def test_noise_is_a_value_or_a_refusal_and_nothing_else(raw: bytes) -> None:
    with contextlib.suppress(json.BadJSON):
        json.loads(raw)


def test_a_refusal_names_the_rule_and_quotes_nothing() -> None:
    with pytest.raises(json.BadJSON) as refused:
        json.loads(b'{"password":"hunter2"')

    assert isinstance(refused.value, Invalid)
    assert (refused.value.reason, refused.value.status) == ("invalid_json", 422)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__, "a log would quote the body"
    assert "hunter2" not in repr((refused.value, refused.value.facts, refused.value.errors))


def test_the_limits_are_the_callers() -> None:
    wide = b"[" + b"1," * 50_000 + b"1]"

    with pytest.raises(json.BadJSON, match="invalid_json"):
        json.loads(wide)
    assert len(json.loads(wide, max_nodes=json.MAX_NODES_AUN)) == 50_001
    with pytest.raises(json.BadJSON):
        json.loads(wide, max_nodes=json.MAX_NODES_AUN, max_bytes=1000)
    with pytest.raises(json.BadJSON):
        json.loads(b"[[[]]]", max_depth=2)


def test_a_time_has_no_sorted_form_of_its_own() -> None:
    from app.kernel import clock

    assert json.dumps(clock.now()).endswith(b'Z"')
    with pytest.raises(orjson.JSONEncodeError):
        json.dumps_sorted({"at": clock.now()})


def test_the_vectors_of_the_spec_hold() -> None:
    binding = hashlib.sha256(b"assent.approval.v1\n" + json.canonical({"b": "\u20ac", "a": 1}))
    assert binding.hexdigest().startswith("e47ffa856d44cc9f341faa3dbf11dfee")

    entry = {
        "tenant_id": "01T", "seq": 1, "at": "2026-01-02T03:04:05.000006Z", "outcome": "done",
        "agent_id": None,
    }  # fmt: skip
    body = bytes.fromhex("0" * 64) + json.dumps_sorted(entry)
    digest = hashlib.sha256(b"assent.audit.v1\n" + body).hexdigest()
    assert digest == "e5cb7e0cdc16419849070aae3a050ce503458bbef02ba6dc9e3958633c548be9"


def test_an_integer_without_canonical_form_is_refused_when_written_too() -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        json.canonical(2**53)
