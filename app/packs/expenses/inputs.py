"""What several commands ask for in the same words."""

from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

LARGEST_MINOR = 100_000_000_00  # a hundred million; whoever spends more calls

_PERIOD = r"^20[0-9]{2}-(0[1-9]|1[0-2])$"
_CURRENCY = "^[A-Z]{3}$"
_ACCOUNT = r"^([A-Z0-9][A-Z0-9 ]{3,40}[A-Z0-9])?$"


def _real_date(value: str) -> str:
    date.fromisoformat(value)
    return value


Category = Literal["travel", "lodging", "meals", "transport", "office", "other"]
Title = Annotated[str, Field(min_length=1, max_length=200)]
Period = Annotated[str, Field(pattern=_PERIOD)]
Currency = Annotated[str, Field(pattern=_CURRENCY)]
Account = Annotated[str, Field(pattern=_ACCOUNT, max_length=42)]
Id = Annotated[str, Field(pattern="^[0-9A-HJKMNP-TV-Z]{26}$")]
Day = Annotated[
    str,
    Field(pattern=r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}$", json_schema_extra={"format": "date"}),
    AfterValidator(_real_date),
]
