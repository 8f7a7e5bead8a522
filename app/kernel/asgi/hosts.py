"""Under which names we answer (SEC-46)."""

import re
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from app.kernel.asgi.refusals import UnknownHost, refuse
from app.kernel.asgi.wire import App, Receive, Scope, Send, answer, is_under, value, values

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
AUN_PATHS = ("/aun", "/pki", "/agent.md", "/.well-known/aun-gateway", "/health", "/root.crt")
DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(
    r"(?P<name>[a-z0-9](?:[a-z0-9._-]{0,253}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::(?P<port>\d{1,5}))?"
)


def nobody(_name: str) -> bool:
    """No AUN name is served here."""
    return False


class HostCheck:
    """Lets a request in under the public host, a loopback name, or an AUN name on AUN paths.

    Anything else is 421. A page asked for by a browser at `127.0.0.1` or `[::1]` is sent to
    `localhost`, where passkeys work and the public origin is (SEC-39).

    Args:
        app: what comes next.
        public_url: scheme, host and port people use.
        port: the one we listen on, for loopback names.
        is_aun_name: whether a host name, in lower case and without port, is an AUN name of ours.
        aun_paths: what AUN names may ask for, and what is below.
    """

    def __init__(
        self,
        app: App,
        *,
        public_url: str,
        port: int,
        is_aun_name: Callable[[str], bool] = nobody,
        aun_paths: Sequence[str] = AUN_PATHS,
    ) -> None:
        self._app, self._is_aun_name, self._aun_paths = app, is_aun_name, tuple(aun_paths)
        public = urlsplit(public_url)
        usual = DEFAULT_PORTS[public.scheme]
        name = (public.hostname or "").lower()
        name = f"[{name}]" if ":" in name else name
        at = public.port or usual
        self._ours = {f"{name}:{at}", *(f"{loopback}:{port}" for loopback in LOOPBACK)}
        self._ours |= {known.removesuffix(f":{usual}") for known in self._ours}
        self._localhost = f"{public.scheme}://localhost:{at}" if name == "localhost" else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on that asks for a name of ours."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        hosts = [host.lower() for host in values(scope, b"host")]
        host = hosts[0] if len(hosts) == 1 else ""
        if not self._may_enter(host, scope["path"]):
            await _turn_away(scope, send)
        elif self._localhost and _is_page_at_an_address(scope, host):
            await answer(send, 307, {"location": self._localhost + _target(scope)})
        else:
            await self._app(scope, receive, send)

    def _may_enter(self, host: str, path: str) -> bool:
        if host in self._ours:
            return True
        parsed = _HOST.fullmatch(host)
        return (
            parsed is not None
            and self._is_aun_name(parsed["name"])
            and any(is_under(path, prefix) for prefix in self._aun_paths)
        )


async def _turn_away(scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close"})  # before it is accepted: 403
    else:
        await refuse(scope, send, UnknownHost())


def _is_page_at_an_address(scope: Scope, host: str) -> bool:
    return (
        scope["type"] == "http"
        and scope["method"] in ("GET", "HEAD")
        and host.startswith(("127.0.0.1", "[::1]"))
        and "text/html" in value(scope, b"accept")
    )


def _target(scope: Scope) -> str:
    query: str = scope["query_string"].decode("latin-1")
    path: str = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
    return path + ("?" + query if query else "")
