"""The navigation: each page brings its own entry, so that only what exists is shown.

A page module with `NAV = NavItem(...)` is found by that name.
"""

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import Literal

from app.console.viewer import Viewer
from app.kernel.i18n import N_

Section = Literal["main", "workspace", "administration"]
PAGES = "app.console.pages"
SECTIONS: dict[Section, str] = {
    "main": N_("Workspace"),  # on a phone the bar at the bottom; all others are under "More"
    "workspace": N_("Workspace"),
    "administration": N_("Administration"),
}


@dataclass(frozen=True, slots=True)
class NavItem:
    """One entry: `label` is marked by N_, `icon` is a name in `_icons.html`.

    `permission`: a code, or several of which one will do; None shows it to everybody.
    """

    label: str
    path: str
    icon: str
    section: Section = "main"
    permission: str | tuple[str, ...] | None = None
    order: int = 50
    badge: str = ""  # the count beside it, one of `BADGES` (live/rendering.py)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as it is drawn: whether the page on screen is it, or is below it."""

    item: NavItem
    is_current: bool
    is_here: bool


@dataclass(frozen=True, slots=True)
class Group:
    """The entries of one section, and its heading."""

    section: Section
    label: str
    entries: tuple[Entry, ...]


def groups(viewer: Viewer, path: str) -> list[Group]:
    """The navigation of the page at `path` for this viewer, without empty sections."""
    shown = [item for item in items() if viewer.may(item.permission)]
    here = max((item.path for item in shown if is_below(path, item.path)), key=len, default=None)
    found = []
    for section, label in SECTIONS.items():
        entries = tuple(
            Entry(item, is_current=item.path == path, is_here=item.path == here)
            for item in shown
            if item.section == section
        )
        if entries:
            found.append(Group(section, label, entries))
    return found


def is_below(path: str, top: str) -> bool:
    """Whether the page at `path` belongs to the entry at `top`."""
    return path == top or path.startswith(top.rstrip("/") + "/")


@cache
def items() -> tuple[NavItem, ...]:
    """The entries of all page modules, in their order."""
    pages = importlib.import_module(PAGES)  # they import us: found by name, at first use
    modules = [
        importlib.import_module(f"{PAGES}.{module.name}")
        for module in pkgutil.iter_modules(pages.__path__)
    ]
    entries = [module.NAV for module in modules if hasattr(module, "NAV")]
    return tuple(sorted(entries, key=lambda item: (item.order, item.path)))
