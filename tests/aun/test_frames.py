"""What is read from a frame: strictly, and never without the id a client waits for."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.aun import frames
from app.aun.frames import Refusal, Request
from app.kernel import json as kernel_json

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def _accepted(raw: bytes) -> Request | None:
    """The request, or None for what is refused as unsafe; anything else fails."""
    try:
        return frames.read(raw)
    except Refusal as refused:
        if refused.error.code != -32602:
            raise
        return None


def _refused(text: str | bytes) -> Refusal:
    with pytest.raises(Refusal) as refused:
        frames.read(text.encode() if isinstance(text, str) else text)
    return refused.value


@pytest.mark.parametrize(
    ("params", "is_safe"),
    [
        ('{"n":9007199254740991}', True),
        ('{"n":9007199254740992}', False),
        ('{"n":-9007199254740992}', False),
        ('{"n":9007199254740992.0}', False),
        ('{"n":1e999}', False),
        ('{"n":NaN}', False),
        ('{"a":{"n":1,"n":1}}', False),
        ('{"n":"\\ud83d"}', False),
        ('{"n":"\\ud83d\\ude00"}', True),
        ('{"a\\u0000":1}', False),
        ("[" * 60 + "]" * 60, True),
        ("[" * 70 + "]" * 70, False),
    ],
)
def test_what_a_receiver_could_not_bear_is_refused_with_the_requests_id(
    params: str, is_safe: bool
) -> None:
    text = f'{{"jsonrpc":"2.0","id":"rpc-7","method":"m","params":{{"x":{params}}}}}'
    if is_safe:
        assert frames.read(text.encode()).id == "rpc-7"
        return
    refusal = _refused(text)
    assert (refusal.id, refusal.error.code) == ("rpc-7", -32602)


def test_nesting_beyond_what_a_parser_bears_still_answers_the_request() -> None:
    deep = "[" * 200_000 + "]" * 200_000
    refusal = _refused(f'{{"id":"rpc-8","method":"m","params":{{"x":{deep}}}}}')
    assert (refusal.id, refusal.error.code) == ("rpc-8", -32602)


def test_an_id_no_answer_could_carry_in_nesting_beyond_parsers_is_answered_without_one() -> None:
    deep = b'{"a":' + b"[" * 200_000
    for bad in (b'"\x01"', rb'"\q"', rb'"\ud800"', b'"\xff"'):
        refused = _refused(deep + b',"id":' + bad)
        assert refused.id is None
        assert json.loads(frames.failure(refused.id, refused.error, "trace"))["id"] is None


def test_what_is_no_json_or_no_request_says_so() -> None:
    assert _refused("{").error.code == -32700
    assert _refused(b"\xff\xfe").error.code == -32700
    assert _refused("7").error.code == -32600
    assert _refused('[{"id":1,"method":"m"}]').error.code == -32600
    refusal = _refused('{"id":5,"method":"m","params":[]}')
    assert (refusal.id, refusal.error.code) == (5, -32600)


@given(value=ANY)
def test_what_is_accepted_is_written_again_as_plain_strict_json(value: object) -> None:
    raw = json.dumps({"id": "x", "method": "m", "params": {"v": value}}).encode()
    request = _accepted(raw)
    if request is None:
        return
    written = {"id": "x", "method": "m", "params": request.params}
    again = frames.read(kernel_json.dumps(written))
    assert again.params == request.params


@given(raw=st.binary(max_size=200))
def test_no_bytes_are_anything_but_a_request_or_a_refusal(raw: bytes) -> None:
    try:
        frames.read(raw)
    except Refusal as refused:
        frames.failure(refused.id, refused.error, "t")
