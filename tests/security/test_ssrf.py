"""No URL makes the server call the inside (SEC-55, SEC-56, SEC-57, T16)."""

import gzip
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpcore2
import pytest

from app.kernel import http
from app.kernel.asgi.wire import Receive, Scope, Send
from tests.edge_server import echo, serving

PUBLIC, PRIVATE = "93.184.216.34", "10.0.0.1"

# {port} is the port a canary listens on, on 127.0.0.1 and [::1]; the guard takes it for 443.
TEMPLATES = """
https://127.0.0.1:{port}/ https://127.0.0.2:{port}/ https://127.1:{port}/ https://127.0.1:{port}/
https://2130706433:{port}/ https://0x7f000001:{port}/ https://0x7f.1:{port}/
https://0x7f.0x0.0x0.0x1:{port}/ https://017700000001:{port}/ https://0177.0.0.1:{port}/
https://0177.0.0.01:{port}/ https://00000177.1:{port}/ https://0:{port}/ https://0.0.0.0:{port}/
https://[::]:{port}/ https://[::1]:{port}/ https://[0:0:0:0:0:0:0:1]:{port}/
https://[0000:0000:0000:0000:0000:0000:0000:0001]:{port}/ https://[::ffff:127.0.0.1]:{port}/
https://[::ffff:7f00:1]:{port}/ https://[::ffff:0:127.0.0.1]:{port}/ https://[::127.0.0.1]:{port}/
https://[::7f00:1]:{port}/ https://[64:ff9b::7f00:1]:{port}/ https://[64:ff9b:1::7f00:1]:{port}/
https://[2002:7f00:1::]:{port}/ https://[2001:0:7f00:1::]:{port}/ https://[2001:db8::1]:{port}/
https://[fec0::1]:{port}/ https://[fd00::1]:{port}/ https://[fc00::1]:{port}/
https://[fe80::1]:{port}/ https://[ff02::1]:{port}/ https://[100::1]:{port}/
https://[3fff::1]:{port}/ https://10.0.0.1:{port}/ https://10.255.255.255:{port}/
https://172.16.0.1:{port}/ https://172.31.255.255:{port}/ https://192.168.0.1:{port}/
https://169.254.169.254:{port}/latest/ https://100.64.0.1:{port}/ https://192.0.0.8:{port}/
https://192.0.2.1:{port}/ https://192.88.99.1:{port}/ https://198.18.0.1:{port}/
https://198.51.100.1:{port}/ https://203.0.113.1:{port}/ https://224.0.0.1:{port}/
https://240.0.0.1:{port}/ https://255.255.255.255:{port}/ https://localhost:{port}/
https://LOCALHOST:{port}/ https://localhost.:{port}/ https://\u2460\u2461\u2466.0.0.1:{port}/
https://\uff11\uff12\uff17.0.0.1:{port}/ https://127\u30020\u30020\u30021:{port}/
https://127\uff0e0\uff0e0\uff0e1:{port}/
https://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:{port}/
https://ok@127.0.0.1:{port}/ https://user:secret@localhost:{port}/
https://public.test@127.0.0.1:{port}/ https://127.0.0.1:{port}@public.test:{port}/
https://public.test:{port}#@127.0.0.1:{port}/ https://127.0.0.1:{port}#@public.test/
https://127.0.0.1:{port}\\@public.test/ https://public.test\\@127.0.0.1:{port}/
https://127.0.0.1%2f@localhost:{port}/ https://127.0.0.1:{port}/?https://public.test
https://127.0.0.1:{port}%00.public.test/ https:///127.0.0.1:{port}/ https:127.0.0.1:{port}
https://:{port}/ https:///x //127.0.0.1:{port}/ /x 127.0.0.1:{port} http://localhost:{port}/
http://127.0.0.1:{port}/ HTTP://127.0.0.1:{port}/ http://[::1]:{port}/ ws://127.0.0.1:{port}/
ftp://localhost:{port}/ file:///etc/hostname file://localhost/etc/hostname
gopher://localhost:{port}/_GET unix:///var/run/docker.sock http+unix://%2Fvar%2Frun%2Fx/
data:text/plain,x javascript:alert(1) jar:https://127.0.0.1!/ ldap://127.0.0.1:{port}/
https://127.0.0.1:22/ https://127.0.0.1:8000/ https://127.0.0.1:0/ https://127.0.0.1:65536/
https://127.0.0.1:+{port}/ https://[::1/ https://[127.0.0.1]:{port}/ https://[::1%25lo]:{port}/
"""
HOSTILE = TEMPLATES.split()


class Canary:
    """Listens on loopback and counts who connects: a connection is a hit, TLS or not."""

    def __init__(self) -> None:
        self.hits = 0
        self.port = 0


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Canary]:
    """Where the guard would connect to, were it not for its rules: its port counts as 443."""
    bird = Canary()
    with _listening(bird):
        monkeypatch.setattr(http, "HTTPS_PORT", bird.port)
        yield bird


@contextmanager
def _listening(bird: Canary) -> Iterator[None]:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        bird.port = listener.getsockname()[1]

        def count() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                bird.hits += 1
                peer.close()

        thread = threading.Thread(target=count)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


class Dialled:
    """A network without wires: notes where the guard would connect to."""

    def __init__(self, *answers: list[str]) -> None:
        self.addresses: list[str] = []
        self._answers = iter(answers)

    async def resolve(self, host: str, port: int) -> list[str]:
        return next(self._answers)

    async def connect_tcp(self, host: str, port: int, **_: Any) -> httpcore2.AsyncNetworkStream:
        self.addresses.append(host)
        raise httpcore2.ConnectError("a network without wires")


@asynccontextmanager
async def unplugged(
    monkeypatch: pytest.MonkeyPatch, network: Dialled, allow: http.Pairs = frozenset()
) -> AsyncIterator[Any]:
    monkeypatch.setattr(
        httpcore2.AnyIOBackend,
        "connect_tcp",
        lambda _, host, port, **more: network.connect_tcp(host, port),
    )
    async with http.client(allow, network.resolve) as web:
        yield web


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 90


@pytest.mark.requirement("SEC-T16", "SEC-55", "SEC-57", "SEC-P28")
@pytest.mark.parametrize("template", HOSTILE)
async def test_a_hostile_url_reaches_nothing(template: str, canary: Canary) -> None:
    url = template.replace("{port}", str(canary.port))

    async with http.client() as web:
        with pytest.raises((http.Refused, http.Unreachable)) as refused:
            await http.fetch(web, "GET", url)

    assert canary.hits == 0
    said = repr(refused.value.facts) + str(refused.value)
    assert "127" not in said
    assert "secret" not in said
    if isinstance(refused.value, http.Unreachable):  # no name, hence nothing to connect to
        assert refused.value.rule == "name", url


@pytest.mark.requirement("SEC-T16", "SEC-56")
async def test_the_canary_sings_when_the_operator_lists_it(canary: Canary) -> None:
    """What the test above proves nothing without."""
    async with http.client(http.pairs(f"127.0.0.1:{canary.port}")) as web:
        with pytest.raises(http.Unreachable):
            await http.fetch(web, "GET", f"https://127.0.0.1:{canary.port}/")
        with pytest.raises(http.Refused, match="outbound_refused"):
            await http.fetch(web, "GET", f"https://localhost:{canary.port}/")

    assert canary.hits == 1


@pytest.mark.requirement("SEC-T16")
async def test_a_name_that_changes_its_mind_is_judged_by_what_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = Dialled([PUBLIC], [PRIVATE], [PUBLIC, PRIVATE], [PRIVATE, PUBLIC], [])

    said: list[tuple[type[Exception], str]] = []
    async with unplugged(monkeypatch, network) as web:
        for _ in range(5):
            with pytest.raises((http.Refused, http.Unreachable)) as refused:
                await http.fetch(web, "GET", "https://rebind.test/")
            said.append((type(refused.value), refused.value.facts["rule"]))

    assert network.addresses == [PUBLIC]
    refusal = (http.Refused, "address")
    assert said[1:] == [refusal, refusal, refusal, (http.Unreachable, "name")]


@pytest.mark.requirement("SEC-T16", "SEC-P44")
@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://me@public.test/", "credentials"),
        ("https://me:pass@public.test/", "credentials"),
        ("http://public.test:443/", "scheme"),
        ("http://public.test/", "scheme"),
        ("https://public.test:8443/", "port"),
        ("https://public.test:80/", "port"),
    ],
)
async def test_a_public_name_is_not_enough(
    url: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Dialled([PUBLIC])

    async with unplugged(monkeypatch, network) as web:
        with pytest.raises(http.Refused) as refused:
            await http.fetch(web, "GET", url)

    assert refused.value.rule == rule
    assert network.addresses == []


async def test_a_second_address_is_tried_when_the_first_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = Dialled([PUBLIC, "93.184.216.35"])

    async with unplugged(monkeypatch, network) as web:
        with pytest.raises(http.Unreachable):
            await http.fetch(web, "GET", "https://public.test/")

    assert network.addresses == [PUBLIC, "93.184.216.35"]


@pytest.mark.requirement("SEC-55")
async def test_no_proxy_of_the_environment_is_used(
    canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")

    async def resolve(host: str, port: int) -> list[str]:
        return []

    async with http.client(frozenset(), resolve) as web:
        with pytest.raises(http.Unreachable):
            await http.fetch(web, "GET", f"https://public.test:{canary.port}/")

    assert canary.hits == 0


class Other:
    """A server on loopback that the operator exempted, and that answers badly."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.let_go = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.seen.append((path, headers))
        match path:
            case "/away":
                await self._say(send, 302, b"", location="/secret")
            case "/out":
                await self._say(send, 302, b"", location="http://169.254.169.254/")
            case "/big":
                await self._say(send, 200, b"x" * (http.BODY_LIMIT + 1))
            case "/full":
                await self._say(send, 200, b"x" * http.BODY_LIMIT)
            case "/bomb":
                bomb = gzip.compress(b"x" * (32 << 20))
                await self._say(send, 200, bomb, content_encoding="gzip")
            case "/brotli":
                await self._say(send, 200, b"x", content_encoding="br")
            case "/cookie":
                await self._say(send, 200, b"x", set_cookie="id=1; Path=/")
            case "/drip":
                await self._drip(send)
            case "/silent":
                await receive()
                await receive()  # until the caller has had enough
            case _:
                await echo(scope, receive, send)

    async def _say(self, send: Send, status: int, body: bytes, **headers: str) -> None:
        lines = [(n.replace("_", "-").encode(), v.encode()) for n, v in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": lines})
        await send({"type": "http.response.body", "body": body})

    async def _drip(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not self.let_go.is_set():
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await anyio.sleep(0.01)


@pytest.fixture
def other() -> Iterator[tuple[Other, str, http.Pairs]]:
    app = Other()
    with serving(app) as port:
        yield app, f"http://127.0.0.1:{port}", frozenset({("127.0.0.1", port)})
        app.let_go.set()


Exempt = tuple[Other, str, http.Pairs]


@pytest.mark.requirement("SEC-56")
async def test_an_exempt_pair_is_reached_and_sent_nothing_of_ours(
    other: Exempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, here, allow = other
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login us password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    async with http.client(allow) as web:
        status, _, body = await http.fetch(web, "POST", here + "/", content=b"abc")
        await http.fetch(web, "GET", here + "/cookie")
        await http.fetch(web, "GET", here + "/full")

    assert (status, body) == (200, b"3")
    names = set().union(*(headers for _, headers in app.seen))
    assert names == {
        "host",
        "accept",
        "accept-encoding",
        "connection",
        "user-agent",
        "content-length",
    }
    assert all(headers["accept-encoding"] == "identity" for _, headers in app.seen)
    assert all(headers["user-agent"] == "Assent" for _, headers in app.seen)


@pytest.mark.requirement("SEC-55", "SEC-T16")
@pytest.mark.parametrize(
    ("path", "rule"), [("/big", "size"), ("/bomb", "encoding"), ("/brotli", "encoding")]
)
async def test_an_answer_that_grows_is_not_read(path: str, rule: str, other: Exempt) -> None:
    _, here, allow = other

    async with http.client(allow) as web:
        with pytest.raises(http.Refused) as refused:
            await http.fetch(web, "GET", here + path)
        with pytest.raises(http.Refused):
            await web.get(here + path)  # the guard is in the transport, not in one caller

    assert refused.value.rule == rule


@pytest.mark.requirement("SEC-55", "SEC-T16")
@pytest.mark.parametrize("path", ["/drip", "/silent"])
async def test_an_answer_is_whole_in_time_or_none(path: str, other: Exempt) -> None:
    _, here, allow = other

    async with http.client(allow) as web:
        with pytest.raises(http.Unreachable) as failed:
            await http.fetch(web, "GET", here + path, total_s=0.3)

    assert failed.value.rule == "timeout"


@pytest.mark.requirement("SEC-55", "SEC-T16")
async def test_a_redirect_is_an_answer_and_not_an_order(other: Exempt) -> None:
    app, here, allow = other

    async with http.client(allow) as web:
        away, headers, _ = await http.fetch(web, "GET", here + "/away")
        out, _, _ = await http.fetch(web, "GET", here + "/out")
        with pytest.raises(http.Refused):  # and who insists is judged again
            await http.fetch(web, "GET", here + "/out", follow_redirects=True)

    assert (away, out, headers["location"]) == (302, 302, "/secret")
    assert "/secret" not in [path for path, _ in app.seen]


@pytest.mark.requirement("SEC-56")
def test_exemptions_are_exact_pairs() -> None:
    assert http.pairs(" Models.test:11434, [::1]:80,") == {("models.test", 11434), ("::1", 80)}
    for wrong in ("host", "host:", ":80", "host:0", "host:65536", "host:x", "http://host"):
        with pytest.raises(ValueError, match="not host:port"):
            http.pairs(wrong)
