"""The model of a profile, with what it needs loaded only when the first run asks for it.

A provider's library takes seconds and 60 MB and more, so it is imported in a worker thread; the
planner and a script need none of it.
"""

import anyio.to_thread

from app.kernel import http, sealing, settings
from app.runs.models import faults, profiles
from app.runs.models.protocol import Model, Profile

SEALED = "the key was sealed under another master key"


async def model_for(profile: Profile) -> Model:
    """The model that `profile` names.

    Raises:
        ModelFault: it is not set up completely (`misconfigured`).
    """
    match profile.kind:
        case "offline":
            return _planner()
        case "scripted":
            return _script(profile.model)
        case "openai" | "anthropic":
            key = _key(profile)
            return await anyio.to_thread.run_sync(_behind_provider, profile, key)
    raise faults.fault("misconfigured", diagnostic=f"no kind of model is called {profile.kind!r}")


def _key(profile: Profile) -> str | None:
    try:
        key = profiles.key_of(profile)
    except sealing.CannotUnseal as error:
        raise faults.fault("misconfigured", public=profiles.NO_KEY, diagnostic=SEALED) from error
    if key is not None and not profiles.is_key(key):
        raise faults.fault("misconfigured", public=profiles.NO_SUCH_KEY)
    if key is None and not profile.base_url:  # a server of one's own may ask for none
        raise faults.fault("misconfigured", public=profiles.NO_KEY)
    return key


def _planner() -> Model:
    from app.runs.models import offline  # noqa: PLC0415 - whoever has a provider never needs it

    return offline.OfflinePlanner()


def _script(name: str) -> Model:
    from app.runs.models import scripted  # noqa: PLC0415 - for the demo, and where it is asked for

    return scripted.named(name)


def _behind_provider(profile: Profile, key: str | None) -> Model:
    import genai_prices  # noqa: F401, PLC0415 - not later, inside a transaction

    from app.runs.models import provider  # noqa: PLC0415 - seconds, and many megabytes

    try:
        endpoint = provider.endpoint(profile)
    except ValueError as error:
        raise faults.fault("misconfigured", diagnostic=f"the address: {error}") from error
    return provider.ProviderModel(profile, key, _allowed(profile, endpoint))


def _allowed(profile: Profile, endpoint: tuple[str, int]) -> http.Pairs:
    """What the guard lets through: the operator's own endpoint, and what they listed (SEC-56)."""
    listed = http.pairs(",".join(settings.current().outbound_allow))
    return listed | {endpoint} if profile.name == profiles.DEFAULT else listed
