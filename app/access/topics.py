"""Who takes part in what: asked of the slice that knows, and kept for five seconds at most.

A topic is the id of a conversation. An event of one is for those who take part in it when it is
told, from the place in the log on at which they joined. Messaging says who that is (`told_by`) and
when it changed (`forget`); before it does, nobody takes part in anything.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from sqlmodel import Session

from app.kernel import clock
from app.kernel.models import LoggedEvent

KEPT_S = 5.0
KEPT = 2_000  # topics

Members = Mapping[str, int]  # AID → the number of the log after which they take part
Tell = Callable[[Session, str, Collection[str]], Mapping[str, Members]]
Learn = Callable[[Session, Sequence[LoggedEvent]], None]


class Topics:
    """What is known of all topics that events were read of."""

    def __init__(self, tell: Tell, changed_by: Collection[str] = ()) -> None:
        self._tell = tell
        self._changed_by = changed_by
        self._known: dict[tuple[str, str], tuple[float, Members]] = {}
        self._changes = Counter[str]()  # of each tenant
        self._lock = threading.Lock()

    def learner(self, tenant_id: str) -> Learn:
        """`learn` for a read of the tenant that begins now, called at some later point of it.

        Who joins after its snapshot was taken is not in it, so what changes from here on makes it
        forget what it read.
        """
        return partial(self._learn, tenant_id, self._changes[tenant_id])

    def learn(self, session: Session, tenant_id: str, events: Sequence[LoggedEvent]) -> None:
        """Read who takes part in the topics of `events`, first thing in a read."""
        self.learner(tenant_id)(session, events)

    def _learn(
        self, tenant_id: str, before: int, session: Session, events: Sequence[LoggedEvent]
    ) -> None:
        wanted = {event.topic for event in events if event.topic and self._is_to_ask(event)}
        if not wanted:
            return
        told = self._tell(session, tenant_id, wanted)
        now_s = clock.monotonic_s()
        with self._lock:
            if self._changes[tenant_id] != before:
                return  # what was read may be old already; whoever needs it asks again
            for topic in wanted:
                self._known[tenant_id, topic] = (now_s, told.get(topic, {}))
            while len(self._known) > KEPT:
                del self._known[next(iter(self._known))]

    def _is_to_ask(self, event: LoggedEvent) -> bool:
        # a change that is read in the log may be heard of only later
        return event.kind in self._changed_by or self._of(event) is None

    def forget(self, tenant_id: str) -> None:
        """Somebody joined or left: ask anew about every topic of the tenant."""
        with self._lock:
            self._changes[tenant_id] += 1
            for key in [key for key in self._known if key[0] == tenant_id]:
                del self._known[key]

    def hears(self, event: LoggedEvent, aid: str | None) -> bool | None:
        """Whether `aid` takes part in the topic of `event` and did when it happened.

        None: it is not known, or not any more; `learn` and ask again.
        """
        members = self._of(event)
        if members is None:
            return None
        joined_at = members.get(aid or "")
        return joined_at is not None and event.seq > joined_at

    def _of(self, event: LoggedEvent) -> Members | None:
        found = self._known.get((event.tenant_id, event.topic or ""))
        if found is None or clock.monotonic_s() - found[0] > KEPT_S:
            return None
        return found[1]


def _nobody(session: Session, tenant_id: str, topics: Collection[str]) -> Mapping[str, Members]:
    return {}


_process = Topics(_nobody)


def of_process() -> Topics:
    """What this process knows."""
    return _process


def told_by(tell: Tell, changed_by: Collection[str] = ()) -> Callable[[], None]:
    """Let `tell` say who takes part; returns a function that takes it back.

    `changed_by` are the kinds of event that are logged of a topic when somebody joins or leaves.
    """
    _use(Topics(tell, changed_by))
    return lambda: _use(Topics(_nobody))


def _use(topics: Topics) -> None:
    global _process
    _process = topics
