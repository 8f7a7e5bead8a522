"""A file of the trail: safe in a spreadsheet, whole in JSON, and able to be checked later."""

import csv
import io
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest
from sqlmodel import Session

from app.audit import chain, checkpoints, exports, queries, trail
from app.audit.exports import Export, Format
from app.audit.queries import EVERYTHING, Filters, Sight
from app.identity.errors import SignInRequired
from app.identity.principal import Channel, Principal
from app.kernel import clock, db, settings
from app.kernel.settings import Settings
from tests.audit import trails

SHANGHAI = ZoneInfo("Asia/Shanghai")
WIDE = [chr(ord(sign) + 0xFEE0) for sign in "=+-@"]
FORMULAS = (
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1",
    *(f"{sign}1" for sign in WIDE), *(f"a,{sign}1" for sign in WIDE),
    "=cmd|' /C calc'!A0", '"a",=1', 'a;"=1', "x|@y", "a,\t=1", "line\n=1", "=\"a\"\"b\"",
)  # fmt: skip
PLAIN = (
    "",
    "a",
    "a=b",
    "1-2",
    "me@example.com",
    "出差",
    "'quoted'",
    '{"a":-1}',
    "a, b",
    "2026-03-02",
)


@pytest.mark.requirement("SEC-54", "SEC-T21")
@pytest.mark.parametrize("text", FORMULAS)
def test_what_a_spreadsheet_would_compute_is_text(text: str) -> None:
    assert exports.cell(text) == f"'{text}"


@pytest.mark.requirement("SEC-54")
@pytest.mark.parametrize("text", PLAIN)
def test_what_it_would_not_compute_stays_as_it_is(text: str) -> None:
    assert exports.cell(text) == text


@pytest.mark.requirement("SEC-54", "CON-98")
async def test_a_csv_has_its_mark_its_zone_and_every_hit(keys: str) -> None:
    tenant_id = trails.tenant()
    at = clock.now()
    hostile = '=HYPERLINK("http://x.example","y")\r\n"z"'
    db.transact_now(trail.append, trails.entry(tenant_id, target_id=hostile, at=at, reason="出差"))
    trails.fill(tenant_id, exports.PIECE + 20)

    body = b"".join([piece async for piece in exports.pieces(_export(tenant_id, "csv"))])

    assert body.startswith(b"\xef\xbb\xbfseq,at,command")
    rows = list(csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline="")))
    assert [int(row["seq"]) for row in rows] == list(range(exports.PIECE + 21, 0, -1))
    assert rows[-1]["target_id"] == f"'{hostile}"
    assert rows[-1]["reason"] == "出差"
    assert rows[-1]["at"] == at.astimezone(SHANGHAI).isoformat(timespec="microseconds")
    assert rows[-1]["at"].endswith("+08:00")


@pytest.mark.requirement("SEC-79")
async def test_jsonl_says_what_it_is_and_can_be_checked_later(
    keys: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "current", lambda: Settings(checkpoint_dir=folder))
    tenant_id = trails.tenant()
    trails.fill(tenant_id, 4)
    checkpoints.make_all(folder)
    trails.fill(tenant_id, 1)
    asked = {"outcome": ["done"]}

    export = _export(tenant_id, "jsonl", asked=asked, filters=Filters(outcomes=("done",)))
    trails.fill(tenant_id, 1)  # after it began: no part of it
    lines = b"".join([piece async for piece in exports.pieces(export)]).splitlines()
    about, *entries = map(orjson.loads, lines)

    head = db.read_now(queries.one, tenant_id, 5)
    assert head is not None
    assert about["filters"] == asked
    assert about["head"] == {"seq": 5, "hash": head.hash}
    assert (about["checkpoint"]["seq"], about["tenant"]) == (4, tenant_id)
    assert [entry["seq"] for entry in entries] == [5, 4, 3, 2, 1]
    for entry in entries:
        says = {name: entry[name] for name in chain.HASHED}
        assert chain.link(entry["prev_hash"], says) == entry["hash"], "as the chain has it"


async def test_an_export_ends_where_the_right_to_read_ends(keys: str) -> None:
    tenant_id = trails.tenant()
    trails.fill(tenant_id, exports.PIECE * 2)
    looked: list[int] = []

    def look(_session: Session, _principal: Principal) -> Sight:
        looked.append(1)
        if len(looked) > 2:
            raise SignInRequired
        return EVERYTHING

    pieces = exports.pieces(_export(tenant_id, "jsonl", look=look))
    assert await anext(pieces)
    assert len((await anext(pieces)).splitlines()) == exports.PIECE
    with pytest.raises(SignInRequired):
        await anext(pieces)


async def test_an_export_of_nothing_is_a_file_without_entries(keys: str) -> None:
    tenant_id = trails.tenant()
    long_ago = Filters(until=clock.now() - timedelta(days=1))

    empty = [piece async for piece in exports.pieces(_export(tenant_id, "csv"))]
    trails.fill(tenant_id, 1)
    none = [piece async for piece in exports.pieces(_export(tenant_id, "csv", filters=long_ago))]

    assert b"".join(empty) == b"".join(none)
    assert len(b"".join(empty).splitlines()) == 1


def _export(tenant_id: str, format: Format, **more: Any) -> Export:
    person = Principal.person(
        tenant_id=tenant_id, user_id="U1", session_id="S", epoch=0, channel=Channel.CONSOLE
    )
    given: dict[str, Any] = {
        "asked": {},
        "filters": Filters(),
        "look": lambda *_: EVERYTHING,
        **more,
    }
    head = db.read_now(queries.head, tenant_id)
    return Export(format=format, principal=person, zone=SHANGHAI, head=head, **given)
