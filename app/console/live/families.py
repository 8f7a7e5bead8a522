"""All families of live things, found once: what each event draws, and each region."""

import importlib
import pkgutil
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache

from app.console import live
from app.console.live.rendering import Count, Pass, Region, Render
from app.kernel.events import Event
from app.kernel.models import LoggedEvent


@dataclass(frozen=True, slots=True)
class Families:
    """What the modules of this package say, in the order of their names."""

    renders: dict[str, list[Render]] = field(default_factory=lambda: defaultdict(list))
    passes: dict[type[Event], Pass] = field(default_factory=dict)
    regions: dict[str, Region] = field(default_factory=dict)
    badges: dict[str, Count] = field(default_factory=dict)

    def draw(self, event: LoggedEvent) -> bool:
        """Whether anything is drawn of `event` at all."""
        return event.kind in self.renders

    def is_standing(self, event: LoggedEvent) -> bool:
        """Whether all that is drawn of `event` is how its subject stands now."""
        return all(render.is_standing for render in self.renders.get(event.kind, ()))

    def is_apart(self, event: LoggedEvent) -> bool:
        """Whether nothing that is drawn of `event` holds text that grows."""
        return all(render.is_apart for render in self.renders.get(event.kind, ()))


@cache
def found() -> Families:
    """Everything there is."""
    families = Families()
    for each in sorted(pkgutil.iter_modules(live.__path__), key=lambda each: each.name):
        module = importlib.import_module(f"{live.__name__}.{each.name}")
        for kind, renders in getattr(module, "RENDERS", {}).items():
            families.renders[kind].extend(renders)
        families.passes.update(getattr(module, "PASSES", {}))
        families.regions.update(getattr(module, "REGIONS", {}))
        families.badges.update(getattr(module, "BADGES", {}))
    return families
