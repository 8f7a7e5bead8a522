"""No agent finds or runs a command of the workspace, whatever its user may; nor a stale session."""

from typing import Any

import pytest

from app.audit.models import AuditEntry
from app.commands import catalogue, registry
from app.commands.definition import CommandDefinition
from app.commands.stored import StoredDefinition
from app.identity import delegations
from app.identity.principal import Channel, Principal, Scope
from app.kernel import db
from tests.packs.workspace.office import Office

EVERYTHING = (Scope.CATALOG_READ, Scope.COMMANDS_READ, Scope.COMMANDS_INVOKE)


def agent_of(office: Office, login: str = "alice") -> Principal:
    """The agent `expenses`, acting for somebody who lets it do all that can be let."""
    user, agent = office.world.user(office.acme[login]), office.acme.agents["expenses"]
    held = db.transact_now(delegations.make_for, user, agent, EVERYTHING)
    return Principal(
        tenant_id=user.tenant_id,
        user_id=user.id,
        agent_release_id=None,
        delegation_id=held.id,
        session_id=None,
        channel=Channel.HTTP,
        actors=(agent.id,),
        scopes=frozenset(EVERYTHING),
        epoch=office.world.user(user).authz_epoch,
    )


def ours() -> list[CommandDefinition]:
    found = [each for code, each in registry.declared().items() if code.startswith("workspace.")]
    assert len(found) >= 9
    return found


@pytest.mark.requirement("CMD-25", "SEC-2")
async def test_an_agent_of_the_owner_may_run_none_and_finds_none(office: Office) -> None:
    agent = agent_of(office, "olga")

    for command in ours():
        refusal = await office.refused(command.code, agent, **command.example)
        assert command.people_only
        assert (refusal.stage, refusal.reason, refusal.status, refusal.advice) == (
            "authorize",
            "human_session_required",
            403,
            "ask_user",
        ), command.code
        (entry,) = office.trail(command.code)
        assert (entry.outcome, entry.agent_id) == ("refused", agent.agent_id)
    found = db.read_now(catalogue.of, agent)
    hers = db.read_now(catalogue.of, office.person("olga"))

    codes = {each.code for each in found.entries}
    assert "inventory.stock.list" in codes, "the agent has a catalogue"
    assert not any(code.startswith("workspace.") for code in codes)
    assert {each.code for each in ours()} <= {each.code for each in hers.entries}


@pytest.mark.requirement("CMD-25", "SEC-38")
async def test_a_sign_in_of_six_minutes_ago_changes_no_rights(office: Office) -> None:
    """Each call is one that a fresh session could make: it is refused for its age alone."""
    stale = office.stale("olga")
    user, root = office.acme["alice"].id, office.acme.root.id
    inputs: dict[str, dict[str, Any]] = {
        "workspace.user.invite": {"displayName": "Li", "login": "li", "orgId": root},
        "workspace.user.disable": {"userId": user},
        "workspace.user.enable": {"userId": office.acme["dora"].id},
        "workspace.role.assign": {
            "userId": user,
            "roleId": office.role("auditor").id,
            "orgId": root,
        },
        "workspace.role.unassign": {
            "userId": user,
            "roleId": office.role("member").id,
            "orgId": office.acme.orgs["shanghai"].id,
        },
        "workspace.agent.disable": {"agentId": office.acme.agents["stock"].id},
        "workspace.agent.enable": {"agentId": office.acme.agents["stock"].id},
        "workspace.command.publish": {"code": "inventory.stock.list", "version": 1},
        "workspace.key.rotate": {"key": "redaction"},
    }
    assert inputs.keys() == {each.code for each in ours()}

    for code, sent in inputs.items():
        refusal = await office.refused(code, stale, **sent)
        assert (refusal.stage, refusal.reason, refusal.status) == (
            "handler",
            "step_up_required",
            401,
        ), code
        assert "approvalId" not in refusal.facts, "nobody is asked about what could not run"
        (entry,) = office.trail(code)
        assert _says(entry) == ("refused", "step_up_required")
    office.do("workspace.role.assign", "olga", **inputs["workspace.role.assign"])


def test_each_says_what_it_is_in_both_languages_and_is_for_people(office: Office) -> None:
    for command in ours():
        stored = StoredDefinition.of(command, "workspace")
        assert stored.people_only
        assert stored.permission.startswith(("identity.", "command.", "workspace."))
        assert "rights" in stored.tags, "an auditor filters by it"
        assert stored.agent_hint.en.startswith("For people only")
        assert stored.record is None
        assert stored.agent_hint.zh.startswith("仅限人工")


def _says(entry: AuditEntry) -> tuple[str, str | None]:
    return entry.outcome, entry.reason
