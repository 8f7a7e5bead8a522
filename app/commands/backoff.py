"""How long what failed waits before it is tried again, and when it is given up (CMD-24)."""

import random
from datetime import timedelta

TRIES = 10
BASE_S = 1.0
JITTER = 0.2  # so that what failed together does not come back together
LONGEST = 9  # doublings


def after(failures: int) -> timedelta:
    """The wait after so many failures: 1 s, doubled by each, give or take a fifth."""
    doublings = min(max(failures, 1) - 1, LONGEST)
    spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - jitter, not a secret
    return timedelta(seconds=BASE_S * 2**doublings * spread)
