"""A form that was sent a moment too late, kept until its sender has proved who they are.

What was typed travels in a sealed hidden field, bound to the browser or session it came from; only
this server can open it, and only for ten minutes. Secrets are left out: they are typed again. It is
sent again by the person's own click, with a token of the session as it is then.
"""

import base64
import re
from dataclasses import dataclass
from datetime import timedelta

from starlette.requests import Request

from app.console import paths
from app.console.forms import CSRF_FIELD
from app.kernel import clock, json, sealing
from app.kernel.errors import Invalid

LIVES = timedelta(minutes=10)
LONGEST = 40_000  # characters, sealed: it has to fit into a form again
SECRET = re.compile(r"password|secret|credential|token|held", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Held:
    """Where a form was sent, and what stood in it."""

    path: str
    fields: list[tuple[str, str]]


async def of_request(request: Request) -> Held:
    """The form this request sent, without its secrets."""
    sent = await request.form(max_files=0)
    fields = [
        (name, value)
        for name, value in sent.multi_items()
        if isinstance(value, str) and name != CSRF_FIELD and not SECRET.search(name)
    ]
    return Held(paths.of_request(request), fields)


def seal(held: Held, bound_to: str) -> str:
    """`held` as the value of a hidden field; empty, if it is too large to be one."""
    until = clock.epoch_s() + int(LIVES.total_seconds())
    plain = json.dumps({"path": held.path, "fields": held.fields, "until": until})
    text = base64.urlsafe_b64encode(sealing.seal(plain, _purpose(bound_to))).decode()
    return text if len(text) <= LONGEST else ""


def opened(text: str, bound_to: str) -> Held | None:
    """What was sealed for this browser or session; None for all else, and when it is late."""
    if not text or len(text) > LONGEST:
        return None
    try:
        sealed = base64.urlsafe_b64decode(text)
        kept = json.loads(sealing.unseal(sealed, _purpose(bound_to)))
    except (ValueError, Invalid, sealing.CannotUnseal):
        return None
    if kept["until"] < clock.epoch_s():
        return None
    return Held(paths.own(kept["path"]), [(name, value) for name, value in kept["fields"]])


def _purpose(bound_to: str) -> str:
    return f"held_form:{bound_to}"
