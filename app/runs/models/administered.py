"""Models that administrators set up for their tenant's agents, on record (RUN-101).

A key never goes where its administrator did not send it: at another address it has to be written
again, so that nobody who may change a profile reads the key of somebody else.
"""

from collections.abc import Sequence
from typing import Any

from sqlmodel import Session, col, func, select

from app.access import scope
from app.commands import webhooks
from app.identity import agents, facts
from app.identity.models import Agent, AgentKind, Tenant
from app.identity.principal import Principal
from app.kernel.db import Work
from app.kernel.errors import Conflict, FieldError, Invalid, NotFound
from app.kernel.i18n import N_
from app.runs.models import profiles
from app.runs.models.profile_models import ModelProfile
from app.runs.models.protocol import Profile

MANAGE = "identity.model.manage"
MOST = 50  # of a tenant
FIELDS = ("kind", "model", "base_url", "context_tokens", "output_tokens", "thinking", "currency")


class TooManyModels(Conflict):
    """A tenant has so many."""

    reason = "too_many_models"
    says = N_("There are as many models as there can be. Remove one first.")


class InUse(Conflict):
    """Agents think with it."""

    reason = "model_in_use"
    says = N_("Agents think with it: %(agents)s. Give them another model first.")


def check(session: Session, person: Principal) -> None:
    """Return where a person may manage what is the whole tenant's.

    Raises:
        PermissionDenied, NotFound: they may not.
    """
    scope.require_tenant_wide(session, person, MANAGE)


def one(session: Session, tenant_id: str, name: str) -> ModelProfile:
    """An administrator's profile of this tenant.

    Raises:
        NotFound: there is none of that name here.
    """
    if (found := session.get(ModelProfile, (tenant_id, name))) is None:
        raise NotFound
    return found


def add(work: Work, person: Principal, profile: Profile, key: str) -> None:
    """A new profile; an empty `key` is none.

    Raises:
        Invalid: name, address, key or prices do not do.
        TooManyModels: remove one first.
    """
    session, tenant_id = work.session, person.tenant_id
    if profile.name == profiles.DEFAULT:
        raise Invalid(FieldError("name", N_("Whoever runs this server sets up the model default.")))
    # two who add one at once: the second waits here, then counts what the first one added
    mine_alone = select(Tenant.id).where(Tenant.id == tenant_id).with_for_update(key_share=True)
    session.exec(mine_alone).one()
    if session.get(ModelProfile, (tenant_id, profile.name)) is not None:
        raise Invalid(FieldError("name", N_("Another model has this name.")))
    _check(profile, key)
    mine = select(func.count()).where(ModelProfile.tenant_id == tenant_id)
    if session.exec(mine).one() >= MOST:
        raise TooManyModels
    profiles.keep(work, tenant_id, profile, key or None)
    changes = {field: (None, getattr(profile, field)) for field in FIELDS}
    _record(work, person, "add", profile.name, changes)


def change(
    work: Work, person: Principal, profile: Profile, key: str, *, forgets_key: bool = False
) -> None:
    """Change a profile. Without a `key` it keeps its own, if it is asked where it was before.

    Raises:
        NotFound: there is none of that name here.
        Invalid: address, key or prices do not do, or the key has to be written again.
    """
    row = _held(work, person.tenant_id, profile.name)
    before = {field: getattr(row, field) for field in FIELDS}
    _check(profile, key)
    is_elsewhere = (row.kind, row.base_url) != (profile.kind, profile.base_url)
    if row.key_sealed is not None and is_elsewhere and not key and not forgets_key:
        says = N_("It is asked elsewhere from now on. Write the key for there.")
        raise Invalid(FieldError("api_key", says))
    if forgets_key:
        row.key_sealed = None
    profiles.keep(work, person.tenant_id, profile, key or None)
    changes: dict[str, tuple[Any, Any]] = {
        field: (value, getattr(profile, field)) for field, value in before.items()
    }
    if key or forgets_key:
        changes["key"] = ("", "new" if key else "forgotten")
    _record(work, person, "change", profile.name, changes)


def remove(work: Work, person: Principal, name: str) -> None:
    """Forget a profile and its key.

    Raises:
        NotFound: there is none of that name here.
        InUse: an agent's draft or current release names it.
    """
    row = _held(work, person.tenant_id, name)
    if users := agents_with(work.session, person.tenant_id, name):
        raise InUse(agents=", ".join(agent.name for agent in users))
    work.session.delete(row)
    _record(work, person, "remove", name, {"model": (row.model, None)})


def _held(work: Work, tenant_id: str, name: str) -> ModelProfile:
    """The profile, which nobody else changes until this unit ends.

    Else of two changes at once one could leave its key, and the other its address.
    """
    key = (tenant_id, name)
    found = work.session.get(ModelProfile, key, with_for_update=True, populate_existing=True)
    if found is None:
        raise NotFound
    return found


def agents_with(session: Session, tenant_id: str, name: str) -> Sequence[Agent]:
    """Agents whose draft or current release names a profile, by name."""
    query = select(Agent).where(Agent.tenant_id == tenant_id, Agent.kind == AgentKind.HOSTED)
    return [
        agent
        for agent in session.exec(query.order_by(col(Agent.name), col(Agent.id))).all()
        if name in _named_by(session, agent)
    ]


def _named_by(session: Session, agent: Agent) -> set[str]:
    release = agents.latest_release(session, agent)
    contents = [agent.draft, *([release.content] if release else [])]
    return {content.get("model", profiles.DEFAULT) for content in contents}


def _check(profile: Profile, key: str) -> None:
    errors = []
    if not profiles.is_key(key):
        errors.append(FieldError("api_key", profiles.NO_SUCH_KEY))
    if profile.base_url and (says := webhooks.fault_of(profile.base_url)):
        errors.append(FieldError("base_url", says))
    if (profile.price_input is None) != (profile.price_output is None):
        missing = "price_input" if profile.price_input is None else "price_output"
        errors.append(FieldError(missing, N_("Give both prices, or none.")))
    if profile.output_tokens >= profile.context_tokens:
        says = N_("An answer must be shorter than what the model reads.")
        errors.append(FieldError("output_tokens", says))
    if errors:
        raise Invalid(*errors)


def _record(
    work: Work,
    person: Principal,
    verb: str,
    name: str,
    changes: dict[str, tuple[Any, Any]],
) -> None:
    facts.record(
        work, f"model.profile.{verb}", person, target=("model_profile", name), changes=changes
    )
