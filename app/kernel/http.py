"""The only way out of the process: outbound HTTP that cannot be turned against the inside.

Names are resolved once, every address is judged, and the connection goes to a judged address. No
redirects, no cookies, no proxies from the environment, https only; an operator may list `(host,
port)` pairs that are exempt. Webhooks, MCP and A2A peers, OIDC and client metadata have no other
way out (SEC-55, SEC-56, SEC-57).
"""

import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import anyio
import httpcore2
import httpx2

from app.kernel.errors import AppError
from app.kernel.i18n import N_

Resolve = Callable[[str, int], Awaitable[list[str]]]
Pairs = frozenset[tuple[str, int]]

GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
# `is_global` is not enough: CPython 3.11.7 says yes to fec0::1, ::127.0.0.1, ::ffff:0:127.0.0.1,
# 64:ff9b:1::/48, 2002::/16, 192.0.0.8 and 192.88.99.1 (measured).
SPECIAL = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",
        "192.88.99.0/24",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    )
)
HTTPS_PORT = 443
TIMEOUT_S = 5.0
BODY_LIMIT = 1 << 20  # bytes
CONNECTIONS = 20
ADDRESSES_TRIED = 4  # a name may have one that is down


class Refused(AppError):
    """The guard said no. `rule` names the rule; no address and no remote text is in it."""

    reason = "outbound_refused"
    status = 422
    says = N_("This address must not be called from here (rule: %(rule)s).")

    def __init__(self, rule: str) -> None:
        super().__init__(rule=rule)
        self.rule = rule


class Unreachable(AppError):
    """The other side gave no usable answer. `rule` is one of name, connection, timeout."""

    reason = "outbound_failed"
    status = 502
    says = N_("The other server did not answer as it should (%(rule)s).")

    def __init__(self, rule: str) -> None:
        super().__init__(rule=rule)
        self.rule = rule


def client(
    allow: Pairs = frozenset(),
    resolve: Resolve | None = None,
    *,
    body_limit: int | None = BODY_LIMIT,
) -> httpx2.AsyncClient:
    """A client that reaches public https addresses on port 443, and the pairs in `allow`.

    Whoever has to read a long stream of an endpoint the operator named passes `body_limit=None`.
    """
    return httpx2.AsyncClient(
        transport=GuardedTransport(allow, resolve or _resolve, body_limit),
        headers={"accept-encoding": "identity", "user-agent": "Assent"},
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # keeps none, sends none
        follow_redirects=False,
        trust_env=False,
        timeout=TIMEOUT_S,
    )


async def fetch(
    http: httpx2.AsyncClient, method: str, url: str, *, total_s: float = TIMEOUT_S, **kwargs: Any
) -> tuple[int, httpx2.Headers, bytes]:
    """One exchange, bounded as a whole: a body that drips counts, and so does one that is large.

    Raises:
        Refused: the address, the scheme, the encoding or the size is not acceptable.
        Unreachable: no answer, a broken one, or none within `total_s`.
    """
    try:
        with anyio.fail_after(total_s):
            async with http.stream(method, url, timeout=total_s, **kwargs) as response:
                body = b"".join([chunk async for chunk in response.aiter_raw()])
                return response.status_code, response.headers, body
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise Unreachable("timeout") from error
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
        raise Refused("url") from None  # the original quotes the URL, and what it may hold
    except httpx2.HTTPError as error:
        raise Unreachable("connection") from error


def pairs(text: str) -> Pairs:
    """The pairs of `host:port,host:port`, the form of `ASSENT_OUTBOUND_ALLOW` (SEC-56).

    Raises:
        ValueError: an item is not of that form.
    """
    return frozenset(_pair(item.strip()) for item in text.split(",") if item.strip())


def is_public(text: str) -> bool:
    """Whether an address is somebody else's. IPv6 counts from 2000::/3 only, so no mapped form."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if address.version == 6 and address not in GLOBAL_IPV6:
        return False
    if any(address in network for network in SPECIAL if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast


@cache
def _trust() -> ssl.SSLContext:
    """Whom TLS trusts: read once, since reading the bundle holds everybody up for 25 ms."""
    return httpx2.create_ssl_context(trust_env=False)


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """Judges the URL before, and the answer's encoding and size after, each request."""

    def __init__(self, allow: Pairs, resolve: Resolve, body_limit: int | None) -> None:
        context = _trust()
        super().__init__(verify=context, trust_env=False)
        self._allow, self._body_limit = allow, body_limit
        # `_pool` is the one private name we rely on; the tests notice if it moves.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            network_backend=GuardedBackend(allow, resolve),
            max_connections=CONNECTIONS,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request` if its URL may be reached.

        Raises:
            Refused: it may not, or the answer is encoded; reading a large answer raises it too.
        """
        url = request.url
        port = url.port or (HTTPS_PORT if url.scheme == "https" else 80)
        may_be_plain = url.scheme == "http" and (url.host, port) in self._allow
        if url.scheme != "https" and not may_be_plain:
            raise Refused("scheme")
        if url.userinfo:
            raise Refused("credentials")
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()  # 64 KiB of gzip may be 64 MiB; we did not ask for it
            raise Refused("encoding")
        if self._body_limit is not None and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, self._body_limit)
        return response


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Judges the addresses of a name and connects to one of them.

    TLS still checks the certificate against the name. As the address is fixed here, a second DNS
    answer changes nothing.
    """

    def __init__(self, allow: Pairs, resolve: Resolve) -> None:
        self._inner = httpcore2.AnyIOBackend()
        self._allow, self._resolve = allow, resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is the library's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to `host` if all of its addresses may be reached.

        Raises:
            Refused: the port or one of the addresses may not.
            Unreachable: the name has no address.
        """
        is_exempt = (host, port) in self._allow
        if port != HTTPS_PORT and not is_exempt:
            raise Refused("port")
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise Unreachable("name") from error
        if not addresses:
            raise Unreachable("name")
        if not is_exempt and not all(map(is_public, addresses)):  # one private answer spoils it
            raise Refused("address")
        return await self._connect_one(addresses[:ADDRESSES_TRIED], port, timeout, socket_options)

    async def _connect_one(
        self,
        addresses: list[str],
        port: int,
        within_s: float | None,
        socket_options: Iterable[Any] | None,
    ) -> httpcore2.AsyncNetworkStream:
        for address in addresses[:-1]:
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout=within_s, socket_options=socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
        return await self._inner.connect_tcp(
            addresses[-1], port, timeout=within_s, socket_options=socket_options
        )

    async def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
        """Never: a socket file is always inside."""
        raise Refused("unix_socket")

    async def sleep(self, seconds: float) -> None:
        """As the library does."""
        await self._inner.sleep(seconds)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        self._inner, self._left = inner, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise Refused("size")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _resolve(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def _pair(item: str) -> tuple[str, int]:
    host, colon, port = item.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"not host:port: {item!r}")
    return host.strip("[]").lower(), int(port)
