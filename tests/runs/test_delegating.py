"""Handing work on: a run of its own, never with more than its parent had, and one result."""

import pytest

from app.identity.principal import Scope
from app.kernel import clock, db
from app.kernel.db import Work
from app.runs import authority, delegating
from app.runs.outcome import Done, Refused, Result, Suspended
from app.runs.run_models import Run, TranscriptEntry
from app.runs.session import RunSession
from app.runs.states import EntryKind, RunState, WaitKind
from tests.runs.sessions import Desks

pytestmark = pytest.mark.anyio


async def parent(desks: Desks, *scopes: Scope, **content: object) -> RunSession:
    """A run of `expenses` for alice that may hand work to `stock`."""
    desks.enable("alice", "expenses", *scopes)
    run = await desks.at_work()
    run.content = run.content.model_copy(update={"contacts": ("stock",), **content})
    return run


async def handed(desks: Desks, run: RunSession, **more: object) -> Run:
    """The child run of a call."""
    given = {"agent": "stock", "task": "Count the chairs.", **more}
    waits = await desks.call(run, "delegate", **given)
    assert isinstance(waits, Suspended), waits
    assert (waits.kind, waits.is_open) == (WaitKind.RUN, True)
    return desks.run(waits.ref)


def result_of(desks: Desks, child: Run) -> Result | None:
    """What the parent's call answers now."""
    return db.read_now(delegating.result_of, desks.run(child.id))


def end(desks: Desks, child: Run, state: RunState, text: str = "", **values: object) -> None:
    """Let a child say something last, and be over."""
    db.transact_now(_end, child, state, text, values)


def _end(work: Work, child: Run, state: RunState, text: str, values: dict[str, object]) -> None:
    row = work.session.get_one(Run, (child.tenant_id, child.id))
    row.state, row.ended_at = state, clock.now()
    for name, value in values.items():
        setattr(row, name, value)
    work.session.add(row)
    body = {"thoughts": ["private"], "text": text, "calls": []}
    work.session.add(
        TranscriptEntry(
            tenant_id=row.tenant_id, run_id=row.id, seq=5, kind=EntryKind.RESPONSE, body=body
        )
    )


@pytest.mark.requirement("RUN-7", "RUN-94")
async def test_a_child_run_has_its_own_task_and_stands_under_the_same_person(
    desks: Desks,
) -> None:
    run = await parent(desks)

    child = await handed(desks, run, step_cap=3)

    mother, (row,) = desks.run(run.claim.run_id), desks.calls()
    assert (child.kind, child.state, child.note) == ("delegated", "queued", "Count the chairs.")
    assert child.user_id == mother.user_id == desks.world.acme["alice"].id
    assert child.actors == [desks.agent("stock").id, desks.agent("expenses").id]
    assert (child.parent_run_id, child.parent_call_id) == (mother.id, row.id)
    assert (child.root_run_id, child.depth, child.step_limit) == (mother.id, 2, 3)
    assert child.release_id is not None
    assert (row.state, row.kind, row.child_run_id) == ("waiting", "delegate", child.id)
    principal = db.read_now(authority.principal_of, child)
    assert principal is not None
    assert principal.agent_id == desks.agent("stock").id


@pytest.mark.requirement("RUN-7")
async def test_the_release_of_the_moment_of_delegation_is_kept(desks: Desks) -> None:
    run = await parent(desks)
    child = await handed(desks, run)

    desks.publish("stock", instructions="Another")

    assert desks.run(child.id).release_id == child.release_id


@pytest.mark.requirement("RUN-94", "RUN-97")
async def test_scopes_are_those_that_both_delegations_have(desks: Desks) -> None:
    run = await parent(desks, Scope.COMMANDS_READ, Scope.COMMANDS_INVOKE, Scope.CATALOG_READ)
    desks.enable("alice", "stock", Scope.COMMANDS_READ, Scope.AUN_MESSAGE)

    child = await handed(desks, run)

    assert child.scopes == [Scope.COMMANDS_READ.value]


@pytest.mark.requirement("RUN-31", "RUN-94")
async def test_only_a_named_agent_that_the_person_enabled_gets_work(desks: Desks) -> None:
    run = await parent(desks)
    content = run.content

    run.content = content.model_copy(update={"contacts": ("other",)})
    unnamed = await _refused(desks, run, "stock")
    run.content = content
    unknown = await _refused(desks, run, "nobody")
    itself = await _refused(desks, run, "expenses")
    bobs = await desks.at_work(who="bob")
    bobs.content = content
    not_acting = await _refused(desks, bobs, "stock")

    assert {each.reason for each in (unnamed, unknown, itself)} <= {
        "recipient_not_allowed",
        "tool_gone",
    }
    assert not_acting.reason in {"no_delegation", "tool_gone"}
    assert len(desks.runs()) == 2


async def _refused(desks: Desks, run: RunSession, agent: str) -> Refused:
    from app.runs import toolbox

    run.tools = dict(toolbox.discover())
    refused = await desks.call(run, "delegate", agent=agent, task="Count.")
    assert isinstance(refused, Refused), refused
    return refused


@pytest.mark.requirement("RUN-94")
async def test_a_chain_is_three_agents_long_at_most(desks: Desks) -> None:
    run = await parent(desks)
    desks.force(Run, (desks.tenant_id, run.claim.run_id), depth=3)

    refused = await _refused(desks, run, "stock")

    assert (refused.reason, refused.advice) == ("chain_too_long", "do_not_retry")
    assert len(desks.runs()) == 1


@pytest.mark.requirement("RUN-94")
async def test_a_cap_never_exceeds_what_the_root_has(desks: Desks) -> None:
    run = await parent(desks)
    desks.force(Run, (desks.tenant_id, run.claim.run_id), step_limit=10)

    child = await handed(desks, run, step_cap=200)

    assert child.step_limit == 10


@pytest.mark.requirement("RUN-94")
async def test_it_speaks_in_its_parents_group_where_it_is_a_member(desks: Desks) -> None:
    desks.enable()
    group = desks.group("bob", agents=("expenses", "stock"), mention_mode="mention-only")
    desks.say_in(group, "alice", "Go", mentions=[{"aid": desks.aid("expenses")}])
    run = await desks.takes_up()
    run.content = run.content.model_copy(update={"contacts": ("stock",)})
    inside = await handed(desks, run)
    desks.put_out(group, "stock")

    outside = await handed(desks, run, task="Count the desks.")

    assert inside.conversation_id == run.facts.conversation_id
    assert outside.conversation_id is None  # they never wrote to each other


@pytest.mark.requirement("RUN-94")
async def test_between_two_it_has_its_own_conversation_with_their_person(desks: Desks) -> None:
    run = await parent(desks)
    before = desks.say("alice", "stock", "Hello")

    child = await handed(desks, run)

    assert child.conversation_id == before.conversation_id
    assert child.conversation_id != run.facts.conversation_id


@pytest.mark.requirement("RUN-74", "RUN-94")
async def test_the_call_answers_with_the_childs_end_and_closing_text(desks: Desks) -> None:
    run = await parent(desks)
    child = await handed(desks, run)

    assert result_of(desks, child) is None
    end(desks, child, RunState.COMPLETED, "There are 12 chairs.")
    result = result_of(desks, child)

    assert isinstance(result, Done)
    assert result.result["text"] == "There are 12 chairs."
    assert (result.result["agent"], result.result["run"]) == ("Stock", child.id)
    assert "private" not in result.for_model()


@pytest.mark.requirement("RUN-45", "F-81")
async def test_a_child_that_closes_in_silence_answers_with_no_words(desks: Desks) -> None:
    run = await parent(desks)
    child = await handed(desks, run)

    end(desks, child, RunState.COMPLETED, " [[silent]]\n")
    result = result_of(desks, child)

    assert isinstance(result, Done)
    assert result.result["text"] == ""


@pytest.mark.requirement("RUN-74")
@pytest.mark.parametrize(
    "state",
    [RunState.FAILED, RunState.CANCELED, RunState.INTERRUPTED, RunState.OUTCOME_UNKNOWN],
)
async def test_a_child_that_did_not_complete_is_a_refusal_that_says_how(
    desks: Desks, state: RunState
) -> None:
    run = await parent(desks)
    child = await handed(desks, run)

    end(desks, child, state, "Half", reason="tokens", public_error="It ran out of tokens.")
    result = result_of(desks, child)

    assert isinstance(result, Refused)
    assert result.reason == f"run_{state.value}"
    assert result.detail == "It ran out of tokens."
    told = result.data()
    assert (told["why"], told["text"], told["run"]) == ("tokens", "Half", child.id)
