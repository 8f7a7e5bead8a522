"""How often: named classes of tries, each with a moving window in memory (SEC-51).

One process counts for itself. A class is a setting string like `120/minute`; who is counted is
whatever the caller hands over: tenant, user, agent, or an address where nobody is known yet.
"""

import math
from collections.abc import Mapping
from functools import cache
from threading import Lock

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from app.kernel import clock, ids, settings
from app.kernel.errors import TooMany

FORGETS_EVERY_S = 1.0

DEFAULTS: Mapping[str, str] = {
    "sign_in": "10/minute",  # an account from an address prefix (SEC-41)
    "token": "60/minute",  # a client
    "ceremony": "120/minute",  # an address prefix: passkeys and providers, before a session
    "authorize": "30/minute",  # an address; the device flow too
    "call": "120/minute",  # a delegation
    "write": "60/minute",  # a delegation, calls above L0; beyond it the delegation is paused
    "session": "600/minute",
    "aun_auth": "60/minute",  # an address: whoever registers or logs in over AUN
    "csp_report": "60/minute",  # all browsers together
    "outside_link": "20/minute",  # a person; each asks a server of others
    "audit_export": "30/minute",  # a person; each is an entry of the trail
    "audit_verification": "6/minute",  # a tenant; each reads much of the trail
}


class _Memory(MemoryStorage):
    """Forgets what is over once a second; by itself it starts a thread for that every 10 ms."""

    def __init__(self) -> None:
        self._forgets_at_s = clock.monotonic_s() + FORGETS_EVERY_S
        super().__init__()

    def _MemoryStorage__schedule_expiry(self) -> None:  # noqa: N802 - what it is called there
        if (now_s := clock.monotonic_s()) >= self._forgets_at_s:
            self._forgets_at_s = now_s + FORGETS_EVERY_S
            super()._MemoryStorage__schedule_expiry()  # type: ignore[misc]


class Rates:
    """The windows of one process.

    Raises:
        ValueError: a rate is not of the form `120/minute`.
    """

    def __init__(self, rules: Mapping[str, str] = DEFAULTS) -> None:
        self._rules = {name: parse(rule) for name, rule in rules.items()}
        self._windows = MovingWindowRateLimiter(_Memory())
        self._lock = Lock()  # calls are counted on threads, and what is over is forgotten there

    def hit(self, name: str, *who: str | None) -> None:
        """Count one try of class `name` by `who`.

        Raises:
            TooMany: the window is full; this try does not count.
        """
        rule, key = self._rules[name], _key(name, who)
        with self._lock:
            if not self._windows.hit(rule, key):
                raise TooMany(self._retry_after_s(rule, key))

    def is_full(self, name: str, *who: str | None) -> bool:
        """Whether the next try would be refused; counts nothing."""
        with self._lock:
            return not self._windows.test(self._rules[name], _key(name, who))

    def forget(self, name: str, *who: str | None) -> None:
        """Start the window of `who` anew, after a success that proves good faith."""
        with self._lock:
            self._windows.clear(self._rules[name], _key(name, who))

    def _retry_after_s(self, rule: RateLimitItem, key: str) -> int:
        reset_at = self._windows.get_window_stats(rule, key).reset_time
        return max(1, math.floor(reset_at - clock.now().timestamp()) + 1)  # then it is really over


@cache
def of_process() -> Rates:
    """The windows of this process, with the rates of its settings."""
    chosen = settings.current()
    return Rates(
        {
            **DEFAULTS,
            "sign_in": chosen.rate_sign_in,
            "token": chosen.rate_token,
            "authorize": chosen.rate_authorize,
            "device": chosen.rate_device,
            "session": chosen.rate_sessions,
            "call": chosen.rate_calls,
            "write": chosen.rate_writes,
            "register": chosen.rate_register,
            "aun_auth": chosen.rate_aun_auth,
        }
    )


def _key(name: str, who: tuple[str | None, ...]) -> str:
    return ids.sha256(repr((name, *who)))  # of one length, whatever a stranger typed; unambiguous
