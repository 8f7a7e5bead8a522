"""`tools/list`: pages of the caller's catalogue, encoded once and sent often (SEC-60).

The bytes depend on what is in the catalogue and on the language, so whoever has the same gets the
same; whose catalogue it is, the authorization of the request says alone.
"""

import base64
import binascii
from bisect import bisect_right
from collections import OrderedDict
from threading import Lock

from app.commands import catalogue
from app.commands.catalogue import Catalogue
from app.commands.descriptors import Descriptor
from app.identity import paging
from app.identity.principal import Principal
from app.kernel import db, json, keyring
from app.kernel.errors import AppError
from app.kernel.i18n import N_
from app.mcp import tools

SIZE = 200  # tools of a page
PAGES, TOOLS = 128, 8_192  # kept
LIST = "mcp:tools:"  # what a cursor is for; signed with it
LINE_ENDS = (
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
    (b"\xc2\x85", b"\\u0085"),
)


class ForeignCursor(AppError):
    """The cursor was not given out by this list."""

    reason = "invalid_cursor"
    says = N_("This cursor is none of ours. Begin with the first page.")
    advice = "fix_arguments"


class _Kept:
    """The newest so many encoded values of this process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
        self._lock = Lock()

    def get(self, key: tuple[object, ...]) -> bytes | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: tuple[object, ...], value: bytes) -> bytes:
        with self._lock:
            self._values[key] = value
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        return value


_pages, _tools = _Kept(PAGES), _Kept(TOOLS)


async def page(who: Principal, language: str, cursor: str | None) -> tuple[bytes, str | None]:
    """The encoded tools of a page, a JSON array, and the cursor of the next one.

    Raises:
        ForeignCursor: it is not one of ours.
    """
    return page_of(await db.read(catalogue.of, who), language, cursor)


def page_of(found: Catalogue, language: str, cursor: str | None) -> tuple[bytes, str | None]:
    """The same of a catalogue there is.

    Raises:
        ForeignCursor: it is not one of ours.
    """
    after = _place(cursor) if cursor is not None else ""
    begin = bisect_right(found.entries, after, key=_code)
    part = found.entries[begin : begin + SIZE]
    more = begin + SIZE < len(found.entries)
    return _encoded(found, language, begin, part), _cursor(part[-1].code) if more else None


def _encoded(found: Catalogue, language: str, begin: int, part: tuple[Descriptor, ...]) -> bytes:
    key = (found.version, language, begin)
    kept = _pages.get(key)
    if kept is None:
        kept = _pages.put(key, b"[" + b",".join(_tool(each, language) for each in part) + b"]")
    return kept


def _tool(descriptor: Descriptor, language: str) -> bytes:
    key = (descriptor.content_hash, descriptor.version, language)
    kept = _tools.get(key)
    if kept is None:
        encoded = json.dumps(tools.tool(descriptor, language))
        for end, escaped in LINE_ENDS:  # some readers of event streams end a line there
            encoded = encoded.replace(end, escaped)
        kept = _tools.put(key, encoded)
    return kept


def _code(descriptor: Descriptor) -> str:
    return descriptor.code


def _cursor(code: str) -> str:
    place = base64.urlsafe_b64encode(code.encode()).decode().rstrip("=")
    return f"{place}.{keyring.sign(paging.PURPOSE, LIST + place)}"


def _place(cursor: str) -> str:
    place, _, mac = cursor.partition(".")
    if len(cursor) > paging.LONGEST or not keyring.verifies(paging.PURPOSE, LIST + place, mac):
        raise ForeignCursor
    try:
        return base64.urlsafe_b64decode(place + "=" * (-len(place) % 4)).decode()
    except (binascii.Error, ValueError):
        raise ForeignCursor from None
