"""A claimed run as its worker holds it, for what a run says and does: on real rows."""

import json
from dataclasses import replace
from typing import Any

from sqlmodel import Session, col, select

from app.aun import queries
from app.aun.models import Conversation, Message
from app.commands import publishing
from app.identity import agents, delegations
from app.identity.models import Delegation, User
from app.identity.principal import Scope
from app.kernel import db, ids
from app.kernel.db import Work
from app.runs import authority, inputs, offering, opening, tools, writing
from app.runs.lease import Claim
from app.runs.outcome import ProposedCall, Result, Suspended
from app.runs.release import Content
from app.runs.run_models import Run, SentMessage, ToolCall
from app.runs.session import Facts, RunSession
from app.runs.states import RunKind
from tests.packs.expenses.desk import Desk
from tests.runs import bare
from tests.runs.agents import Office

AT_WORK = (Scope.CATALOG_READ, Scope.COMMANDS_READ, Scope.COMMANDS_INVOKE, Scope.AUN_MESSAGE)


class Desks(Office):
    """The office, with expenses to work on: agents that may call commands for their people."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.desk = Desk(world)
        for company in (world.acme, world.globex):
            db.transact_now(publishing.sync, company.id)

    def enable(self, login: str = "alice", code: str = "expenses", *scopes: Scope) -> Delegation:
        """Let an agent act for somebody, as far as these scopes go."""
        user, agent = self.world.acme[login], self.world.acme.agents[code]
        return db.transact_now(_enable, user, agent.id, scopes or AT_WORK)

    async def at_work(
        self, text: str = "Hello", who: str = "alice", code: str = "expenses", **payload: Any
    ) -> RunSession:
        """The session of an agent's run for a message that somebody sent it just now."""
        self.say(who, code, text, **payload)
        return await self.takes_up()

    async def takes_up(self, **content: Any) -> RunSession:
        """The session of the run that is due: its first input admitted."""
        await self.hear()
        await opening.open_due()
        (claim,) = self.claim()
        run = self.session_of(claim, **content)
        assert await inputs.admit_first(run)
        run.turn = 1
        return run

    def session_of(self, claim: Claim, **content: Any) -> RunSession:
        """The session of a claimed run; `content` overrides its release."""
        row = self.run(claim.run_id)
        made = bare.session()
        made.claim = claim
        made.facts, made.principal = db.read_now(_bound, row, claim.run_id)
        published = db.read_now(_content, row)
        made.content = Content.of({**published, **content})
        return made

    async def call(self, run: RunSession, tool: str, /, **arguments: Any) -> Result | Suspended:
        """What one call comes to, through the same steps as in a batch."""
        if not run.tools:
            run.tools = await offering.tools_of(run)
        proposed = self.proposed(run, tool, **arguments)
        prepared = tools.prepare(run, proposed)
        refused = await tools.permit(run, prepared)
        if refused is not None:
            result = await tools.after(run, prepared, refused)
        else:
            await tools.before(run, prepared)
            result = await tools.after(run, prepared, await tools.execute(run, prepared))
        await writing.flush(run)
        return result

    def proposed(self, run: RunSession, tool: str, /, **arguments: Any) -> ProposedCall:
        """A call as the model wrote it."""
        made = ids.ulid()
        return ProposedCall(
            id=made,
            provider_id=made,
            tool=tool,
            arguments=json.dumps(arguments),
            ordinal=len(self.calls()),
            turn=run.turn,
        )

    def calls(self) -> list[ToolCall]:
        """The record of every call, in order."""
        return self._all(select(ToolCall).order_by(col(ToolCall.turn), col(ToolCall.ordinal)))

    def sent(self, code: str = "expenses") -> list[Message]:
        """What an agent said, in order."""
        query = select(Message).where(Message.sender_aid == self.aid(code))
        return self._all(query.order_by(col(Message.log_seq)))

    def sent_rows(self) -> list[SentMessage]:
        """The keys of what runs said, in order."""
        return self._all(select(SentMessage).order_by(col(SentMessage.at)))


def _enable(work: Work, user: User, agent_id: str, scopes: tuple[Scope, ...]) -> Delegation:
    live = delegations.live(work.session, user.tenant_id, user.id, agent_id)
    if live is not None:
        live.scopes = sorted(scopes)
        work.session.add(live)
        return live
    agent = agents.one(work.session, user.tenant_id, agent_id)
    return delegations.make_for(work, user, agent, scopes)


def _content(session: Session, row: Run) -> dict[str, Any]:
    agent = agents.one(session, row.tenant_id, row.agent_id)
    release = agents.latest_release(session, agent)
    return dict(release.content) if release else {}


def _bound(session: Session, row: Run, run_id: str) -> tuple[Facts, Any]:
    agent = agents.one(session, row.tenant_id, row.agent_id)
    own = queries.of_owner(session, row.tenant_id, agent.id)
    assert own is not None
    around = session.get(Conversation, (row.tenant_id, row.conversation_id or ""))
    pair = {around.first_aid, around.second_aid} if around and not around.group_id else set()
    others = sorted(str(aid) for aid in pair - {own.aid})
    person = session.get(User, (row.tenant_id, row.user_id)) if row.user_id else None
    facts = replace(
        bare.FACTS,
        tenant_id=row.tenant_id,
        run_id=run_id,
        root_run_id=row.root_run_id,
        kind=RunKind(row.kind),
        agent_id=agent.id,
        agent_aid=own.aid,
        agent_name=agent.name,
        release_id=row.release_id or "",
        lane_id=row.lane_id,
        conversation_id=row.conversation_id,
        group_id=around.group_id if around else None,
        other_aid=others[0] if others else None,
        discussion="",
        user_id=row.user_id,
        watcher_id=row.user_id,
        task_id=row.task_id,
        parent_run_id=row.parent_run_id,
        depth=row.depth,
        locale=(person.locale if person else None) or "en",
    )
    return facts, authority.principal_of(session, row)
