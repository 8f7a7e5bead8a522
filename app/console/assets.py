"""The stylesheets, the scripts and the icon, under a path that names their content.

One sheet, joined from `static/css/*.css`, is on every page; `static/css/areas/<area>.css` is there
for the pages of one area besides, so that no page carries what only others need. A page that has
neither forms nor tables has the core of the joined sheet alone.

All files of `static/` are read once, at first use, and answered from memory: what is not in that
list does not exist, whatever a path looks like. The version is a hash of everything, so an answer
under the right version may be kept for ever. Another version (a page of a replica that is older or
newer than this one) gets the same file, but must not keep it.
"""

import hashlib
import mimetypes
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import Response

from app.kernel.errors import NotFound

STATIC = Path(__file__).parent.parent.parent / "static"
STYLESHEET = "app.css"
CORE = "core.css"  # the same without what is in `NOT_CORE`
NOT_CORE = {"entry.css", "form.css", "list.css", "page.css"}
LAYERS = "@layer reset, tokens, base, layout, components, utilities;\n"
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
BLANKS = re.compile(r"\s*([{};,]|(?<= )>(?= ))\s*|(?<=[\w)-]:) +(?=\S)")
FOREVER = "public, max-age=31536000, immutable"
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
HAVE_CORE = {"transcript"}  # areas
AREAS = {  # template, folder of templates, or how such a name begins → area
    "admin": "admin",
    "admin_commands": "definitions",
    "admin_*": "admin",
    "approvals": "approvals",
    "audit": "audit",
    "commands": "commands",
    "connect": "connect",
    "conversations": "conversations",
    "conversations/begin.html": "transcript",
    "conversations/show.html": "transcript",
    "agents": "runs",
    "docs": "docs",
    "oauth": "oauth",
    "runs": "runs",
    **dict.fromkeys(
        ("entry", "links", "settings", "setup", "sign_in", "step_up", "welcome"), "account"
    ),
}
SERVED = {".js", ".svg", ".png", ".webmanifest"}
VENDORED = "swagger-ui.css"  # a sheet of others is served as it is, on the page that links it

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Assets:
    """What is served: name → bytes, and the version of it all."""

    version: str
    files: dict[str, bytes]


@router.api_route("/static/{version}/{name:path}", methods=["GET", "HEAD"])
async def serve(version: str, name: str) -> Response:
    """One file of ours, or 404."""
    assets = load()
    if (body := assets.files.get(name)) is None:
        raise NotFound
    return Response(
        body,
        media_type=_media_type(name),
        headers={"Cache-Control": FOREVER if version == assets.version else "no-store"},
    )


def static(name: str) -> str:
    """The address of `name` (`app.css`, `js/app.js`); raises KeyError for what is not there."""
    assets = load()
    if name not in assets.files:
        raise KeyError(name)
    return f"/static/{assets.version}/{name}"


@cache
def load() -> Assets:
    """Everything below `static/`, the style sheets joined into one."""
    files = {
        path.relative_to(STATIC).as_posix(): path.read_bytes()
        for path in sorted(STATIC.rglob("*"))
        if path.suffix in SERVED or path.name == VENDORED
    }
    shared = list((STATIC / "css").glob("*.css"))
    files[STYLESHEET] = _joined(shared)
    files[CORE] = _joined(sheet for sheet in shared if sheet.name not in NOT_CORE)
    for sheet in (STATIC / "css" / "areas").glob("*.css"):
        files[f"css/{sheet.name}"] = _joined([sheet])
    digest = hashlib.sha256()
    for name, body in sorted(files.items()):
        digest.update(f"{name}\0{len(body)}\0".encode() + body)
    return Assets(version=digest.hexdigest()[:12], files=files)


def area_sheet(template: str) -> str | None:
    """The sheet besides the shared one for a template's pages, if they have one."""
    area = _area(template)
    return f"css/{area}.css" if area else None


def shared_sheet(template: str) -> str:
    """The sheet that a template's pages share with others."""
    return CORE if _area(template) in HAVE_CORE else STYLESHEET


def _area(template: str) -> str | None:
    folder = template.partition("/")[0]
    return AREAS.get(template) or AREAS.get(folder) or AREAS.get(f"{folder.partition('_')[0]}_*")


def _joined(sheets: Iterable[Path]) -> bytes:
    """Sheets without comments and needless blanks; each names its layer, so order is nothing."""
    text = COMMENT.sub("", "".join(sheet.read_text(encoding="utf-8") for sheet in sorted(sheets)))
    return (LAYERS + BLANKS.sub(r"\1", text).replace(";}", "}").strip() + "\n").encode()


def _media_type(name: str) -> str:
    suffix = Path(name).suffix
    return TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")
