"""A model that an administrator set up, for tests of whoever may see it."""

from app.identity.principal import Principal
from app.kernel import ids
from app.kernel.db import Work
from app.runs.models import profiles
from app.runs.models.protocol import Profile


def something(work: Work, person: Principal) -> dict[str, str]:
    """One of this person's tenant; without a key it asks nobody."""
    name = f"m-{ids.ulid().lower()}"
    profiles.keep(work, person.tenant_id, Profile(name=name, kind="openai", model="gpt-5"), None)
    return {"profile": name}
