"""AIDs and group ids: what they look like, and how those of users and agents are made."""

import base64
import re
import secrets
from typing import Annotated

from pydantic import AfterValidator, Field

from app.aun.models import AID_LENGTH
from app.kernel import unseen

NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{3,63}")
GROUP_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{3,63}")
DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
SHORTEST = 4
LONGEST = 64
OURS = frozenset({"gateway", "group", "connect", "auth"})  # names of the issuer itself


def split(aid: str) -> tuple[str, str]:
    """The name and the issuer domain of an AID or a group id; both empty where it is none."""
    name, _, issuer = aid.partition(".")
    if not NAME.fullmatch(name) or name.startswith("guest") or not DOMAIN.fullmatch(issuer):
        return "", ""
    return name, issuer


def is_aid(text: str) -> bool:
    """Whether `text` can be an AID; nothing is folded to make it one."""
    return len(text) <= AID_LENGTH and bool(split(text)[0])


def of_login(login: str, prefix: str) -> str:
    """The name for a user (`prefix` is `user`) or an agent (`agent`) with this login or code."""
    slug = re.sub(r"[^a-z0-9_-]+", "-", login.lower()).strip("-")[:LONGEST]
    if not slug:
        return f"{prefix}-{base64.b32encode(secrets.token_bytes(5)).decode().lower()}"
    if len(slug) < SHORTEST or slug.startswith("guest") or slug in OURS:
        return f"{prefix}-{slug}"[:LONGEST]
    return slug


def group_id(text: str) -> str:
    """A group's id in the one form we keep; `group.{issuer}/{base}` is another way to write it.

    Raises:
        ValueError: it is none.
    """
    if text.startswith("group.") and "/" in text:
        issuer, _, base = text.removeprefix("group.").partition("/")
        text = f"{base}.{issuer}"
    name, _, issuer = text.partition(".")
    is_one = GROUP_NAME.fullmatch(name) and DOMAIN.fullmatch(issuer) and len(text) <= AID_LENGTH
    if not is_one:
        raise ValueError("not a group id")
    return text


def shown(text: str) -> str:
    """What a group is called, where all of it is seen as what it is: none passes for another.

    Raises:
        ValueError: it holds characters that nobody sees, or nothing but such.
    """
    if not unseen.is_plain(text):
        raise ValueError("a name can hold no characters that nobody sees")
    return text


def _checked(text: str) -> str:
    if not is_aid(text):
        raise ValueError("not an AID")
    return text


Aid = Annotated[str, Field(max_length=AID_LENGTH), AfterValidator(_checked)]
Shown = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(shown)]
GroupId = Annotated[str, Field(max_length=AID_LENGTH + 10), AfterValidator(group_id)]
