"""What a business domain brings, next to its commands: names, rights, features, record types."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.commands.definition import Text
from app.commands.governed import GovernedRecord
from app.identity.models import DataScope
from app.identity.permissions import Declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """A folder under `app/packs/`, as its `__init__.py` describes it.

    Attributes:
        permissions: every code its commands ask for.
        features: what a tenant may be entitled to.
        record_types: its governed tables.
        samples: code of a command -> what whoever may run it would ask an agent for.
        roles: role code -> permission -> data scope: what roles that ship get from this pack.
    """

    code: str
    name: Text
    permissions: tuple[Declared, ...]
    features: tuple[Declared, ...] = ()
    record_types: tuple[type[GovernedRecord], ...] = ()
    samples: Mapping[str, Text] = field(default_factory=dict)
    roles: Mapping[str, Mapping[str, DataScope]] = field(default_factory=dict)
