"""What the layers before the application do, over real sockets."""

import asyncio
import io
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse

from app.kernel import logs
from app.kernel.asgi import headers, hosts
from app.kernel.asgi.bodies import BodyLimit, Limit
from app.kernel.asgi.context import RequestContext
from app.kernel.asgi.csp_report import CspReports
from app.kernel.asgi.faults import Faults
from app.kernel.asgi.headers import SecurityHeaders
from app.kernel.asgi.heads import HeadLimit
from app.kernel.asgi.hosts import HostCheck
from app.kernel.asgi.proxies import TrustedProxies
from app.kernel.asgi.wire import App
from app.kernel.errors import AppError, Busy
from app.kernel.rates import Rates
from tests.edge_server import ask, get, header_of, peer, rest_of, serving, status_of

SECRET = "hunter2"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; object-src 'none'; report-uri /csp-report"
)


def application() -> FastAPI:
    web = FastAPI(openapi_url=None, redirect_slashes=False)

    @web.exception_handler(Exception)
    async def again(_request: Request, fault: Exception) -> None:
        raise fault  # else Starlette answers, in plain text, before our last net

    @web.get("/", response_class=HTMLResponse)
    async def home() -> str:
        return "<!doctype html>home"

    @web.get("/fault")
    async def fault() -> str:
        raise RuntimeError(f"the password is {SECRET}")

    @web.get("/cut")
    async def cut() -> StreamingResponse:
        async def pieces() -> Any:
            yield b"half"
            raise RuntimeError(SECRET)

        return StreamingResponse(pieces())

    @web.get("/forbidden")
    async def forbidden() -> None:
        raise HTTPException(403)

    @web.get("/consent", response_class=HTMLResponse)
    async def consent(request: Request) -> str:
        request.state.csp_form_action = "https://client.test:8443"
        request.state.coop = "unsafe-none"
        return "consent"

    @web.get("/docs", response_class=HTMLResponse)
    async def docs(request: Request) -> str:
        request.state.csp_img_data = True
        return "docs"

    @web.get("/injected", response_class=HTMLResponse)
    async def injected(request: Request) -> str:
        request.state.csp_form_action = "https://x.test; script-src *"
        return "never"

    @web.get("/asset")
    async def asset() -> PlainTextResponse:
        return PlainTextResponse("x", headers={
            "cache-control": "public, max-age=31536000, immutable",
            "x-frame-options": "ALLOWALL",
            "content-security-policy": "sandbox; default-src 'none'",
        })  # fmt: skip

    @web.get("/who")
    async def who(request: Request) -> dict[str, Any]:
        names = [name for name in request.headers if "forward" in name or "real" in name]
        host = request.client.host if request.client else None
        return {"client": host, "scheme": request.url.scheme, "left": names}

    async def size(request: Request) -> dict[str, int]:
        return {"size": len(await request.body())}

    async def stubborn(request: Request) -> dict[str, str]:
        """Catches what its body raises, as frameworks do, and answers as if nothing were."""
        try:
            await request.body()
        except AppError as fault:
            return {"caught": type(fault).__name__}
        return {}

    async def deaf(request: Request) -> dict[str, str]:
        return {}

    for path in ("/size", "/uploads/7", "/aun/rpc"):
        web.add_api_route(path, size, methods=["POST", "PUT"])
    web.add_api_route("/stubborn", stubborn, methods=["POST"])
    web.add_api_route("/deaf", deaf, methods=["POST"])
    for path in ("/aun/ws", "/agent.md", "/pki/chain", "/health", "/v1/things", "/agent.mdx"):
        web.add_api_route(path, deaf, methods=["GET"])
    nested = APIRouter(prefix="/v1")
    nested.add_api_route("/calls/{call_id}", deaf, methods=["GET"])
    web.include_router(nested)
    return web


def layered(
    app: App,
    *,
    public_url: str = "http://localhost:8000",
    port: int = 8000,
    proxies: tuple[str, ...] = (),
    within_s: float = 30.0,
    reports: str = "3/minute",
) -> App:
    """Every layer, in the order of `app.kernel.asgi`."""
    app = CspReports(app, Rates({"csp_report": reports}))
    app = BodyLimit(
        app,
        default=Limit(100_000, within_s),
        form=Limit(10_000, within_s),
        by_prefix={"/uploads": Limit(1_000_000, within_s), "/aun": Limit(400_000, within_s)},
    )
    app = HostCheck(
        app, public_url=public_url, port=port, is_aun_name=lambda name: name.endswith("aun.test")
    )
    app = HeadLimit(app)
    app = Faults(app)
    app = SecurityHeaders(app, is_https=public_url.startswith("https"))
    app = RequestContext(app)
    return TrustedProxies(app, proxies)


HOST = "localhost:8000"


@pytest.fixture(autouse=True, scope="module")
def log() -> Iterator[io.StringIO]:
    """The log of this process, as the server writes it."""
    written = io.StringIO()
    logs.configure(as_json=True, stream=written)
    yield written
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(layered(application())) as listening:
        yield listening


def post(port: int, path: str, body: bytes, *lines: str, host: str = HOST) -> bytes:
    head = [f"POST {path} HTTP/1.1", f"host: {host}", "connection: close", *lines, "", ""]
    return ask(port, "\r\n".join(head).encode() + body)


def sized(port: int, path: str, size: int, *lines: str) -> bytes:
    return post(port, path, b"x" * size, f"content-length: {size}", *lines)


def chunked(port: int, path: str, size: int, *lines: str) -> bytes:
    body = b"%x\r\n%s\r\n" % (1000, b"x" * 1000) * (size // 1000) + b"0\r\n\r\n"
    return post(port, path, body, "transfer-encoding: chunked", *lines)


# Headers


ANSWERS = {
    "/": 200,
    "/fault": 500,
    "/forbidden": 403,
    "/nowhere": 404,
    "/size": 405,
    "/consent": 200,
    "/injected": 500,
}


@pytest.mark.requirement("SEC-44", "SEC-45", "SEC-T11")
@pytest.mark.parametrize(("path", "status"), ANSWERS.items())
def test_every_answer_carries_the_headers(path: str, status: int, port: int) -> None:
    answer = get(port, path, host=HOST, accept="text/html")

    assert status_of(answer) == status
    assert_dressed(answer)


def assert_dressed(answer: bytes) -> None:
    assert header_of(answer, "content-security-policy").startswith("default-src 'none'; script-src")
    assert "frame-ancestors 'none'" in header_of(answer, "content-security-policy")
    assert header_of(answer, "x-content-type-options") == "nosniff"
    assert header_of(answer, "referrer-policy") == "no-referrer"
    assert header_of(answer, "x-frame-options") == "DENY"
    assert header_of(answer, "cross-origin-opener-policy") in ("same-origin", "unsafe-none")
    assert header_of(answer, "cross-origin-resource-policy") == "same-origin"
    assert "camera=()" in header_of(answer, "permissions-policy")
    assert "publickey-credentials-get=(self)" in header_of(answer, "permissions-policy")
    assert header_of(answer, "cache-control") == "no-store"
    assert header_of(answer, "strict-transport-security") == ""
    assert len(header_of(answer, "x-request-id")) == 26


@pytest.mark.requirement("SEC-44", "SEC-45")
def test_refusals_of_the_layers_carry_them_too(port: int) -> None:
    large = sized(port, "/size", 100_001)
    elsewhere = get(port, "/", host="evil.test")
    long = get(port, "/", host=HOST, cookie="x" * 17_000)

    assert [status_of(raw) for raw in (large, elsewhere, long)] == [413, 421, 431]
    for raw in (large, elsewhere, long):
        assert_dressed(raw)


@pytest.mark.requirement("SEC-44")
def test_the_policy_is_the_one_of_the_spec_to_the_letter(port: int) -> None:
    assert header_of(get(port, "/", host=HOST), "content-security-policy") == CSP


@pytest.mark.requirement("SEC-44", "SEC-45")
def test_consent_and_docs_get_what_they_ask_for_and_no_more(port: int) -> None:
    consent, docs = get(port, "/consent", host=HOST), get(port, "/docs", host=HOST)

    allowed = "form-action 'self' https://client.test:8443;"
    assert header_of(consent, "content-security-policy") == CSP.replace(
        "form-action 'self';", allowed
    )
    assert header_of(consent, "cross-origin-opener-policy") == "unsafe-none"
    images = "img-src 'self' data:;"
    assert header_of(docs, "content-security-policy") == CSP.replace("img-src 'self';", images)
    assert header_of(docs, "cross-origin-opener-policy") == "same-origin"


@pytest.mark.requirement("SEC-44")
@pytest.mark.parametrize(
    ("source", "is_one"),
    [
        ("https://client.test:8443", True),
        ("http://127.0.0.1:5000", True),
        ("com.example.app:", True),
        ("http://[::1]:5000", True),
        ("https://x.test; script-src *", False),
        ("https://x.test https://y.test", False),
        ("*", False),
        ("https://x.test/path", False),
        ("https://*.test", False),
        ("'unsafe-inline'", False),
    ],
)
def test_only_an_origin_widens_the_policy(source: str, is_one: bool) -> None:
    if is_one:
        assert f"form-action 'self' {source};" in headers.policy({"csp_form_action": source})
    else:
        with pytest.raises(ValueError, match="csp_form_action"):
            headers.policy({"csp_form_action": source})


@pytest.mark.requirement("SEC-45")
def test_a_response_keeps_its_own_caching_and_sandbox_and_nothing_else(port: int) -> None:
    answer = get(port, "/asset", host=HOST)

    assert header_of(answer, "cache-control") == "public, max-age=31536000, immutable"
    assert header_of(answer, "content-security-policy") == "sandbox; default-src 'none'"
    assert header_of(answer, "x-frame-options") == "DENY"
    assert answer.lower().count(b"x-frame-options") == 1


@pytest.mark.requirement("SEC-45")
def test_hsts_is_for_https_only() -> None:
    app = layered(application(), public_url="https://assent.test", port=8000)
    with serving(app) as port:
        answer = get(port, "/", host="assent.test")

    assert header_of(answer, "strict-transport-security") == "max-age=31536000"


# Faults


@pytest.mark.requirement("SEC-53")
@pytest.mark.parametrize("accept", ["text/html", "application/json", "*/*"])
def test_a_fault_tells_nothing(accept: str, port: int, log: io.StringIO) -> None:
    answer = get(port, "/fault", host=HOST, accept=accept)

    kind = "text/html; charset=utf-8" if accept == "text/html" else "application/problem+json"
    assert status_of(answer) == 500
    assert header_of(answer, "content-type") == kind
    assert SECRET.encode() not in answer
    assert b"Traceback" not in answer
    assert b"RuntimeError" not in answer
    lines = [
        line for line in log.getvalue().splitlines() if header_of(answer, "x-request-id") in line
    ]
    assert any('"fault":"RuntimeError"' in line for line in lines)
    assert SECRET not in log.getvalue()


def test_a_fault_is_told_in_the_readers_language(port: int) -> None:
    answer = get(port, "/fault", host=HOST, accept="text/html", accept_language="zh-CN,zh;q=0.9")

    assert b'lang="zh-CN"' in answer
    assert "出了问题".encode() in answer


async def busy(_scope: Any, _receive: Any, _send: Any) -> None:
    raise Busy


def test_a_refusal_of_a_layer_is_no_fault(log: io.StringIO) -> None:
    with serving(layered(busy)) as port:
        answer = get(port, "/", host=HOST, accept="text/html")

    assert status_of(answer) == 503
    assert header_of(answer, "retry-after") == "1"
    assert b"The server is busy" in answer
    id = header_of(answer, "x-request-id")
    (line,) = [line for line in log.getvalue().splitlines() if id in line]
    assert '"event":"request"' in line


def test_an_answer_that_breaks_half_way_is_cut(port: int) -> None:
    answer = get(port, "/cut", host=HOST)

    assert status_of(answer) == 200
    assert b"half" in answer
    assert not answer.endswith(b"0\r\n\r\n"), "it must not look complete"


# Hosts


@pytest.mark.requirement("SEC-46", "SEC-T37")
@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("localhost:8000", "/", 200),
        ("LOCALHOST:8000", "/", 200),
        ("127.0.0.1:8000", "/", 200),
        ("[::1]:8000", "/", 200),
        ("localhost", "/", 421),
        ("localhost:8001", "/", 421),
        ("localhost.:8000", "/", 421),
        ("127.0.0.1.evil.test:8000", "/", 421),
        ("127.1:8000", "/", 421),
        ("0.0.0.0:8000", "/", 421),
        ("evil.test", "/", 421),
        ("evil.test:8000", "/", 421),
        ("localhost:8000.evil.test", "/", 421),
        ("localhost:8000@evil.test", "/", 421),
        ("evil.test@localhost:8000", "/", 421),
        ("x/admin?", "/", 421),
        ("localhost:8000/admin?", "/", 421),
        ("localhost:8000#", "/", 421),
        ("evil#", "/", 421),
        ("localhost:8000, evil.test", "/", 421),
        ("", "/", 421),
        ("bot.aun.test", "/aun/ws", 200),
        ("BOT.aun.test:20001", "/agent.md", 200),
        ("bot.aun.test", "/health", 200),
        ("gateway.aun.test:8000", "/pki/chain", 200),
        ("bot.aun.test", "/", 421),
        ("bot.aun.test", "/v1/things", 421),
        ("bot.aun.test", "/agent.mdx", 421),
        ("bot.aun.test", "/aun/../v1/things", 404),
        ("bot.aun.test/", "/aun/ws", 421),
        ("bot.aun.test:99999999", "/aun/ws", 421),
        ("bot.aun.evil", "/aun/ws", 421),
    ],
)
def test_only_our_names_are_answered(host: str, path: str, status: int, port: int) -> None:
    assert status_of(get(port, path, host=host)) == status


@pytest.mark.requirement("SEC-46")
def test_loopback_stays_open_beside_a_public_name() -> None:
    app = layered(application(), public_url="https://assent.test", port=8000)
    with serving(app) as port:
        statuses = {
            host: status_of(get(port, "/", host=host, accept="text/html"))
            for host in ("assent.test", "assent.test:443", "127.0.0.1:8000", "assent.test:8000")
        }

    assert statuses == {
        "assent.test": 200, "assent.test:443": 200, "127.0.0.1:8000": 200, "assent.test:8000": 421
    }  # fmt: skip


@pytest.mark.requirement("SEC-46", "SEC-T37")
@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost:8000\r\nhost: evil.test\r\n\r\n",
        b"GET http://localhost:8000/ HTTP/1.1\r\nhost: evil.test\r\n\r\n",
    ],
)
def test_a_host_that_is_missing_or_stands_there_twice_is_refused(head: bytes, port: int) -> None:
    assert status_of(ask(port, head.replace(b"\r\n", b"\r\nconnection: close\r\n", 1))) in (
        400,
        421,
    )


@pytest.mark.requirement("SEC-T37", "SEC-P31")
@pytest.mark.parametrize(
    "path",
    [
        "//v1/things", "/x/%2e%2e/v1/things", "/x/../v1/things", "/v1;/things", "/v1/things%00",
        "/V1/things", "/v1%2fthings/", "/./v1/things", "\\v1\\things",
    ],
)  # fmt: skip
def test_a_trick_in_the_path_is_another_path(path: str, port: int) -> None:
    assert status_of(get(port, path, host=HOST)) in (400, 404)


@pytest.mark.requirement("SEC-46")
def test_a_page_at_an_address_is_sent_to_localhost(port: int) -> None:
    page = {"host": "127.0.0.1:8000", "accept": "text/html,*/*"}

    answer = get(port, "/users?page=2", **page)
    six = get(port, "/", **{**page, "host": "[::1]:8000"})
    api = get(port, "/v1/things", host="127.0.0.1:8000", accept="application/json")
    tricky = get(port, "//evil.test/x", **page)

    assert (status_of(answer), header_of(answer, "location")) == (
        307, "http://localhost:8000/users?page=2"
    )  # fmt: skip
    assert header_of(six, "location") == "http://localhost:8000/"
    assert status_of(api) == 200
    assert header_of(tricky, "location") == "http://localhost:8000//evil.test/x"
    assert status_of(sized(port, "/size", 1, "accept: text/html")) == 200


# Proxies


def seen_by(proxies: tuple[str, ...], **lines: str) -> bytes:
    with serving(layered(application(), proxies=proxies)) as port:
        return get(port, "/who", host=HOST, **lines).rpartition(b"\r\n\r\n")[2]


@pytest.mark.requirement("SEC-46", "SEC-T37")
def test_forwarded_headers_of_a_stranger_do_not_count_and_do_not_pass() -> None:
    said = seen_by(
        (), x_forwarded_for="9.9.9.9", x_forwarded_proto="https", forwarded="for=9.9.9.9",
        x_forwarded_host="evil.test", x_real_ip="9.9.9.9",
    )  # fmt: skip

    assert said == b'{"client":"127.0.0.1","scheme":"http","left":[]}'


@pytest.mark.requirement("SEC-46", "SEC-T37")
def test_a_peer_that_is_no_proxy_of_ours_cannot_claim_to_be_another() -> None:
    said = seen_by(("10.0.0.0/8",), x_forwarded_for="9.9.9.9", x_forwarded_proto="https")

    assert said == b'{"client":"127.0.0.1","scheme":"http","left":[]}'


@pytest.mark.requirement("SEC-46")
@pytest.mark.parametrize(
    ("chain", "client"),
    [
        ("9.9.9.9", "9.9.9.9"),
        ("6.6.6.6, 9.9.9.9", "9.9.9.9"),
        ("6.6.6.6, 9.9.9.9, 10.0.0.7", "9.9.9.9"),
        ("10.0.0.9, 10.0.0.7", "10.0.0.9"),
        ("evil, 10.0.0.7", "10.0.0.7"),
        ("evil", "127.0.0.1"),
        ("2001:db8::5", "2001:db8::5"),
    ],
)
def test_the_client_is_the_first_stranger_seen_from_here(chain: str, client: str) -> None:
    said = seen_by(("127.0.0.1", "10.0.0.0/8"), x_forwarded_for=chain, x_forwarded_proto="https")

    assert f'"client":"{client}","scheme":"https"'.encode() in said


# Heads


@pytest.mark.requirement("SEC-49")
def test_a_head_of_16_kib_passes_and_a_larger_one_does_not(port: int) -> None:
    room = 16 * 1024 - 200

    assert status_of(get(port, "/", host=HOST, cookie="x" * room)) == 200
    assert status_of(get(port, "/", host=HOST, cookie="x" * (room + 200))) == 431
    assert status_of(get(port, "/?" + "x" * 16 * 1024, host=HOST)) == 431


@pytest.mark.requirement("SEC-34")
@pytest.mark.parametrize("name", ["Authorization", "Origin", "Sec-Fetch-Site", "X-CSRF-Token"])
def test_a_deciding_header_stands_there_once(name: str, port: int) -> None:
    once = post(port, "/size", b"", "content-length: 0", f"{name}: a")
    twice = post(port, "/size", b"", "content-length: 0", f"{name}: a", f"{name.lower()}: a")

    assert status_of(once) == 200
    assert status_of(twice) == 400
    assert b'"reason":"repeated_header"' in twice


# Bodies


@pytest.mark.requirement("SEC-47", "SEC-T27", "SEC-P33")
@pytest.mark.parametrize("send", [sized, chunked])
@pytest.mark.parametrize(
    ("path", "size", "kind", "status"),
    [
        ("/size", 100_000, "application/json", 200),
        ("/size", 101_000, "application/json", 413),
        ("/size", 10_000, "application/x-www-form-urlencoded", 200),
        ("/size", 11_000, "application/x-www-form-urlencoded", 413),
        ("/size", 11_000, "Multipart/Form-Data; boundary=x", 413),
        ("/uploads/7", 1_000_000, "multipart/form-data; boundary=x", 200),
        ("/uploads/7", 1_001_000, "multipart/form-data; boundary=x", 413),
        ("/aun/rpc", 400_000, "application/json", 200),
        ("/aun/rpc", 401_000, "application/json", 413),
        ("/stubborn", 101_000, "application/json", 413),
    ],
)
def test_a_body_is_counted_with_and_without_a_length(
    send: Any, path: str, size: int, kind: str, status: int, port: int
) -> None:
    answer = send(port, path, size, f"content-type: {kind}")

    assert status_of(answer) == status
    if status == 200:
        assert answer.endswith(b'{"size":%d}' % size)


@pytest.mark.requirement("SEC-T27")
def test_a_body_without_end_is_refused_after_its_limit(port: int) -> None:
    head = f"POST /size HTTP/1.1\r\nhost: {HOST}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    piece = b"%x\r\n%s\r\n" % (10_000, b"x" * 10_000)

    with peer(port) as connection:
        connection.sendall(head)
        sent = 0
        try:
            while sent < 100_000_000:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        answer = rest_of(connection)

    assert sent < 20_000_000, "the connection ends long before the sender is done"
    assert status_of(answer) in (0, 413)


@pytest.mark.requirement("SEC-47")
def test_a_gigabyte_is_refused_by_its_announcement(port: int) -> None:
    answer = post(port, "/size", b"", "content-length: 1073741824")

    assert status_of(answer) == 413
    assert header_of(answer, "connection") == "close"


@pytest.mark.requirement("SEC-47")
@pytest.mark.parametrize("path", ["/size", "/stubborn"])
def test_a_body_that_is_late_is_408(path: str) -> None:
    with serving(layered(application(), within_s=0.2)) as port, peer(port) as connection:
        head = f"POST {path} HTTP/1.1\r\nhost: {HOST}\r\ncontent-length: 3\r\n\r\na"
        connection.sendall(head.encode())
        answer = rest_of(connection)

    assert status_of(answer) == 408
    assert b"body_too_slow" in answer


@pytest.mark.requirement("SEC-47")
def test_an_answer_before_the_end_of_a_body_closes_the_connection(port: int) -> None:
    with peer(port) as connection:
        head = f"POST /deaf HTTP/1.1\r\nhost: {HOST}\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.sendall(head.encode() + b"1\r\nx\r\n")
        answer = rest_of(connection)  # it ends, although the body never does

    assert status_of(answer) == 200
    assert header_of(answer, "connection") == "close"


def test_a_waiting_stream_learns_that_its_reader_left_however_late() -> None:
    left = threading.Event()
    waits = threading.Event()

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        waits.set()
        async with asyncio.timeout(60):
            assert (await receive())["type"] == "http.disconnect"
        left.set()

    with serving(BodyLimit(stream, default=Limit(10, within_s=0.01))) as port:
        with peer(port) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\nx")
            assert waits.wait(10)
        assert left.wait(10)


# Reports


@pytest.mark.requirement("SEC-44")
def test_reports_are_taken_in_a_small_size_and_at_a_small_rate() -> None:
    report = (
        b'{"csp-report":{"effective-directive":"img-src","blocked-uri":"https://x.test/secret"}}'
    )
    kind = "content-type: application/csp-report"

    with serving(layered(application())) as port:
        taken = post(port, "/csp-report", report, kind, f"content-length: {len(report)}")
        odd = post(port, "/csp-report", b"[NaN", kind, "content-length: 4")
        large = post(port, "/csp-report", b"x" * 9000, kind, "content-length: 9000")
        often = post(port, "/csp-report", report, kind, f"content-length: {len(report)}")

    assert [status_of(raw) for raw in (taken, odd, large, often)] == [204, 204, 413, 429]
    assert int(header_of(often, "retry-after")) > 0
    assert_dressed(taken)


def test_the_paths_of_aun_names_are_those_of_its_spec() -> None:
    assert set(hosts.AUN_PATHS) == {
        "/aun", "/pki", "/agent.md", "/.well-known/aun-gateway", "/health", "/root.crt"
    }  # fmt: skip
