"""The gateway on a real port, and clients that speak frames as they like."""

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self
from unittest.mock import patch

import websockets
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi import FastAPI
from websockets.asyncio.client import ClientConnection

from app.aun import tokens
from app.aun.client_signatures import params_hash
from app.aun.models import Identity, IdentityKind
from app.aun.pki import certificates, issuers
from app.kernel import clock, db, settings
from app.kernel.db import Work
from app.operator.serve import SOCKETS
from tests.edge_server import serving

PATIENCE_S = 20
ECDSA = ec.ECDSA(hashes.SHA256())
NORMAL = 1000
GATEWAY = "ws://gateway.assent.localhost/aun/ws"  # of Acme, the first tenant


@contextmanager
def served(app: FastAPI) -> Iterator[int]:
    """The whole application on a free port, everything it starts with included.

    What it writes beside the database is its own: checkpoints of a trail that is gone would make
    the next one of the same tenant look changed.
    """
    with TemporaryDirectory() as folder:
        given = settings.current().model_copy(update={"checkpoint_dir": Path(folder)})
        with (
            patch.object(settings, "current", lambda: given),
            serving(app, lifespan="on", **SOCKETS) as port,
        ):
            yield port


def party(port: int, tenant_id: str, name: str) -> "Party":
    """An outside AID `name` of a tenant, ready to connect."""
    domain = db.read_now(issuers.domain_of, tenant_id)
    return Party(aid=f"{name}.{domain}", port=port).admit(tenant_id)


class Refused(Exception):
    """A method was refused."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']} {error['message']}")
        self.code: int = error["code"]
        self.text: str = error["message"]
        self.data: dict[str, Any] = error.get("data", {})


class Raw:
    """One WebSocket: frames in, frames out, answers by id, everything else in `heard`."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.heard: list[dict[str, Any]] = []
        self.challenge: dict[str, Any] = {}
        self._ids = itertools.count(1)
        self._answers: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    async def call(self, method: str, **params: Any) -> Any:
        """The result of a method.

        Raises:
            Refused: it was refused.
        """
        answer = await self.ask({"method": method, "params": params})
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["result"]

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The whole answer to a request, whatever it is."""
        request_id = f"rpc-{next(self._ids)}"
        whole = {"jsonrpc": "2.0", "id": request_id, **request}
        return await self.send(json.dumps(whole), request_id)

    async def send(self, text: str | bytes, answer_to: Any) -> dict[str, Any]:
        """Send a frame as it is; the answer with this id."""
        waits = self._answers[answer_to] = asyncio.get_running_loop().create_future()
        await self.socket.send(text)
        async with asyncio.timeout(PATIENCE_S):
            answer: dict[str, Any] = await waits
            return answer

    async def event(self, name: str, **like: Any) -> dict[str, Any]:
        """The first event of a name, with these members, that was heard or will be."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            while True:
                for frame in self.heard:
                    params = frame.get("params", {})
                    is_it = frame.get("method") == f"event/{name}"
                    if is_it and all(params.get(key) == value for key, value in like.items()):
                        return dict(params)
                await self._news.wait()

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of a name heard so far."""
        return [frame["params"] for frame in self.heard if frame.get("method") == f"event/{name}"]

    async def closed(self) -> int:
        """The code with which the server ends it."""
        async with asyncio.timeout(PATIENCE_S):
            await self.socket.wait_closed()
        return self.socket.close_code or 0

    async def _read(self) -> None:
        with contextlib.suppress(websockets.ConnectionClosed):
            async for text in self.socket:
                frame = json.loads(text)
                async with self._news:
                    waits = self._answers.pop(frame.get("id"), None)
                    if "method" not in frame and waits is not None and not waits.done():
                        waits.set_result(frame)
                    else:
                        self.heard.append(frame)
                    self._news.notify_all()
        for waits in self._answers.values():
            if not waits.done():
                waits.set_exception(ConnectionError("the socket closed"))

    async def __aenter__(self) -> Self:
        async with asyncio.timeout(PATIENCE_S), self._news:
            while not self.heard:
                await self._news.wait()
        self.challenge = self.heard.pop(0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.socket.close()
        await self._reader

    @property
    def nonce(self) -> str:
        """Of this socket's challenge."""
        return str(self.challenge["params"]["nonce"])


@asynccontextmanager
async def raw(port: int, **options: Any) -> AsyncIterator[Raw]:
    """A fresh socket, its challenge read."""
    socket = await websockets.connect(
        GATEWAY, host="127.0.0.1", port=port, max_size=None, ping_interval=None, **options
    )
    async with Raw(socket) as made:
        yield made


@dataclass
class Party:
    """An outside AID with its key."""

    aid: str
    port: int
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )
    device: str = "device-1"
    certificate: str = ""
    tokens: dict[str, Any] = field(default_factory=dict)

    @property
    def public_key(self) -> str:
        """Base64 of the SPKI DER."""
        public = self.key.public_key()
        der = public.public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return base64.b64encode(der).decode()

    def sign(self, text: str) -> str:
        """Base64 of the DER signature."""
        return base64.b64encode(self.key.sign(text.encode(), ECDSA)).decode()

    async def register(self) -> None:
        """Get a certificate."""
        async with raw(self.port) as socket:
            made = await socket.call(
                "auth.create_aid", aid=self.aid, public_key=self.public_key, curve="P-256"
            )
        self.certificate = made["cert"]

    async def log_in(self) -> None:
        """Get tokens."""
        async with raw(self.port) as socket:
            first = await socket.call(
                "auth.aid_login1", aid=self.aid, cert=self.certificate, client_nonce="bm9uY2U="
            )
            now = str(clock.now().timestamp())
            self.tokens = await socket.call(
                "auth.aid_login2",
                aid=self.aid,
                request_id=first["request_id"],
                nonce=first["nonce"],
                client_time=now,
                signature=self.sign(f"{first['nonce']}:{now}"),
            )

    async def ready(self) -> Self:
        """Registered and logged in."""
        await self.register()
        await self.log_in()
        return self

    def admit(self, tenant_id: str) -> Self:
        """The same as `ready`, without the way there: in the database of this process."""
        self.certificate, self.tokens = db.transact_now(_admitted, tenant_id, self)
        return self

    def connect_params(self, nonce: str, **more: Any) -> dict[str, Any]:
        """What the stock client says at `auth.connect`."""
        return {
            "nonce": nonce,
            "auth": {"method": "kite_token", "token": self.tokens["access_token"]},
            "protocol": {"min": "1.0", "max": "1.0"},
            "device": {"id": self.device, "type": "sdk"},
            "client": {"slot_id": "default", "sdk_lang": "python", "sdk_version": "0.5.25"},
            "delivery_mode": {"mode": "fanout"},
            "capabilities": {"p2p_peer_pull_v1": True, "e2ee": True, "group_e2ee": True},
            **more,
        }

    @asynccontextmanager
    async def connected(self, **more: Any) -> AsyncIterator[Raw]:
        """A connection of this AID."""
        async with raw(self.port) as socket:
            hello = await socket.call("auth.connect", **self.connect_params(socket.nonce, **more))
            assert hello["status"] == "ok"
            yield socket

    def signed(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """`params` with the client's signature over them."""
        digest, now = params_hash(params), str(clock.epoch_s())
        said = f"{method}|{self.aid}|{now}|{digest}"
        return {
            **params,
            "client_signature": {
                "aid": self.aid,
                "cert_fingerprint": f"sha256:{fingerprint(self.certificate)}",
                "timestamp": now,
                "params_hash": digest,
                "signature": self.sign(said),
            },
        }


def _admitted(work: Work, tenant_id: str, party: Party) -> tuple[str, dict[str, Any]]:
    now = clock.now()
    work.session.add(
        Identity(tenant_id=tenant_id, aid=party.aid, kind=IdentityKind.OUTSIDE, created_at=now)
    )
    work.session.flush()
    made = certificates.issue(work, tenant_id, party.aid, party.key.public_key())
    pair = tokens.begin(work, tenant_id, party.aid)
    found = {"access_token": pair.access_token, "refresh_token": pair.refresh_token}
    return certificates.pem(made.der), found


def fingerprint(pem: str) -> str:
    """SHA-256 of a certificate's DER, in hex."""
    return x509.load_pem_x509_certificate(pem.encode()).fingerprint(hashes.SHA256()).hex()


def text(words: str) -> dict[str, Any]:
    """The payload of a plain message."""
    return {"type": "text", "text": words}
