"""What a family of live things is written with: renders of events, passing fragments, regions."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import escape
from sqlmodel import Session

from app.console import view, viewer
from app.console.viewer import Viewer
from app.identity.principal import Principal
from app.kernel.events import Event
from app.kernel.models import LoggedEvent

_BREAK = re.compile("\r\n?")


@dataclass(frozen=True, slots=True)
class Partial:
    """A fragment for one place of whatever page has it."""

    target: str  # `#messages`
    swap: str  # `beforeend`, `outerHTML`, `outerMorph`, `innerMorph`, `delete`
    html: str = ""

    def __str__(self) -> str:
        """As htmx reads it."""
        return (
            f'<hx-partial hx-target="{escape(self.target)}" hx-swap="{self.swap}">'
            f"{self.html}</hx-partial>"
        )


@dataclass(frozen=True, slots=True)
class Hearer:
    """One person at one browser session, who hears of events: what an audience is told by."""

    person: Principal
    language: str
    time_zone: str
    aid: str | None = None  # in messages

    @property
    def user_id(self) -> str:
        """The person's id."""
        return self.person.user_id

    @property
    def viewer(self) -> Viewer:
        """Whoever reads in this language and zone; nobody in particular."""
        return Viewer(
            tenant_id=self.person.tenant_id, language=self.language, time_zone=self.time_zone
        )


Draw = Callable[[Session, LoggedEvent, Hearer], Iterable[Partial]]
Audience = Callable[[LoggedEvent, Hearer], str]


def everybody(event: LoggedEvent, hearer: Hearer) -> str:
    """The same bytes for all who hear of it."""
    return ""


def each_user(event: LoggedEvent, hearer: Hearer) -> str:
    """Bytes of their own for each person: counts, what they may do."""
    return hearer.user_id


@dataclass(frozen=True, slots=True)
class Render:
    """A part of what an event draws, and who shares it.

    Attributes:
        is_standing: it draws how the event's subject stands now, and takes nothing else from the
            event: of several that wait for a stream the newest is enough.
        is_apart: it touches no place of growing text, which need not wait for it.
    """

    draw: Draw
    audience: Audience = everybody
    is_standing: bool = False
    is_apart: bool = False


@dataclass(frozen=True, slots=True)
class Pass:
    """What a kernel event draws for a moment, and the ids of the users who get it.

    Attributes:
        is_for: the one user who gets it, where the event itself says who: nobody else is asked.
    """

    draw: Callable[[Session, Any, Hearer], Iterable[Partial]]
    hears: Callable[[Session, Any], Collection[str]] | None = None
    is_for: Callable[[Any], str] | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A region that a tab draws again."""

    person: Principal
    name: str
    key: str  # behind the colon: an id, a state; or empty
    oldest: int | None  # the lowest `data-seq` that the page has of it


Region = Callable[[Session, Asked], str | None]
Count = Callable[[Session, Principal], int]
Renders = dict[str, Sequence[Render]]
Passes = dict[type[Event], Pass]
Regions = dict[str, Region]
Badges = dict[str, Count]


def partial(target: str, swap: str, template: str, **context: Any) -> Partial:
    """`template` drawn for the hearer at hand, as a `Partial`."""
    return Partial(target, swap, html_of(template, **context))


def html_of(template: str, **context: Any) -> str:
    """`template` drawn for the hearer, or the reader of a region, at hand."""
    return view.draw(template, viewer.current(), **context)


def badge(name: str, count: int) -> Partial:
    """The count beside an entry of the rail; the title and the favicon follow it (UI-49)."""
    target = f"#badge-{name}"
    return partial(target, "outerHTML", "live/_badge.html", name=name, count=count)


def notice(
    text: str, tag: str, path: str, *, many: str = "", speak: bool = True, desktop: str = ""
) -> Partial:
    """Something that a page says once: aloud (`speak`), and on the desktop where it is allowed.

    `tag` names the thing, so that one thing has one notification; `path` is where a click leads.
    `many` is said in the place of several of one tag within a second, `{}` for how many.
    `desktop` is what stands there, without amounts or contents; empty: nothing is shown there.
    """
    said = html_of(
        "live/_notice.html",
        text=text,
        tag=tag,
        to=path,
        many=many,
        is_spoken=speak,
        desktop=desktop,
    )
    return Partial("#notices", "beforeend", said)


def line_of(html: str) -> str:
    """`html` without the break that an event stream would take for its own."""
    return _BREAK.sub(lambda found: "\n" if len(found[0]) == 2 else "&#13;", html)
