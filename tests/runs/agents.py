"""Hosted agents among people: who says what to whom, and what the scheduler made of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlmodel import Session, col, select

from app.aun import conversations, delivery, queries, rows
from app.aun.caller import CONSOLE_DEVICE, Caller, Door
from app.aun.delivery import Direct, Stored
from app.aun.group_models import Group
from app.aun.groups import making, membership, roster, sending
from app.aun.groups.sending import Ready
from app.aun.models import Identity, IdentityKind
from app.identity.models import Agent, AgentRelease, Delegation, PeerLink, User
from app.identity.principal import Principal
from app.kernel import clock, db, ids
from app.kernel.db import Work
from app.runs import claiming, ending, opening, transcript
from app.runs import delivery as hearing
from app.runs.lease import Claim
from app.runs.run_models import Lane, Run, RunInput, RunWait, SentMessage, TranscriptEntry
from app.runs.scheduler import Scheduler
from app.runs.session import RunSession, Transcript
from app.runs.states import RunKind, RunState, WaitKind
from tests.people import World
from tests.runs import bare

ISSUER = "assent.localhost"
Started = Callable[[RunSession], Any]


@dataclass
class Office:
    """Acme's people with the agents `stock`, which alice and bob enabled, and `expenses`."""

    world: World
    claims: list[Claim] = field(default_factory=list)

    @property
    def tenant_id(self) -> str:
        """Acme's."""
        return self.world.acme.id

    def aid(self, name: str) -> str:
        """The AID of a person, an agent or an outsider."""
        acme = self.world.acme
        known: User | Agent | None = acme.people.get(name) or acme.agents.get(name)
        return (known.aid if known else None) or f"{name}.{ISSUER}"

    def agent(self, code: str = "stock") -> Agent:
        """An agent as its row is now."""
        return db.read_now(lambda session: session.get_one(Agent, self._key(code)))

    def person(self, login: str = "alice") -> Principal:
        """A person of Acme in a session of theirs."""
        return self.world.person(self.world.acme[login])

    def publish(self, code: str = "stock", **content: Any) -> None:
        """Publish another release of an agent, with this content."""
        db.transact_now(_publish, self._key(code), content)

    def outsider(self, name: str = "tina", linked_to: str | None = None) -> str:
        """An AID from outside; of a user, where it is linked to one."""
        user_id = self.world.acme[linked_to].id if linked_to else None
        db.transact_now(_outsider, self.tenant_id, self.aid(name), user_id)
        return self.aid(name)

    def say(
        self, who: str = "alice", to: str = "stock", text: str = "Hello", **payload: Any
    ) -> Stored:
        """Send a message between two; it is stored, and nothing else happened yet."""
        made = {"type": "text", "text": text} | payload
        return db.transact_now(_say, self.tenant_id, self.aid(who), self.aid(to), made)

    def say_often(self, number: int, who: str = "alice", to: str = "stock") -> None:
        """Send so many messages, in one transaction."""
        db.transact_now(_say_often, self.tenant_id, self.aid(who), self.aid(to), number)

    def forget(self, stored: Stored) -> None:
        """Let a message be gone, as when its time of keeping is over."""
        db.transact_now(_forget, self.tenant_id, stored)

    def group(
        self,
        *members: str,
        owner: str = "alice",
        agents: tuple[str, ...] = ("stock",),
        **values: Any,
    ) -> str:
        """The id of a new group of people and agents, by name."""
        return db.transact_now(
            _group, self.caller(owner), [self.aid(each) for each in (*members, *agents)], values
        )

    def say_in(self, group_id: str, who: str = "alice", text: str = "Hello", **payload: Any) -> str:
        """Send a message to a group; the id of its row."""
        made = {"type": "text", "text": text} | payload
        return db.transact_now(_say_in, self.caller(who), group_id, made)

    def let_in(self, group_id: str, name: str, owner: str = "alice") -> None:
        """Somebody comes into a group."""
        db.transact_now(_admit, self.caller(owner), group_id, self.aid(name))

    def put_out(self, group_id: str, name: str, owner: str = "alice") -> None:
        """Somebody is put out of a group."""
        db.transact_now(_remove, self.caller(owner), group_id, self.aid(name))

    def mention(self, code: str = "stock") -> dict[str, Any]:
        """What a payload says that mentions an agent."""
        return {"mentions": [{"aid": self.aid(code)}]}

    def caller(self, name: str) -> Caller:
        """A party of Acme, as messaging knows it."""
        found = db.read_now(queries.identity, self.tenant_id, self.aid(name))
        assert found is not None
        return Caller(
            tenant_id=self.tenant_id,
            aid=found.aid,
            kind=IdentityKind(found.kind),
            device_id=CONSOLE_DEVICE,
            door=Door.CONSOLE,
        )

    def inputs(self, code: str = "stock") -> list[RunInput]:
        """What an agent heard, in order."""
        agent_id = self.world.acme.agents[code].id
        query = select(RunInput).where(RunInput.agent_id == agent_id)
        return self._all(query.order_by(col(RunInput.log_seq)))

    def fates(self, code: str = "stock") -> list[tuple[str, str | None]]:
        """How what an agent heard stands: state, and reason or hold."""
        return [(each.state, each.reason or each.hold) for each in self.inputs(code)]

    def runs(self) -> list[Run]:
        """Every run, in the order in which they were queued."""
        return self._all(select(Run).order_by(col(Run.queued_at), col(Run.id)))

    def run(self, run_id: str | None = None) -> Run:
        """One run as it is now; the only one where none is named."""
        found = self.runs()
        if run_id is not None:
            found = [each for each in found if each.id == run_id]
        assert len(found) == 1, f"{len(found)} runs"
        return found[0]

    def lanes(self) -> list[Lane]:
        """Every lane, the oldest first."""
        return self._all(select(Lane).order_by(col(Lane.id)))

    def waits(self) -> list[RunWait]:
        """Every wait, the oldest first."""
        return self._all(select(RunWait).order_by(col(RunWait.id)))

    def scheduler(self, execute: Any = None, **options: Any) -> Scheduler:
        """A scheduler whose worker only notes what it was handed, or does what it is told."""

        async def note(claim: Claim, _started: Started) -> None:
            self.claims.append(claim)

        return Scheduler(execute or note, **options)

    async def hear(self) -> int:
        """Deliver everything that was said."""
        return await hearing.hear_all()

    def claim(self, room: int = 8, process: str = "here") -> list[Claim]:
        """Take queued runs, as a process."""
        return db.transact_now(claiming.claim, process, room)

    def force(self, table: type[Any], key: tuple[str, ...], **values: Any) -> None:
        """Set what only another part of the product, or time, would bring about."""
        db.transact_now(_set, table, key, values)

    def session(self, claim: Claim, **values: Any) -> RunSession:
        """An execution of a claimed run, as far as admission knows it."""
        row = self.run(claim.run_id)
        lane = next((each for each in self.lanes() if each.id == row.lane_id), None)
        made = bare.session()
        made.claim = claim
        made.transcript = Transcript(db.read_now(transcript.load, claim))
        made.facts = replace(
            bare.FACTS,
            tenant_id=row.tenant_id,
            run_id=row.id,
            root_run_id=row.root_run_id,
            kind=RunKind(row.kind),
            agent_id=row.agent_id,
            agent_aid=self.aid("stock"),
            lane_id=row.lane_id,
            conversation_id=row.conversation_id,
            discussion=lane.discussion if lane else "",
            user_id=row.user_id,
        )
        for name, value in values.items():
            setattr(made, name, value)
        return made

    async def begun(self) -> RunSession:
        """Hear what was said, and begin the one run that is due for it."""
        await self.hear()
        await opening.open_due()
        (claim,) = self.claim()
        return self.session(claim)

    def entries(self) -> list[TranscriptEntry]:
        """Every transcript entry, in order."""
        return self._all(select(TranscriptEntry).order_by(col(TranscriptEntry.seq)))

    def end(self, claim: Claim, state: RunState = RunState.COMPLETED) -> None:
        """Let a run be over, with what it has taken in."""
        db.transact_now(_end, claim, state)

    def suspend(self, claim: Claim, kind: WaitKind, **values: Any) -> str:
        """Let a run that is claimed wait; the id of its wait."""
        return db.transact_now(_suspend, claim, kind, values)

    def said_by(self, run: Run, stored: Stored) -> None:
        """A run said a message."""
        db.transact_now(_said_by, run, stored.id, stored.conversation_id)

    def delegation(self, login: str = "alice") -> Delegation:
        """What a person lets `stock` do, as it is now."""
        key = (self.tenant_id, self.world.acme.delegations[login].id)
        return db.read_now(lambda session: session.get_one(Delegation, key))

    def _key(self, code: str) -> tuple[str, str]:
        return (self.tenant_id, self.world.acme.agents[code].id)

    def _all(self, query: Any) -> list[Any]:
        return db.read_now(lambda session: list(session.exec(query).all()))


def _publish(work: Work, key: tuple[str, str], content: dict[str, Any]) -> None:
    agent = work.session.get_one(Agent, key)
    query = select(AgentRelease.number).where(AgentRelease.agent_id == agent.id)
    number = max(work.session.exec(query).all(), default=0) + 1
    made = {"name": agent.name, "instructions": "Help."} | content
    work.session.add(
        AgentRelease(
            tenant_id=agent.tenant_id,
            id=ids.ulid(),
            agent_id=agent.id,
            number=number,
            content=made,
            content_sha256=ids.sha256(str(made)),
            published_at=clock.now(),
        )
    )


def _outsider(work: Work, tenant_id: str, aid: str, user_id: str | None) -> None:
    now = clock.now()
    work.session.add(
        Identity(tenant_id=tenant_id, aid=aid, kind=IdentityKind.OUTSIDE, created_at=now)
    )
    if user_id is not None:
        work.session.add(PeerLink(tenant_id=tenant_id, aid=aid, user_id=user_id, linked_at=now))


def _say(work: Work, tenant_id: str, sender: str, to: str, payload: dict[str, Any]) -> Stored:
    return delivery.store_direct(
        work,
        Direct(
            tenant_id=tenant_id,
            sender_aid=sender,
            receiver_aid=to,
            message_id=f"m-{ids.ulid().lower()}",
            payload=payload,
        ),
    )


def _say_often(work: Work, tenant_id: str, sender: str, to: str, number: int) -> None:
    for count in range(number):
        _say(work, tenant_id, sender, to, {"type": "text", "text": str(count)})


def _forget(work: Work, tenant_id: str, stored: Stored) -> None:
    key = {"tenant_id": tenant_id, "id": stored.id}
    rows.FORGET_ENTRIES.run(work.connection, tenant_id=tenant_id, id=stored.id)
    rows.FORGET_LAST.run(
        work.connection,
        tenant_id=tenant_id,
        conversation_id=stored.conversation_id,
        message=stored.id,
    )
    rows.FORGET.run_with(work.connection, key)


def _admit(work: Work, owner: Caller, group_id: str, aid: str) -> None:
    found = membership.held(work, owner, group_id)
    roster.admit(work, owner, found.group, aid, "member_added")


def _remove(work: Work, owner: Caller, group_id: str, aid: str) -> None:
    found = membership.held(work, owner, group_id)
    gone = membership.member(work.session, found.group, aid)
    roster.remove(work, owner, found.group, gone, "member_removed")


def _group(work: Work, owner: Caller, members: list[str], values: dict[str, Any]) -> str:
    group = making.anonymous(
        work,
        owner,
        None,
        name="Team",
        visibility="private",
        description="",
        details={},
        join_mode=None,
    )
    for aid in members:
        found = membership.held(work, owner, group.id)
        roster.admit(work, owner, found.group, aid, "member_added")
    row = work.session.get_one(Group, (owner.tenant_id, group.id))
    for name, value in values.items():
        setattr(row, name, value)
    work.session.add(row)
    return group.id


def _say_in(work: Work, caller: Caller, group_id: str, payload: dict[str, Any]) -> str:
    message_id = f"m-{ids.ulid().lower()}"
    sending.store(work, caller, group_id, message_id, Ready(payload))
    found = delivery.known(work.connection, caller.tenant_id, caller.aid, message_id)
    assert found is not None
    return found.id


def conversation_of(session: Session, tenant_id: str, group_id: str) -> str:
    """The conversation of a group."""
    found = conversations.id_of_group(session, tenant_id, group_id)
    assert found is not None
    return found


def _set(work: Work, table: type[Any], key: tuple[str, ...], values: dict[str, Any]) -> None:
    row = work.session.get_one(table, key)
    for name, value in values.items():
        setattr(row, name, value)
    work.session.add(row)


def _end(work: Work, claim: Claim, state: RunState) -> None:
    row = work.session.get_one(Run, (claim.tenant_id, claim.run_id))
    ending.close(work, row, ending.End(state=state))


def _suspend(work: Work, claim: Claim, kind: WaitKind, values: dict[str, Any]) -> str:
    row = work.session.get_one(Run, (claim.tenant_id, claim.run_id))
    row.state, row.claim_token, row.lease_until = RunState.SUSPENDED, None, None
    wait = RunWait(
        tenant_id=row.tenant_id,
        id=ids.ulid(),
        run_id=row.id,
        kind=kind,
        opened_at=clock.now(),
        **values,
    )
    work.session.add(row)
    work.session.add(wait)
    work.session.flush()
    return wait.id


def _said_by(work: Work, run: Run, message_id: str, conversation_id: str) -> None:
    work.session.add(
        SentMessage(
            tenant_id=run.tenant_id,
            run_id=run.id,
            scope=1,
            conversation_id=conversation_id,
            content_sha256=ids.sha256(message_id),
            message_id=message_id,
            at=clock.now(),
        )
    )
