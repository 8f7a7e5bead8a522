"""The numbers of this process, in Prometheus' text form.

No label holds a user, a tenant, an agent or a record (SEC-88): the makers below refuse a label that
is not on the list.
"""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
LABELS = frozenset(
    {"method", "route", "status", "kind", "outcome", "stage", "risk", "channel", "pool", "state"}
)
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

registry = CollectorRegistry(auto_describe=True)


def counter(name: str, says: str, labels: Sequence[str] = ()) -> Counter:
    """A number that only grows; `name` without the prefix `assent_`."""
    return Counter(f"assent_{name}", says, _checked(labels), registry=registry)


def gauge(name: str, says: str, labels: Sequence[str] = ()) -> Gauge:
    """A number that goes up and down."""
    return Gauge(f"assent_{name}", says, _checked(labels), registry=registry)


def histogram(
    name: str, says: str, labels: Sequence[str] = (), buckets: Sequence[float] = SECONDS
) -> Histogram:
    """How sizes or times, in seconds unless `buckets` says otherwise, are spread."""
    return Histogram(f"assent_{name}", says, _checked(labels), registry=registry, buckets=buckets)


def render() -> bytes:
    """Everything, as `/metrics` answers it with `CONTENT_TYPE`."""
    return generate_latest(registry)


def _checked(labels: Sequence[str]) -> Sequence[str]:
    if unknown := set(labels) - LABELS:
        raise ValueError(f"not labels we use: {sorted(unknown)}; see metrics.LABELS")
    return labels
