"""Bodies that are JSON to some and not to others (SEC-48, T28)."""

import pytest

from app.kernel import json

ODD = {
    "nothing": b"",
    "not UTF-8": b"\xff",
    "UTF-16": "{}".encode("utf-16"),
    "cut": b'{"a":',
    "trailing comma": b"[1,]",
    "two values": b"{} {}",
    "single quotes": b"{'a':1}",
    "comment": b"{}//x",
    "byte order mark": "\ufeff{}".encode(),
    "control character": b'["\x01"]',
    "leading zero": b"[01]",
    "plus": b"[+1]",
    "duplicate key": b'{"a":1,"a":2}',
    "duplicate key in other spelling": b'{"a":1,"\\u0061":2}',
    "nested duplicate": b'[{"a":{"b":1,"b":1}}]',
    "NaN": b"[NaN]",
    "infinity": b"[Infinity]",
    "minus infinity": b"[-Infinity]",
    "1e999": b"[1e999]",
    "-1e999": b"[-1e999]",
    "beyond 2^53-1": b"[9007199254740992]",
    "below": b"[-9007199254740992]",
    "beyond, as a float": b"[9007199254740993.0]",
    "5,000 digits": b"[" + b"9" * 5000 + b"]",
    "lone high surrogate": b'["\\ud800"]',
    "lone low surrogate": b'["x\\udfffx"]',
    "surrogate in a key": b'{"\\udfff":1}',
    "surrogates the wrong way round": b'["\\ude00\\ud83d"]',
    "NUL": b'["\\u0000"]',
    "NUL in a key": b'{"a\\u0000":1}',
    "65 levels": b"[" * 65 + b"]" * 65,
    "100,000 levels": b"[" * 100_000 + b"]" * 100_000,
    "100,000 levels of objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "never closed": b'{"a":' * 170_000,
    "20,001 values": b"[" + b"1," * 20_000 + b"1]",
    "too many keys": b"{" + b",".join(b'"%d":1' % n for n in range(10_001)) + b"}",
    "1 MB key": b'{"' + b"x" * (1 << 20) + b'":1}',
    "1 MB text": b'"' + b"x" * (1 << 20) + b'"',
}


@pytest.mark.requirement("SEC-48", "SEC-T28")
@pytest.mark.parametrize("raw", ODD.values(), ids=ODD.keys())
def test_odd_json_is_refused_at_the_door(raw: bytes) -> None:
    with pytest.raises(json.BadJSON):
        json.loads(raw)


@pytest.mark.requirement("SEC-48")
def test_ordinary_json_of_every_kind_passes() -> None:
    value = json.loads(b'[1,2.5,"\\ud83d\\ude00",null,true,-0,{"a":[]},9007199254740991,1e2]')

    assert value == [1, 2.5, "\U0001f600", None, True, 0, {"a": []}, 2**53 - 1, 100.0]
    assert json.loads(b"[" * 64 + b"]" * 64)
    assert len(json.loads(b"[" + b"1," * 19_998 + b"1]")) == 19_999
