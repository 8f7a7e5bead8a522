"""Sessions of the older revision: whose they are, how many, and when their streams close."""

import asyncio
import json
from typing import Any

import httpx2
import pytest
from mcp.shared import jsonrpc_dispatcher

from app.identity import delegations, users
from app.kernel import db, settings, streams
from app.mcp import approving, briefing, holding, server, sessions
from tests.mcp import connecting
from tests.mcp.connecting import OLD, Mcp
from tests.packs.expenses.desk import Desk

PATIENCE_S = 20
HELLO = {
    "protocolVersion": OLD,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


async def send(
    mcp: Mcp, token: str, method: str, params: Any = None, session: str = "", id: int | None = 1
) -> httpx2.Response:
    """One message of the older revision."""
    sent = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    named = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": OLD} if session else {}
    body = json.dumps(sent if id is None else {**sent, "id": id}).encode()
    async with mcp.http(token, **named) as http:
        return await http.post(mcp.url, content=body, headers={"Content-Type": "application/json"})


async def begun(mcp: Mcp, token: str, **capabilities: Any) -> str:
    """The id of a new session."""
    answer = await send(mcp, token, "initialize", {**HELLO, "capabilities": capabilities})
    assert answer.status_code == 200
    session: str = answer.headers["mcp-session-id"]
    await send(mcp, token, "notifications/initialized", session=session, id=None)
    return session


@pytest.mark.requirement("SEC-66", "SEC-P2")
async def test_a_session_is_of_who_began_it_and_unknown_to_everybody_else(mcp: Mcp) -> None:
    acme = mcp.world.acme
    token = connecting.token(acme, acme["alice"])
    session = await begun(mcp, token)

    own = await send(mcp, connecting.minted(acme, acme["alice"]), "tools/list", session=session)
    user = await send(mcp, connecting.token(acme, acme["bob"]), "tools/list", session=session)
    agent = await send(
        mcp, connecting.token(acme, acme["alice"], agent="stock"), "tools/list", session=session
    )
    nobody = await send(mcp, token, "tools/list", session="0" * 32)

    assert own.status_code == 200, "a refreshed token goes on"
    assert {each.status_code for each in (user, agent, nobody)} == {404}
    assert user.json() == agent.json() == nobody.json()
    assert "Session not found" in user.text


@pytest.mark.requirement("SEC-66")
async def test_sessions_are_bounded_in_number_and_time(
    mcp: Mcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (server.SESSIONS, server.IDLE_S) == (2_000, 600)
    monkeypatch.setattr(server, "SESSIONS", 2)
    acme = mcp.world.acme
    token = connecting.token(acme, acme["alice"])
    kept = [await begun(mcp, token) for _ in range(2)]

    full = await send(mcp, token, "initialize", HELLO)
    async with mcp.http(token, **{"Mcp-Session-Id": kept[0]}) as http:
        ended = await http.delete(mcp.url)
    again = await send(mcp, token, "initialize", HELLO)
    gone = await send(mcp, token, "tools/list", session=kept[0])

    statuses = [each.status_code for each in (full, ended, again, gone)]
    assert statuses == [503, 200, 200, 404]


@pytest.mark.requirement("SEC-50", "SEC-66")
async def test_an_agent_has_so_many_sessions_and_the_oldest_idle_one_makes_room(
    mcp: Mcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sessions.MOST == 20
    monkeypatch.setattr(sessions, "MOST", 3)
    acme = mcp.world.acme
    token = connecting.token(acme, acme["alice"])
    others = connecting.token(acme, acme["bob"])
    theirs = await begun(mcp, others)
    first, second, third = [await begun(mcp, token) for _ in range(3)]
    await send(mcp, token, "tools/list", session=first)

    more = [await begun(mcp, connecting.minted(acme, acme["alice"])) for _ in range(2)]
    answers = [
        await send(mcp, token, "tools/list", session=each) for each in (second, third, first, *more)
    ]
    other = await send(mcp, others, "tools/list", session=theirs)

    assert [each.status_code for each in answers] == [404, 404, 200, 200, 200]
    assert other.status_code == 200


@pytest.mark.requirement("SEC-50", "SEC-66")
async def test_a_session_at_work_makes_no_room(
    served: Mcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST", 2)
    acme = served.world.acme
    token = connecting.token(acme, acme["alice"])
    kept, first = await begun(served, token), await begun(served, token)
    headers = {"Accept": "text/event-stream"}

    async with (
        served.http(token, **{"Mcp-Session-Id": kept}) as http,
        http.stream("GET", served.url, headers=headers),
    ):
        second = await begun(served, token)
        gone = await send(served, token, "tools/list", session=first)
        async with (
            served.http(token, **{"Mcp-Session-Id": second}) as another,
            another.stream("GET", served.url, headers=headers),
        ):
            full = await send(served, token, "initialize", HELLO)
            stateless = await served.post(token, "tools/list")
            alive = await send(served, token, "tools/list", session=kept)

    statuses = [each.status_code for each in (gone, full, stateless, alive)]
    assert statuses == [404, 429, 200, 200]
    assert full.json()["reason"] == "too_many_sessions"
    assert int(full.headers["retry-after"]) > 0


@pytest.mark.requirement("SEC-66")
async def test_a_session_that_rests_too_long_is_over_here_as_well(
    mcp: Mcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "IDLE_S", 0.05)
    acme, over = mcp.world.acme, asyncio.Queue[str]()
    monkeypatch.setattr(approving.questions, "end_session", over.put_nowait)
    token = connecting.token(acme, acme["alice"])
    answer = await send(mcp, token, "initialize", HELLO)

    async with asyncio.timeout(PATIENCE_S):
        assert await over.get() == answer.headers["mcp-session-id"]


@pytest.mark.requirement("SEC-31", "SEC-50", "SEC-66")
@pytest.mark.parametrize("why", ["disabled", "revoked", "role"])
async def test_an_open_stream_closes_when_its_rights_end(served: Mcp, why: str) -> None:
    mcp, acme = served, served.world.acme
    token = connecting.token(acme, acme["alice"])
    session = await begun(mcp, token)
    named = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": OLD}

    async with (
        mcp.http(token, **named) as http,
        http.stream("GET", mcp.url, headers={"Accept": "text/event-stream"}) as stream,
    ):
        assert stream.status_code == 200
        assert len(streams.of_process().of_kind(acme.id, "mcp")) == 1
        ends(mcp, why)
        async with asyncio.timeout(PATIENCE_S):
            async for _ in stream.aiter_bytes():
                pass

    assert streams.of_process().of_kind(acme.id, "mcp") == []
    assert (await send(mcp, token, "tools/list", session=session)).status_code == 401


def ends(mcp: Mcp, why: str) -> None:
    acme = mcp.world.acme
    alice = acme["alice"]
    if why == "role":
        mcp.world.give(alice, "manager")
    else:
        db.transact_now(_end, mcp, why)


def _end(work: db.Work, mcp: Mcp, why: str) -> None:
    alice, acme = mcp.world.acme["alice"], mcp.world.acme
    if why == "disabled":
        user = users.one(work.session, acme.id, alice.id)
        users.disable(work, mcp.world.acme_admin, user)
        return
    live = delegations.live(work.session, acme.id, alice.id, acme.agents["expenses"].id)
    assert live is not None
    delegations.revoke(work, mcp.world.acme_admin, live)


@pytest.mark.requirement("SEC-50")
async def test_a_user_has_so_many_streams_and_no_more(served: Mcp) -> None:
    acme = served.world.acme
    token = connecting.token(acme, acme["alice"])
    most = settings.current().streams_per_user
    held = [
        streams.of_process().open(streams.Holder(acme.id, acme["alice"].id), "test", most)
        for _ in range(most)
    ]
    session = await begun(served, token)

    async with served.http(token, **{"Mcp-Session-Id": session}) as http:
        refused = await http.get(served.url)

    assert (refused.status_code, refused.json()["reason"]) == (429, "too_many_streams")
    for each in held:
        streams.of_process().close(each)


class Question:
    """A call of an L2 command by a client with forms: what arrives, and the user's answer."""

    def __init__(self, mcp: Mcp, token: str, session: str, report: str, id: int = 7) -> None:
        arguments = {"targetRecordId": report, "operationType": "UPDATE"}
        params = {"name": "expense.report.submit", "arguments": arguments}
        sent = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        self._mcp, self._token, self._session = mcp, token, session
        self._body = json.dumps(sent).encode()
        self.asked: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def call(self) -> list[dict[str, Any]]:
        """All messages of the answer."""
        heard: list[dict[str, Any]] = []
        named = {"Mcp-Session-Id": self._session, "Content-Type": "application/json"}
        async with (
            self._mcp.http(self._token, **named) as http,
            http.stream("POST", self._mcp.url, content=self._body) as answer,
        ):
            async for line in answer.aiter_lines():
                if not line.startswith("data: "):
                    continue
                heard.append(json.loads(line.removeprefix("data: ")))
                if heard[-1].get("method") == "elicitation/create":
                    self.asked.set_result(heard[-1]["id"])
        return heard

    async def say_yes(self, token: str) -> int:
        """The user's yes, in the name of whoever `token` is; the status of the answer."""
        said = {"action": "accept", "content": {"proceed": True}}
        sent = {"jsonrpc": "2.0", "id": self.asked.result(), "result": said}
        named = {"Mcp-Session-Id": self._session, "Content-Type": "application/json"}
        async with self._mcp.http(token, **named) as http:
            answer = await http.post(self._mcp.url, content=json.dumps(sent).encode())
        return answer.status_code


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the server stops, the SDK tries for so long to tell a client that is gone."""
    monkeypatch.setattr(jsonrpc_dispatcher, "_ABANDON_WRITE_TIMEOUT", 0.05)


@pytest.mark.requirement("SEC-31", "SEC-64")
@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("why", ["disabled", "revoked", "family"])
async def test_a_question_to_a_user_ends_with_the_rights_of_who_asked(
    served: Mcp, desk: Desk, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(holding, "LOOK_S", 0.05)
    acme = served.world.acme
    report = await desk.draft("alice", 2_000)
    token, family = connecting.granted(acme, acme["alice"])
    question = Question(served, token, await begun(served, token, elicitation={}), report)

    async with asyncio.timeout(PATIENCE_S):
        calling = asyncio.create_task(question.call())
        await question.asked
        if why == "family":
            connecting.end_family(acme["alice"], family)
        else:
            ends(served, why)
        heard = await calling

    assert [each.get("method") for each in heard] == ["elicitation/create"], "never answered"
    assert (await desk.report(report))["state"] == "draft"


@pytest.mark.requirement("SEC-25", "SEC-31", "SEC-64")
@pytest.mark.usefixtures("_hasty")
async def test_a_yes_runs_nothing_for_a_token_that_ended_meanwhile(
    served: Mcp, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, "LOOK_S", float(PATIENCE_S))  # the call itself has to look
    acme = served.world.acme
    report = await desk.draft("alice", 2_000)
    token, family = connecting.granted(acme, acme["alice"])
    question = Question(served, token, await begun(served, token, elicitation={}), report)

    async with asyncio.timeout(PATIENCE_S):
        calling = asyncio.create_task(question.call())
        await question.asked
        connecting.end_family(acme["alice"], family)
        statuses = [await question.say_yes(token)]
        statuses.append(await question.say_yes(connecting.minted(acme, acme["alice"])))
        heard = await calling

    assert statuses == [401, 202]
    result = heard[-1]["result"]
    assert (result["isError"], result["structuredContent"]["reason"]) == (True, "invalid_token")
    assert (await desk.report(report))["state"] == "draft"


@pytest.mark.requirement("SEC-50", "SEC-64")
@pytest.mark.usefixtures("_hasty")
async def test_few_questions_of_an_agent_wait_at_once(
    served: Mcp, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert briefing.QUESTIONS == 4
    monkeypatch.setattr(briefing, "QUESTIONS", 1)
    acme = served.world.acme
    reports = [await desk.draft("alice", 2_000) for _ in range(2)]
    token = connecting.token(acme, acme["alice"])
    session = await begun(served, token, elicitation={})
    first = Question(served, token, session, reports[0])

    async with asyncio.timeout(PATIENCE_S):
        calling = asyncio.create_task(first.call())
        await first.asked
        [refused] = await Question(served, token, session, reports[1], id=8).call()
        assert await first.say_yes(token) == 202
        done = (await calling)[-1]["result"]
        again = Question(served, token, session, reports[1], id=9)
        calling = asyncio.create_task(again.call())
        await again.asked
        assert await again.say_yes(token) == 202
        later = (await calling)[-1]["result"]

    told = refused["result"]["structuredContent"]
    assert (told["reason"], told["advice"]) == ("too_many_questions", "retry_later")
    for each in (done, later):
        assert each["structuredContent"]["outcome"] == "done"
