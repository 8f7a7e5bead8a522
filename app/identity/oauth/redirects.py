"""Where an answer may go: exact redirect URIs, with the port free on loopback (SEC-14)."""

import re
from urllib.parse import SplitResult, urlencode, urlsplit

LONGEST = 2000
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
# What RFC 3986 allows, less `#` (a fragment) and `@` (userinfo, or a look-alike of it).
_ALLOWED = re.compile(r"[A-Za-z0-9\-._~:/?\[\]!$&'()+,;=%]+")
_CUSTOM = re.compile(r"[a-z][a-z0-9+\-]*(\.[a-z0-9+\-]+)+")


def is_acceptable(uri: str, *, custom_schemes: bool = False) -> bool:
    """Whether a client may register `uri`: https, http on loopback, or a dotted scheme of its own.

    `custom_schemes` is for clients that an administrator registered.
    """
    parts = _split(uri)
    if parts is None:
        return False
    match parts.scheme:
        case "https":
            return bool(parts.hostname)
        case "http":
            return parts.hostname in LOOPBACK
        case scheme:
            return custom_schemes and _CUSTOM.fullmatch(scheme) is not None


def matches(uri: str, registered: list[str]) -> bool:
    """Whether `uri` is one of the registered ones."""
    if uri in registered:
        return _split(uri) is not None
    wanted = _without_port(uri)
    return wanted is not None and wanted in map(_without_port, registered)


def is_loopback(uri: str) -> bool:
    """Whether `uri` leads to the person's own machine, where any program may listen."""
    parts = _split(uri)
    return parts is not None and parts.scheme == "http" and parts.hostname in LOOPBACK


def host_of(uri: str) -> str:
    """What a person should recognise of it: host and port, or the scheme of an application."""
    parts = urlsplit(uri)
    return parts.netloc or f"{parts.scheme}:"


def source_of(uri: str) -> str:
    """Scheme, host and port as a source of a Content-Security-Policy."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.lower()}" if parts.netloc else f"{parts.scheme}:"


def answer_at(uri: str, answer: dict[str, str]) -> str:
    """`uri` with the answer of the authorization server in its query."""
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(answer)}"


def _without_port(uri: str) -> tuple[str, str | None, str, str] | None:
    parts = _split(uri)
    if parts is None or parts.scheme != "http" or parts.hostname not in LOOPBACK:
        return None
    return parts.scheme, parts.hostname, parts.path, parts.query


def _split(uri: str) -> SplitResult | None:
    if len(uri) > LONGEST or not _ALLOWED.fullmatch(uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises where it is none
    except ValueError:
        return None
    return parts if parts.scheme and uri.startswith(f"{parts.scheme}:") else None
