"""The headers every answer carries, whoever made it (SEC-44, SEC-45)."""

import re

from app.kernel.asgi.wire import App, Header, Message, Receive, Scope, Send

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; object-src 'none'; report-uri /csp-report"
)
OFF = (
    "accelerometer autoplay camera clipboard-read display-capture encrypted-media "
    "fullscreen gamepad geolocation gyroscope hid identity-credentials-get idle-detection "
    "keyboard-map local-fonts magnetometer microphone midi otp-credentials payment "
    "picture-in-picture screen-wake-lock serial storage-access usb window-management "
    "xr-spatial-tracking"
)
PERMISSIONS = ", ".join(
    [
        *(f"{feature}=()" for feature in OFF.split()),
        "publickey-credentials-get=(self)",
        "publickey-credentials-create=(self)",
    ]
)
OPENER = b"cross-origin-opener-policy"
ALWAYS: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", PERMISSIONS.encode()),
)
HSTS: Header = (b"strict-transport-security", b"max-age=31536000")
NO_STORE: Header = (b"cache-control", b"no-store")

_SOURCE = re.compile(r"[a-z][a-z0-9+.-]*:(//(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:\d{1,5})?)?")


class SecurityHeaders:
    """Writes the policy on every answer; three things an endpoint may ask for in `scope["state"]`.

    `csp_form_action`: one more source for `form-action`, the scheme, host and port of a validated
    redirect URI (consent). `csp_img_data = True`: `data:` images (API docs). `coop =
    "unsafe-none"`: keep the opener (pages of an authorization request). A response may bring its
    own `Cache-Control` and `Content-Security-Policy` (files of people are sandboxed); the rest is
    not negotiable.
    """

    def __init__(self, app: App, *, is_https: bool) -> None:
        self._app = app
        self._always = (*ALWAYS, HSTS) if is_https else ALWAYS
        self._names = frozenset(name for name, _ in (*ALWAYS, HSTS)) | {OPENER}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and dress its answer."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})  # one dict, shared with `request.state` further in

        async def dressed(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = self._headers(message.get("headers", ()), scope["state"])
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, dressed)

    def _headers(self, given: list[Header], state: dict[str, object]) -> list[Header]:
        kept = [(name, value) for name, value in given if name.lower() not in self._names]
        names = {name.lower() for name, _ in kept}
        opener = b"unsafe-none" if state.get("coop") == "unsafe-none" else b"same-origin"
        kept += [*self._always, (OPENER, opener)]
        if b"content-security-policy" not in names:
            kept.append((b"content-security-policy", policy(state).encode()))
        if b"cache-control" not in names:
            kept.append(NO_STORE)
        return kept


def policy(state: dict[str, object]) -> str:
    """The policy, with what the endpoint asked for.

    Raises:
        ValueError: it asked for more than one origin or scheme; the next answer, which tells of
            this fault, gets the plain policy.
    """
    made = CSP
    if source := state.pop("csp_form_action", None):
        if not _SOURCE.fullmatch(str(source)):
            raise ValueError("csp_form_action is not scheme://host:port")
        made = made.replace("form-action 'self'", f"form-action 'self' {source}")
    if state.get("csp_img_data") is True:
        made = made.replace("img-src 'self'", "img-src 'self' data:")
    return made
