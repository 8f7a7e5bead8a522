"""What an address may say: ids of ours and places in a list; anything else is no such page."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import AfterValidator

from app.kernel import ids
from app.kernel.i18n import N_

LARGEST = 2**63 - 1  # of the places in a list that a column can hold


def _id(text: str) -> str:
    if not ids.is_ulid(text):
        raise ValueError(N_("This value does not do."))
    return text


def _id_or_nothing(text: str) -> str:
    return _id(text) if text else text


Id = Annotated[str, Path(), AfterValidator(_id)]  # in a path: what is none is 404
ChosenId = Annotated[str, Query(), AfterValidator(_id_or_nothing)]  # of a filter; empty is all
FormId = Annotated[str, AfterValidator(_id)]  # of a field with choices
Search = Annotated[str, Query(max_length=500)]
Cursor = Annotated[str, Query(max_length=2_000)]
