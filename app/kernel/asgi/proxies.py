"""Who the peer is when there are proxies in front: what they say counts, of others it does not."""

import ipaddress
from collections.abc import Sequence

from app.kernel.asgi.wire import App, Receive, Scope, Send, values

FORWARDED = frozenset(
    {b"forwarded", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host",
     b"x-forwarded-port", b"x-forwarded-prefix", b"x-forwarded-server", b"x-real-ip"}
)  # fmt: skip
WAS_FORWARDED = "was_forwarded"  # key of the request's state
TLS_SCHEMES = {"http": "https", "ws": "wss"}

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class TrustedProxies:
    """Sets the client and the scheme from `X-Forwarded-For` and `-Proto` of the networks given.

    The headers are taken out of every request, so that nothing further in can believe them; that
    there were some stays in the request's state, for who must know whether the peer is the caller.

    Raises:
        ValueError: one of `networks` is not an address or a network.
    """

    def __init__(self, app: App, networks: Sequence[str] = ()) -> None:
        self._app = app
        self._networks = tuple(ipaddress.ip_network(text, strict=False) for text in networks)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its true client and scheme."""
        if scope["type"] in ("http", "websocket"):
            self._settle(scope)
        await self._app(scope, receive, send)

    def _settle(self, scope: Scope) -> None:
        client = scope.get("client")
        if client and self._networks and self._is_trusted(client[0]):
            chain = [
                one.strip() for line in values(scope, b"x-forwarded-for") for one in line.split(",")
            ]
            if address := self._first_stranger(chain):
                scope["client"] = (address, 0)
            protos = [
                one.strip()
                for line in values(scope, b"x-forwarded-proto")
                for one in line.split(",")
            ]
            if protos and protos[-1] == "https":
                scope["scheme"] = TLS_SCHEMES.get(scope["scheme"], scope["scheme"])
        if any(name in FORWARDED for name, _ in scope["headers"]):
            scope.setdefault("state", {})[WAS_FORWARDED] = True
            scope["headers"] = [line for line in scope["headers"] if line[0] not in FORWARDED]

    def _first_stranger(self, chain: list[str]) -> str | None:
        """The address nearest to us that is no proxy of ours; what is left of it may be made up."""
        found = None
        for text in reversed(chain):
            try:
                found = str(ipaddress.ip_address(text))
            except ValueError:
                break
            if not self._is_trusted(found):
                break
        return found

    def _is_trusted(self, text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False  # a socket file, or a test client's name
        return any(address in network for network in self._networks)
