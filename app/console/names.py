"""Names that people give: to themselves, to others, to agents, groups and what else is listed.

A name holds nothing that hides or turns others round: what looks the same as another name is
then not made so in secret.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from app.kernel import unseen
from app.kernel.i18n import N_


def plain(text: str) -> str:
    """`text`, where all of it is seen as what it is; for fields of forms."""
    if text and not unseen.is_plain(text):
        raise ValueError(N_("A name can hold no characters that nobody sees."))
    return text


Name = Annotated[str, Field(max_length=200), AfterValidator(plain)]
