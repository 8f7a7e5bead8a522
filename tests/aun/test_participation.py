"""Who hears of a conversation: those who take part in it, from when they joined until they left."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sqlmodel import Session

from app.access import standing, topics
from app.aun import participation
from app.aun.events import GroupChanged
from app.aun.groups import changes
from app.aun.models import Conversation, ConversationKind, Participant
from app.identity.models import Agent, User
from app.identity.principal import Channel, Principal, Scope
from app.kernel import clock, db, event_log, events, ids
from app.kernel.db import Work
from app.kernel.models import LoggedEvent
from tests.api import streaming
from tests.api.streaming import Client, SignedIn
from tests.people import World

pytestmark = pytest.mark.anyio
GROUP = "group.assent.localhost/1"


@pytest.fixture
def port(opened: str) -> Iterator[int]:
    stop = participation.hand_in()
    with streaming.served() as port:
        yield port
    stop()


@pytest.mark.requirement("UI-40", "SEC-31")
async def test_a_group_is_heard_of_from_joining_to_leaving_and_never_replayed_after(
    port: int,
) -> None:
    alice = streaming.person("alice")
    bob = streaming.person("bob", tenant_id=alice.tenant_id)
    for who in (alice, bob):
        await db.transaction(_name, who)
    start = str(db.read_now(event_log.newest, alice.tenant_id))
    conversation = await db.transaction(_group, alice)
    await asyncio.to_thread(streaming.log, alice.tenant_id, "first", topic=conversation)
    async with (
        Client.connected(port, alice, start) as hers,
        Client.connected(port, bob, start) as his,
    ):
        assert (await hers.until("test.happened")).data["subject"] == "first"

        await db.transaction(_join, bob, conversation)
        await asyncio.to_thread(streaming.log, alice.tenant_id, "second", topic=conversation)
        assert (await his.until("test.happened")).data["subject"] == "second"

        await db.transaction(_leave, bob, conversation)
        await asyncio.to_thread(streaming.log, alice.tenant_id, "third", topic=conversation)
        await asyncio.to_thread(streaming.log, alice.tenant_id, "for all")
        assert (await his.until("test.happened")).data["subject"] == "for all"
        assert [(await hers.until("test.happened")).data["subject"] for _ in range(2)] == [
            "second",
            "third",
        ]
    async with Client.connected(port, bob, start) as again:
        assert (await again.until("test.happened")).data["subject"] == "for all"
        assert b"second" not in again.raw


@pytest.mark.requirement("UI-40")
async def test_whoever_joins_while_a_stream_reads_hears_what_follows(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = streaming.person("alice")
    bob = streaming.person("bob", tenant_id=alice.tenant_id)
    for who in (alice, bob):
        await db.transaction(_name, who)
    start = str(db.read_now(event_log.newest, alice.tenant_id))
    conversation = await db.transaction(_group, alice)
    await asyncio.to_thread(streaming.log, alice.tenant_id, "first", topic=conversation)
    joining, has_joined = [bob], asyncio.Event()
    loop = asyncio.get_running_loop()

    def since_then_join(session: Session, *args: Any) -> list[LoggedEvent] | event_log.Gap:
        found = since(session, *args)
        if found and joining:  # after the snapshot, before it is read who takes part
            db.transact_now(_join, joining.pop(), conversation)
            loop.call_soon_threadsafe(has_joined.set)
        return found

    since = event_log.since
    monkeypatch.setattr(event_log, "since", since_then_join)

    async with Client.connected(port, bob, start) as his:
        async with asyncio.timeout(20):
            await has_joined.wait()
        await asyncio.to_thread(streaming.log, alice.tenant_id, "second", topic=conversation)

        assert (await his.until("test.happened")).data["subject"] == "second"


@pytest.mark.requirement("UI-40")
async def test_nothing_is_lost_while_others_join_and_leave(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = streaming.person("alice")
    await db.transaction(_name, alice)
    start = str(db.read_now(event_log.newest, alice.tenant_id))
    conversation = await db.transaction(_group, alice)
    changes_to_come = [1, 2, 3]

    def told_amid_changes(session: Session, *args: Any) -> Any:
        if changes_to_come:
            event_seq = changes_to_come.pop()
            events.deliver(
                GroupChanged(tenant_id=alice.tenant_id, group_id=GROUP, event_seq=event_seq)
            )
        return participation.members_of(session, *args)

    monkeypatch.setattr(topics.of_process(), "_tell", told_amid_changes)

    async with Client.connected(port, alice, start) as hers:
        await asyncio.to_thread(streaming.log, alice.tenant_id, "first", topic=conversation)

        assert (await hers.until("test.happened")).data["subject"] == "first"
    assert changes_to_come == []


@pytest.mark.requirement("UI-40")
async def test_a_change_in_the_log_is_heeded_before_it_is_announced(port: int) -> None:
    alice = streaming.person("alice")
    bob = streaming.person("bob", tenant_id=alice.tenant_id)
    for who in (alice, bob):
        await db.transaction(_name, who)
    start = str(db.read_now(event_log.newest, alice.tenant_id))
    conversation = await db.transaction(_group, alice)
    await asyncio.to_thread(streaming.log, alice.tenant_id, "first", topic=conversation)
    async with (
        Client.connected(port, alice, start) as hers,
        Client.connected(port, bob, start) as his,
    ):
        assert (await hers.until("test.happened")).data["subject"] == "first"

        await db.transaction(_join_elsewhere, bob, conversation)
        await asyncio.to_thread(streaming.log, alice.tenant_id, "second", topic=conversation)

        assert (await his.until("test.happened")).data["subject"] == "second"


@pytest.mark.requirement("UI-42")
async def test_an_agent_hears_its_own_conversations_where_it_may_read_messages(
    world: World,
) -> None:
    stop = participation.hand_in()
    given = world.acme.delegations["alice"]
    conversation = await db.transaction(_of_agent, world.acme.id, given.agent_id)
    seq = await db.transaction(
        event_log.append, world.acme.id, "message.stored", conversation, {}, topic=conversation
    )
    found = await db.read(event_log.since, world.acme.id, await _epoch(world), seq - 1)
    assert isinstance(found, list)
    [event] = found

    heard = {}
    for scopes in ({Scope.EVENTS_READ}, {Scope.EVENTS_READ, Scope.AUN_MESSAGE}):
        agent = Principal(
            tenant_id=world.acme.id,
            user_id=given.user_id,
            agent_release_id=None,
            delegation_id=given.id,
            session_id=None,
            channel=Channel.HTTP,
            actors=(given.agent_id,),
            scopes=frozenset(scopes),
            epoch=world.acme["alice"].authz_epoch,
        )
        rights = await db.read(standing.rights, agent)
        assert rights is not None
        await db.read(lambda session: topics.of_process().learn(session, world.acme.id, [event]))
        heard[len(scopes)] = rights.allow(event)
    stop()

    assert heard == {1: False, 2: True}


async def _epoch(world: World) -> str:
    return (await db.read(event_log.newest, world.acme.id)).epoch


def _name(work: Work, who: SignedIn) -> None:
    user = work.session.get_one(User, (who.tenant_id, who.user_id))
    user.aid = f"{user.login}.assent.localhost"
    work.session.add(user)


def _group(work: Work, alice: SignedIn) -> str:
    made = ids.ulid()
    work.session.add(
        Conversation(
            tenant_id=alice.tenant_id,
            id=made,
            kind=ConversationKind.GROUP,
            group_id=GROUP,
            started_by="alice",
            created_at=clock.now(),
        )
    )
    work.session.flush()
    _take_part(work, alice, made, 0)
    return made


def _join(work: Work, who: SignedIn, conversation_id: str) -> None:
    newest = event_log.newest(work.session, who.tenant_id).seq
    _take_part(work, who, conversation_id, newest)
    work.announce(GroupChanged(tenant_id=who.tenant_id, group_id=GROUP, event_seq=1))


def _join_elsewhere(work: Work, who: SignedIn, conversation_id: str) -> None:
    """As in another process whose notice is still on its way."""
    newest = event_log.newest(work.session, who.tenant_id).seq
    _take_part(work, who, conversation_id, newest)
    work.session.flush()
    event_log.append(
        work, who.tenant_id, changes.CHANGED, conversation_id, {}, topic=conversation_id
    )


def _take_part(work: Work, who: SignedIn, conversation_id: str, from_seq: int) -> None:
    user = work.session.get_one(User, (who.tenant_id, who.user_id))
    assert user.aid
    work.session.add(
        Participant(
            tenant_id=who.tenant_id,
            conversation_id=conversation_id,
            aid=user.aid,
            from_seq=from_seq,
        )
    )


def _leave(work: Work, who: SignedIn, conversation_id: str) -> None:
    user = work.session.get_one(User, (who.tenant_id, who.user_id))
    key = (who.tenant_id, conversation_id, user.aid)
    row = work.session.get_one(Participant, key)
    row.left_at = clock.now()
    work.session.add(row)
    work.announce(GroupChanged(tenant_id=who.tenant_id, group_id=GROUP, event_seq=2))


def _of_agent(work: Work, tenant_id: str, agent_id: str) -> str:
    agent = work.session.get_one(Agent, (tenant_id, agent_id))
    agent.aid = agent.aid or "stock.assent.localhost"
    work.session.add(agent)
    made = ids.ulid()
    work.session.add(
        Conversation(
            tenant_id=tenant_id,
            id=made,
            kind=ConversationKind.GROUP,
            group_id=GROUP,
            started_by=agent.aid,
            created_at=clock.now(),
        )
    )
    work.session.flush()
    work.session.add(
        Participant(tenant_id=tenant_id, conversation_id=made, aid=agent.aid, from_seq=0)
    )
    return made
