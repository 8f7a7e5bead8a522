"""How a page is drawn: the one template environment, and `render`."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request

from app.console import (
    approval_words,
    assets,
    flash,
    marks,
    markup,
    nav,
    run_view,
    run_words,
    schedule_words,
    viewer,
    words,
)
from app.console.viewer import Viewer, viewing
from app.kernel import settings
from app.kernel.i18n import LANGUAGES, gettext, ngettext, pgettext

TEMPLATES = Path(__file__).parent.parent.parent / "templates"


def render(
    request: Request, template: str, *, status_code: int = 200, **context: Any
) -> HTMLResponse:
    """The page or fragment `template`, in the language, zone and theme of the request's viewer.

    Besides `context` a template sees `viewer`, `path`, `navigation` and `notice` (what the page
    before wanted said), and the globals of `environment`.
    """
    reader = viewer.of(request)
    with viewing(reader):
        html = environment.get_template(template).render(
            {
                "viewer": reader,
                "area_sheet": assets.area_sheet(template),
                "shared_sheet": assets.shared_sheet(template),
                "path": request.url.path,
                "navigation": nav.groups(reader, request.url.path) if reader.is_person else [],
                "notice": flash.waiting(request),
                **context,
            }
        )
    response = HTMLResponse(html, status_code=status_code)
    response.headers["Content-Language"] = reader.language
    response.headers["Vary"] = "Cookie, Accept-Language"
    if not is_fragment(template):
        flash.shown(request, response)
    elif reader.cursor:
        response.headers["Live-Cursor"] = reader.cursor
    return response


def draw(template: str, reader: Viewer, **context: Any) -> str:
    """The text of a fragment for one reader, outside a request."""
    with viewing(reader):
        return environment.get_template(template).render({"viewer": reader, **context})


def is_fragment(template: str) -> bool:
    """Whether `template` is a partial: `users/_row.html`."""
    return template.rpartition("/")[2].startswith("_")


def url(path: str, /, **query: object) -> str:
    """`path` with those parameters of the query that say something, lists repeated."""
    said = {name: value for name, value in query.items() if value not in (None, "", [], ())}
    return f"{path}?{urlencode(said, doseq=True)}" if said else path


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        bytecode_cache=None,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    made.policies["ext.i18n.trimmed"] = True
    made.install_gettext_callables(  # type: ignore[attr-defined]
        gettext, ngettext, newstyle=True, pgettext=pgettext
    )
    made.filters |= {
        "moment": markup.moment,
        "date": markup.day,
        "number": markup.number,
        "duration": markup.duration,
        "visible": markup.visible,
        "cleaned": markup.cleaned,
    }
    made.globals |= {
        "static": assets.static,
        "url": url,
        "csrf": lambda: viewer.current().csrf,
        "zone_offset": markup.zone_offset,
        "heartbeat_ms": lambda: round(settings.current().heartbeat_s * 1000),
        "languages": LANGUAGES,
        "said": words.of,
        "presence_key": marks.of_presence,
        "as_json": run_view.as_json,
        "understood": schedule_words.understood,
        "cancelled_word": approval_words.cancelled,
        **run_words.as_globals(),
    }
    icons: Any = made.get_template("_icons.html").module
    made.globals |= {"icon": icons.icon, "brand": icons.brand}
    return made


environment = _environment()
