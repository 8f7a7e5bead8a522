"""What a call knows of the approval it consumed: who assented, when, and to what effect."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """A person's word for this one call.

    Attributes:
        preview_digest: of the effect that was shown; what runs must have the same (CMD-16).
        changed_by: the person who changed the arguments before they ran, if one did (CMD-28).
    """

    approval_id: str
    approved_by: str
    approved_at: datetime
    preview_digest: str
    changed_by: str | None = None
