"""Which models there are for agents: `default` is the operator's, others an administrator's.

A key comes from the operator's settings, or sealed from the row that says where to ask: it goes to
the address it was given for, whatever changes meanwhile. It is opened when it is needed, and stands
in no event or fault (RUN-101).
"""

from dataclasses import replace

from sqlmodel import Session, col, select

from app.kernel import clock, sealing, settings
from app.kernel.db import Work
from app.kernel.i18n import N_
from app.kernel.settings import Settings
from app.runs.models import faults
from app.runs.models.profile_models import ModelProfile
from app.runs.models.protocol import Profile

DEFAULT = "default"
OPERATORS_KEY = "ASSENT_MODEL_API_KEY"

UNKNOWN = N_("The model this agent is to use is not set up here any more.")
NO_KEY = N_(
    "The model has no key yet. An administrator, or whoever runs this server, can give it one."
)

NO_SUCH_KEY = N_("A key has only letters, digits and signs of ASCII, and no spaces.")


def of_settings(chosen: Settings) -> Profile:
    """The profile `default`."""
    kind, _, model = chosen.model.partition(":")
    return Profile(
        name=DEFAULT,
        kind=kind,
        model=model,
        base_url=chosen.model_base_url,
        api_key_name=OPERATORS_KEY,
        context_tokens=chosen.model_context_tokens,
        output_tokens=chosen.model_output_tokens,
        requires_finish=chosen.model_requires_finish,
        usage=chosen.model_usage,
        call_ids=chosen.model_call_ids,
        max_tokens_field=chosen.model_max_tokens_field,
        thinking=chosen.model_thinking,
        price_input=chosen.model_price_input,
        price_output=chosen.model_price_output,
        currency=chosen.model_currency,
    )


def find(session: Session, tenant_id: str, name: str) -> Profile:
    """The profile `name` of a tenant.

    Raises:
        ModelFault: there is none (`misconfigured`).
    """
    if name == DEFAULT:
        return of_settings(settings.current())
    row = session.get(ModelProfile, (tenant_id, name))
    if row is None:
        raise faults.fault("misconfigured", public=UNKNOWN, diagnostic=f"no profile {name!r}")
    return _profile(row)


def all_of(session: Session, tenant_id: str) -> list[Profile]:
    """Every profile of a tenant, `default` first."""
    rows = session.exec(
        select(ModelProfile)
        .where(ModelProfile.tenant_id == tenant_id)
        .order_by(col(ModelProfile.name))
    )
    return [of_settings(settings.current()), *map(_profile, rows)]


def keep(work: Work, tenant_id: str, profile: Profile, key: str | None) -> None:
    """Add an administrator's profile or change it; without a `key` it keeps the one it has.

    Raises:
        ValueError: its name is the operator's.
    """
    if profile.name == DEFAULT:
        raise ValueError(f"{DEFAULT!r} is what the operator set")
    now = clock.now()
    row = work.session.get(ModelProfile, (tenant_id, profile.name)) or ModelProfile(
        tenant_id=tenant_id,
        name=profile.name,
        kind=profile.kind,
        model=profile.model,
        created_at=now,
        updated_at=now,
    )
    for field in _SHARED:
        setattr(row, field, getattr(profile, field))
    row.updated_at = now
    if key is not None:
        row.key_sealed = sealing.seal(key.encode(), key_name(tenant_id, profile.name))
    work.session.add(row)


def is_key(text: str) -> bool:
    """Whether a key can stand in the head of a request."""
    return text.isascii() and text.isprintable() and " " not in text


def has_key(session: Session, tenant_id: str, name: str) -> bool:
    """Whether an administrator gave a profile a key."""
    row = session.get(ModelProfile, (tenant_id, name))
    return row is not None and row.key_sealed is not None


def key_name(tenant_id: str, name: str) -> str:
    """What an administrator's key is called, and sealed for."""
    return f"model_profile:{tenant_id}:{name}"


def operators_key() -> str | None:
    """The key of `default`; None where the operator set none."""
    secret = settings.current().model_api_key
    return secret.get_secret_value() if secret else None


def key_of(profile: Profile) -> str | None:
    """The key that `profile` was found with; None where there is none.

    Raises:
        CannotUnseal: it was sealed under another master key, or for another profile.
    """
    if profile.api_key_name == OPERATORS_KEY:
        return operators_key()
    if profile.key_sealed is None:
        return None
    return sealing.unseal(profile.key_sealed, profile.api_key_name).decode()


_SHARED = (
    "kind",
    "model",
    "base_url",
    "context_tokens",
    "output_tokens",
    "requires_finish",
    "usage",
    "call_ids",
    "max_tokens_field",
    "thinking",
    "price_input",
    "price_output",
    "currency",
)


def _profile(row: ModelProfile) -> Profile:
    named = Profile(
        name=row.name,
        api_key_name=key_name(row.tenant_id, row.name),
        key_sealed=row.key_sealed,
    )
    return replace(named, **{field: getattr(row, field) for field in _SHARED})
