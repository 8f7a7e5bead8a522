"""The connections of this process, by AID; read from any thread without a lock."""

import asyncio
from collections.abc import Sequence

from app.aun.gateway.connection import NORMAL, Connection
from app.aun.outgoing import Live, Lookup
from app.kernel import metrics

LAST_WORDS_S = 3.0  # for closing frames when the server stops

connected = metrics.gauge("aun_connections", "Connections that are authenticated.")


class Hub:
    """Adds and removes on the event loop; `of` gives what is there at this moment."""

    def __init__(self) -> None:
        self._connections: dict[str, Connection] = {}
        self._lives: dict[str, Live] = {}
        self._by_aid: dict[tuple[str, str], tuple[Live, ...]] = {}
        self._strangers: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._connections)

    def met(self, connection: Connection) -> None:
        """A socket was accepted; nobody knows yet whose."""
        self._strangers.add(connection)

    def left(self, connection: Connection) -> None:
        """It is gone, or known by now."""
        self._strangers.discard(connection)

    def add(self, live: Live, connection: Connection) -> None:
        """From now on it hears of things."""
        self._connections[live.id] = connection
        self._lives[live.id] = live
        key = (live.tenant_id, live.aid)
        self._by_aid[key] = (*self._by_aid.get(key, ()), live)
        connected.inc()

    def remove(self, connection_id: str) -> None:
        """It hears of nothing more; harmless when it is not there."""
        live = self._lives.pop(connection_id, None)
        if live is None:
            return
        del self._connections[connection_id]
        key = (live.tenant_id, live.aid)
        rest = tuple(other for other in self._by_aid[key] if other.id != connection_id)
        if rest:
            self._by_aid[key] = rest
        else:
            del self._by_aid[key]
        connected.dec()

    def of(self, tenant_id: str, aid: str) -> Sequence[Live]:
        """The connections of an AID here."""
        return self._by_aid.get((tenant_id, aid), ())

    def lookup(self, tenant_id: str) -> Lookup:
        """The same for one tenant."""
        found = self._by_aid.get
        return lambda aid: found((tenant_id, aid), ())

    def connection(self, connection_id: str) -> Connection | None:
        """One by its id, if it is still here."""
        return self._connections.get(connection_id)

    async def close_all(self) -> None:
        """End every socket with 1000, as the server stops: the clients return soon."""
        everybody = [*self._connections.values(), *self._strangers]
        for connection in everybody:
            connection.close(NORMAL, "server stops")
        if everybody:
            waits = [asyncio.ensure_future(connection.flushed()) for connection in everybody]
            _, late = await asyncio.wait(waits, timeout=LAST_WORDS_S)
            for each in late:
                each.cancel()


_hub = Hub()


def of_process() -> Hub:
    """The one of this process."""
    return _hub
