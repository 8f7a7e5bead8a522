"""The session cookie, and a short-lived one for forms before there is a session (SEC-37)."""

from http.cookies import SimpleCookie

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.identity.sessions import LONGEST
from app.kernel import ids, settings

SESSION_MAX_AGE_S = int(LONGEST.total_seconds())
PRE_MAX_AGE_S = 3_600
DANCE_MAX_AGE_S = 600
WAITING = "set_cookies"  # key of the request's state


def session_name() -> str:
    """`__Host-sid`, or `sid` for browsers that refuse Secure cookies on http loopback."""
    return "sid" if settings.current().plain_cookie else "__Host-sid"


def pre_name() -> str:
    """The cookie of a browser that is not signed in yet."""
    return "pre" if settings.current().plain_cookie else "__Host-pre"


def session_secret(connection: HTTPConnection) -> str | None:
    """What the session cookie holds, if there is one."""
    return connection.cookies.get(session_name())


def pre_session(connection: HTTPConnection) -> str:
    """What marks this browser before it is signed in; made and set where it has none."""
    known = connection.cookies.get(pre_name(), "")
    if len(known) == 43:
        return known
    made: str = getattr(connection.state, "pre_session", "") or ids.random_token()
    connection.state.pre_session = made
    _set(connection, pre_name(), made, PRE_MAX_AGE_S)
    return made


def dance(connection: HTTPConnection) -> str:
    """What binds a sign-in with a provider to this browser, for ten minutes (SEC-22)."""
    name = "oidc" if settings.current().plain_cookie else "__Host-oidc"
    known = connection.cookies.get(name, "")
    made = known if len(known) == 43 else ids.random_token()
    _set(connection, name, made, DANCE_MAX_AGE_S)
    return made


def give_session(connection: HTTPConnection, secret: str) -> None:
    """Set the session cookie with the answer to this request."""
    _set(connection, session_name(), secret, SESSION_MAX_AGE_S)


def take_session(connection: HTTPConnection) -> None:
    """Delete the session cookie, with the attributes it was set with."""
    _set(connection, session_name(), "", 0)


class Cookies:
    """Plain ASGI layer: adds the cookies that were set while a request was answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and its answer with the cookies."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        waiting: dict[str, str] = scope.setdefault("state", {}).setdefault(WAITING, {})

        async def with_cookies(message: Message) -> None:
            if message["type"] == "http.response.start" and waiting:
                message["headers"] = [
                    *message.get("headers", []),
                    *((b"set-cookie", line.encode("latin-1")) for line in waiting.values()),
                ]
            await send(message)

        await self._app(scope, receive, with_cookies)


def _set(connection: HTTPConnection, name: str, value: str, max_age_s: int) -> None:
    cookie: SimpleCookie = SimpleCookie()
    cookie[name] = value
    cookie[name]["path"] = "/"
    cookie[name]["max-age"] = max_age_s
    cookie[name]["httponly"] = True
    cookie[name]["samesite"] = "Lax"
    if not settings.current().plain_cookie:
        cookie[name]["secure"] = True
    connection.scope["state"][WAITING][name] = cookie[name].OutputString()
