"""The keys that are held here for people and agents are found in nothing that leaves or stays."""

import base64
import json
import logging
import urllib.parse
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from sqlmodel import Session, select, text

from app.aun import identities, rpc
from app.aun.models import Identity
from app.kernel import db
from tests.aun.hostile import Maker
from tests.aun.serving import Refused, party, served
from tests.aun.serving import text as words
from tests.people import World

pytestmark = pytest.mark.anyio

TRIES = 3  # of each method, with parameters by its schema
CONTENT = ("BEGIN PRIVATE KEY", "BEGIN EC PRIVATE KEY", "BEGIN ENCRYPTED PRIVATE KEY")
PAGES = ("/conversations", "/connect", "/profile", "/agents", "/v1/openapi.json")


async def test_no_answer_no_log_and_no_row_holds_a_private_key_of_somebody_here(
    world: World, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    held = db.read_now(_held, world.acme.id)
    forms = [form for scalar in held.values() for form in _forms(scalar)]
    assert len(held) > 3

    with served(world.app) as port:
        tina = party(port, world.acme.id, "tina")
        said = await _by_socket(tina, sorted(held))
        said += await _by_http(world, sorted(held))

    out, err = capfd.readouterr()
    kept = db.read_now(_every_row)
    for where in (*said, caplog.text, out, err, kept):
        assert not [form for form in forms if form in where]
        assert not [mark for mark in CONTENT if mark in where]


async def _by_socket(tina: Any, aids: list[str]) -> list[str]:
    """What an outside party is told by every method, and what it hears."""
    maker, told = Maker(seed=3, known=aids), []
    asked = [
        call
        for aid in aids
        for call in (
            ("message.v2.bootstrap", {"peer_aid": aid}),
            ("message.send", {"to": aid, "payload": words("hello")}),
        )
    ]
    asked += [maker.call(name) for name in sorted(rpc.table()) for _ in range(TRIES)]
    async with tina.connected() as socket:
        for name, params in asked:
            try:
                safe = json.loads(json.dumps(params, allow_nan=False))
                told.append(await socket.call(name, **safe))
            except (Refused, ValueError) as refused:
                told.append(str(refused))
        told.append(socket.heard)
    return [json.dumps(each) for each in told]


async def _by_http(world: World, aids: list[str]) -> list[str]:
    """What a person and a stranger are shown."""
    told = []
    for client in (world.client(world.acme["olga"]), world.anonymous()):
        for aid in aids:
            for path in (f"/pki/cert/{aid}", "/pki/chain", "/agent.md", f"/aids/{aid}"):
                answer = await client.get(path, headers={"Host": aid})
                told.append(f"{answer.headers} {answer.text}")
        for path in PAGES:
            answer = await client.get(path)
            told.append(f"{answer.headers} {answer.text}")
        for name in ("message.v2.bootstrap", "meta.status", "message.peers"):
            asked = {"jsonrpc": "2.0", "id": 1, "method": name, "params": {"peer_aid": aids[0]}}
            answer = await client.post("/aun/rpc", json=asked)
            told.append(answer.text)
    return told


def _held(session: Session, tenant_id: str) -> dict[str, bytes]:
    """The scalars of the tenant, by AID."""
    query = select(Identity.aid).where(
        Identity.tenant_id == tenant_id,
        Identity.key_sealed != None,  # noqa: E711
    )
    return {aid: identities.key_of(session, tenant_id, aid) for aid in session.exec(query)}


def _forms(scalar: bytes) -> set[str]:
    """How a key could be written, in whole or as the part that every encoding of it has."""
    number = int.from_bytes(scalar, "big")
    key = ec.derive_private_key(number, ec.SECP256R1())
    coded = base64.b64encode(scalar).decode()
    found = {scalar.hex(), scalar.hex().upper(), str(number), repr(scalar)[2:-1], coded[:40]}
    found |= {base64.urlsafe_b64encode(scalar).decode()[:40], urllib.parse.quote(coded)[:40]}
    for form in (
        serialization.PrivateFormat.PKCS8,
        serialization.PrivateFormat.TraditionalOpenSSL,
    ):
        der = key.private_bytes(serialization.Encoding.DER, form, serialization.NoEncryption())
        at = der.index(scalar)
        found.add(base64.b64encode(der[at - at % 3 + 3 : at + 30]).decode()[:36])
        found.add(der.hex())
    return found


def _every_row(session: Session) -> str:
    """Every row of every table, bytes as hex and as they are."""
    bind = session.connection()
    named = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if bind.dialect.name == "sqlite"
        else "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    )
    return "\n".join(
        value.hex() if isinstance(value, bytes) else str(value)
        for (table,) in bind.execute(text(named)).all()
        for row in bind.execute(text(f'SELECT * FROM "{table}"'))  # noqa: S608
        for value in row
    )
