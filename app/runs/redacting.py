"""Arguments as the record keeps them: what a command calls secret is masked."""

from collections.abc import Collection, Mapping
from typing import Any

MASK = "•••"


def masked(value: Any, secrets: Collection[str], at: str = "") -> Any:
    """A copy of `value` without what the pointers name (`*` is any place of a list)."""
    if at and at in secrets:
        return None if value is None else MASK
    if isinstance(value, Mapping):
        return {
            name: masked(item, secrets, f"{at}/{name}" if at else name)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [masked(item, secrets, f"{at}/*" if at else "*") for item in value]
    return value
