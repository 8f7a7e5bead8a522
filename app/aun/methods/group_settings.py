"""Methods about the settings of a group."""

from typing import Annotated, Any

from pydantic import Field
from sqlmodel import Session

from app.aun import method
from app.aun.caller import Caller
from app.aun.group_models import Role
from app.aun.groups import membership, settings
from app.aun.groups.told import both
from app.aun.methods.group import OfGroup
from app.kernel.db import Work

MOST_AT_ONCE = 100


class Set(OfGroup):
    """What is to be otherwise."""

    settings: Annotated[dict[str, Any], Field(min_length=1, max_length=MOST_AT_ONCE)]
    expected_index_etag: str | None = None


class Get(OfGroup):
    """Which are asked for; all where none are named."""

    keys: Annotated[list[str], Field(max_length=MOST_AT_ONCE)] | None = None


def set_settings(work: Work, caller: Caller, params: Set) -> dict[str, Any]:
    """Change settings; owner and administrators do."""
    found = membership.held(work, caller, params.group_id, needs=Role.ADMIN)
    keys = settings.write(work, caller, found.group, params.settings, params.expected_index_etag)
    told = {**both(params.group_id), "updated_keys": keys}
    return told | (settings.index_meta(found.group) if settings.INDEX in keys else {})


def get_settings(session: Session, caller: Caller, params: Get) -> dict[str, Any]:
    """What the settings are."""
    group = membership.inside(session, caller, params.group_id).group
    told = {**both(group.id), "settings": settings.listed(group, params.keys)}
    return told | settings.index_meta(group)


WRITES = {"group.set_settings": method.write(set_settings)}
READS = {"group.get_settings": method.read(get_settings)}
