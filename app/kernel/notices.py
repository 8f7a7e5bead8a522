"""News between the processes of one deployment, by NOTIFY; on SQLite there is one process."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import Connection
from sqlalchemy.engine import make_url

from app.kernel import events, ids
from app.kernel.events import Broadcast
from app.kernel.prepared import Prepared

if TYPE_CHECKING:
    import psycopg

log = structlog.get_logger(__name__)

CHANNEL = "assent"
LOOK_S = 1.0  # how often the listener looks whether it shall end
RETRY_S = 1.0
_SEND = Prepared(
    "SELECT pg_notify(:channel, each) FROM jsonb_array_elements_text(CAST(:payloads AS jsonb)) each"
)
# A server that went away without a word is noticed within half a minute, at connecting within five
# seconds: nobody waits for what the network would take to give up.
PATIENCE: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}


class Notices:
    """Sends broadcasts with a commit and delivers those of other processes."""

    def __init__(self) -> None:
        self._own = ids.ulid()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._connected = threading.Event()
        self._url = ""

    @property
    def is_listening(self) -> bool:
        """Whether news of others arrives; always so where there are no others."""
        return self._thread is None or self._connected.is_set()

    def listen(self, url: str) -> None:
        """Deliver what other processes announce, until `close`; a lost connection is made anew."""
        plain = make_url(url).set(drivername="postgresql")
        self._url = plain.render_as_string(hide_password=False)
        self._thread = threading.Thread(target=self._serve, name="db-listen", daemon=True)
        self._thread.start()

    def send(self, connection: Connection, broadcasts: Sequence[Broadcast]) -> None:
        """Tell the other processes, in this order, if and when this transaction commits."""
        payloads = [f"{self._own} {broadcast.to_wire()}" for broadcast in broadcasts]
        _SEND.run(connection, channel=CHANNEL, payloads=payloads)

    def close(self) -> None:
        """Stop listening."""
        self._ending.set()
        if self._thread is not None:
            self._wake()
            self._thread.join()

    def _wake(self) -> None:
        """Give the listener something to hear, so that it looks at once."""
        import psycopg  # noqa: PLC0415 - SQLite starts without it

        with suppress(psycopg.Error), self._connected_now() as connection:
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"{self._own} "))

    def _connected_now(self) -> "psycopg.Connection[tuple[Any, ...]]":
        import psycopg  # noqa: PLC0415 - likewise

        return psycopg.connect(self._url, autocommit=True, **PATIENCE)

    def _serve(self) -> None:
        import psycopg  # noqa: PLC0415 - likewise

        while not self._ending.is_set():
            try:
                self._hear()
            except psycopg.Error:
                self._connected.clear()
                log.warning("listener_lost")
                self._ending.wait(RETRY_S)

    def _hear(self) -> None:
        with self._connected_now() as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            self._connected.set()
            while not self._ending.is_set():
                for notice in connection.notifies(timeout=LOOK_S, stop_after=1):
                    self._deliver(notice.payload)

    def _deliver(self, payload: str) -> None:
        sender, _, wire = payload.partition(" ")
        if sender == self._own:
            return  # delivered here already, after the commit
        try:
            broadcast = Broadcast.from_wire(wire)
        except (KeyError, TypeError, ValueError):
            log.warning("unknown_broadcast")
            return
        events.deliver(broadcast)
