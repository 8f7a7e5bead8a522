"""The door's own answers held against the SDK's: one request, sent both ways, is answered alike."""

import base64
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from sqlmodel import Session, func, select

from app.audit.models import AuditEntry
from app.identity.models import Delegation, User
from app.identity.principal import Scope
from app.kernel import db, rates
from app.kernel.db import Work
from app.kernel.rates import DEFAULTS, Rates
from app.mcp import shapes
from app.mcp.message import APPROVAL_META, KEY_META
from app.mcp.shapes import Frame
from tests.clock import Clock
from tests.mcp import connecting
from tests.mcp.connecting import ACCEPT, NEW, OLD, Mcp
from tests.mcp.test_sessions import begun
from tests.packs.expenses.desk import Desk

CREATE, READ = "expense.report.create", "expense.report.list"
TRIP = {"title": "October, Zürich \u2028 \u0085 北京", "period": "2026-10"}
PROTOCOL, CLIENT, CAPABILITIES, LEVEL = (
    f"io.modelcontextprotocol/{name}"
    for name in ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel")
)
JSON, ORIGIN = "application/json", connecting.origin()
UNKNOWN = "01JDXP5Y8GZ0000000000000AB"
OWN = {"content-length", "x-request-id", "mcp-session-id"}  # headers whose value is each answer's
NUMBERED = {"auditSeq", "number", "requestState"}
EXACT = 2**53 - 1
EXAMPLES = 150

IDS: tuple[Any, ...] = (
    *(0, -1, 7, EXACT, -EXACT, EXACT + 1, 10**30, 1.0, 1.5, 1e30, None, True, [], {}),
    *("", " ", "1", "a" * 5_000, '北京 \u2028 \\ " </script>', "\x7f"),
)
TOKENS: tuple[Any, ...] = (
    *(0, -1, EXACT, 1.0, 1.5, "", "x", "p" * 9_000, "北京", None, True, [], {}),
)
KEYS: tuple[Any, ...] = (None, "", "k-@way", "a b", "a\n", "k" * 255, "k" * 256, "ключ", 7, [], {})
ARGUMENTS: tuple[Any, ...] = (
    *({}, None, [], "x", 7, {"unknown": 1}, {"": None}, {"nested": {"a": [1, 2.5, None, True]}}),
    *({"limit": 1}, {"limit": 1.0}, {"limit": "1"}, {"limit": -1}, {"a": "x" * 100_000}, TRIP),
)
NAMES: tuple[Any, ...] = (
    *(CREATE, "nothing.of.the_kind", "", " ", "x", "a-b", "a/b", "a..b", "报告", "x" * 3_000),
    *(None, 7, True, [], {}, READ.upper(), f" {READ}", f"{READ} "),
)
CURSORS: tuple[Any, ...] = ("", "x", "x.y", "北京", None, 7, [], "c" * 20_000)
METHODS: tuple[Any, ...] = ("tools/CALL", "ping", "server/discover", "resources/list", "", None, 7)
MORE: tuple[dict[str, Any], ...] = (
    {"requestState": "x"},
    {"requestState": None},
    {"requestState": 7},
    {"inputResponses": {}},
    {"inputResponses": None},
    {"task": {}},
    {"x": None},
)
CLIENTS: tuple[Any, ...] = (
    *(None, "x", {"name": "x"}, {"name": "x", "version": 1}),
    {"name": "x", "version": "1", "more": [1]},
)
PARAMS: tuple[Any, ...] = (None, [], "x", {})
METAS: tuple[Any, ...] = (None, {}, [], "x", 7, {PROTOCOL: NEW}, {CAPABILITIES: {}})
TOLD: tuple[dict[str, Any], ...] = (
    *({PROTOCOL: version} for version in (OLD, None, 7)),
    *({CLIENT: client} for client in CLIENTS),
    *({CAPABILITIES: able} for able in (None, 7)),
    {CAPABILITIES: {"elicitation": 7}},
    {CAPABILITIES: {"elicitation": {}}},
    {CAPABILITIES: {"elicitation": {"form": {}, "url": {}}}},
    {CAPABILITIES: {"sampling": {}, "roots": {"listChanged": True}, "experimental": {"x": {}}}},
    *({LEVEL: level} for level in ("debug", "loud", None)),
    {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
    {"x": None},
    {"x": {"deep": [[[[1]]]]}},
    {"x": "y" * 9_000},
    *({APPROVAL_META: approval} for approval in (None, UNKNOWN, "x")),
)
HEADERS: tuple[Mapping[str, str | None], ...] = (
    *({"accept": accept} for accept in (None, "", "*/*", JSON, "text/event-stream", "text/html")),
    {"accept": "text/event-stream, application/json;q=0.1"},
    {"accept": f"{JSON};q=0, text/event-stream"},
    *({"content-type": sent} for sent in (None, "", "text/plain", "application/jsonl")),
    {"content-type": f"{JSON}; charset=utf-8"},
    {"content-type": f"{JSON}; charset=utf-16"},
    {"content-type": JSON.upper()},
    *({"mcp-protocol-version": sent} for sent in (None, "", OLD, "2025-06-18", "1999-01-01", "x")),
    *({"mcp-method": sent} for sent in (None, "", "tools/call", "tools/list", "TOOLS/CALL")),
    *({"mcp-name": sent} for sent in (None, "", READ, CREATE, READ.upper(), f" {READ} ")),
    {"mcp-name": f"=?base64?{base64.b64encode(READ.encode()).decode()}?="},
    {"mcp-name": "=?base64?!?="},
    *({"mcp-session-id": sent} for sent in ("0" * 32, "")),
    {"mcp-param-limit": "1"},
    {"last-event-id": "1"},
    *({"origin": sent} for sent in (ORIGIN, "null", "http://evil.example")),
    {"host": "evil.example"},
    {"accept-language": "zh-CN"},
    {"content-encoding": "gzip"},
)
DOUBLED = ("accept", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name")
RAW = (b"", b" ", b"null", b"[]", b"{}", b'"x"', b"\xef\xbb\xbf{}", b"\xff\xfe{}", b"{" * 1_000)
AROUND = (b"  %b\r\n\t", b"%b%b", b"[%b]", b"[%b,%b]", b"[" * 70 + b"%b" + b"]" * 70)
WRITTEN_IDS = (
    *(b"-0", b"1e2", b"01", b"NaN", b'1,"id":2', b'"\\ud83d\\ude00"', b'"\\ud800"', b'"\\u0000"'),
    *(b'"\xe9"', b'"' + b"x" * (1 << 20) + b'"'),
)
WORKING: tuple[dict[str, Any], ...] = (
    {},
    {"elicitation": {}},
    {"elicitation": {"form": {}}},
    {"elicitation": {"url": {}}},
)


@dataclass(frozen=True)
class Ask:
    """One POST: a message, its headers, and what replaces its bytes where it is no message."""

    message: dict[str, Any]
    headers: tuple[tuple[str, str], ...]
    raw: bytes | None = None

    @property
    def body(self) -> bytes:
        """What is sent."""
        return json.dumps(self.message).encode() if self.raw is None else self.raw


Change = Callable[[Ask], Ask]


class Ways:
    """Sends requests the SDK's way and, as far as the door lets them, the short way."""

    def __init__(self, mcp: Mcp, http: httpx2.AsyncClient, token: str) -> None:
        self.mcp, self.http, self.token = mcp, http, token
        self.frames: list[Frame | None] = []  # that were found, request by request
        self.short = 0  # requests that went the short way
        self.common: dict[bytes, Frame] = {}  # frames of plain requests
        self.left = 0  # entries in the trail, by the last request

    async def post(self, ask: Ask) -> httpx2.Response:
        """The answer to one request as it is."""
        sent = [("authorization", f"Bearer {self.token}"), *ask.headers]
        headers = [(name.encode(), text.encode()) for name, text in sent]
        return await self.http.post(self.mcp.url, content=ask.body, headers=headers)

    async def long(self, ask: Ask) -> httpx2.Response:
        """What the SDK answers."""
        shapes.frames.forget()
        return await self._counted(_keyed(ask, "long"))

    async def either(self, ask: Ask) -> httpx2.Response:
        """What the door answers once it knows the shape, if there is one.

        It learns it from a request that only reads: whatever else is asked has to fit that frame.
        What is common it knows as well: no odd request may pass for one of those.
        """
        shapes.frames.forget()
        shapes.frames._known.update(self.common)
        if (mate := _mate(ask)) is not None:
            await self.post(mate)
        self.frames.clear()
        answer = await self._counted(_keyed(ask, "short"))
        self.short += any(self.frames)
        return answer

    async def check(self, ask: Ask) -> httpx2.Response:
        """Send it both ways: the answers are alike, and so much stands in the trail."""
        long, left = await self.long(ask), self.left
        short = await self.either(ask)
        assert self.left == left, ask
        assert short.status_code == long.status_code, (ask, long.text, short.text)
        assert _headers(short) == _headers(long), ask
        assert _settled(short) == _settled(long), ask
        return short

    async def _counted(self, ask: Ask) -> httpx2.Response:
        before = db.read_now(_entries)
        answer = await self.post(ask)
        self.left = db.read_now(_entries) - before
        return answer


@pytest.fixture
async def ways(clock: Clock, mcp: Mcp, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ways]:
    """Both ways of an agent that may do everything for alice; time stands still."""
    acme = mcp.world.acme
    limited(monkeypatch, call="100000/minute", write="100000/minute", session="100000/minute")
    find = shapes.frames.of

    def noted(shape: bytes | None) -> Frame | None:
        made.frames.append(find(shape))
        return made.frames[-1]

    monkeypatch.setattr(shapes.frames, "of", noted)
    async with mcp.http() as http:
        http.headers.clear()
        made = Ways(mcp, http, connecting.token(acme, acme["alice"]))
        await made.post(call())
        await made.post(listed())
        made.common |= shapes.frames._known
        assert len(made.common) == 2
        yield made


def limited(monkeypatch: pytest.MonkeyPatch, **rules: str) -> None:
    """Count from nought, with other rates."""
    counts = Rates({**DEFAULTS, **rules})
    monkeypatch.setattr(rates, "of_process", lambda: counts)


def call(name: Any = READ, **given: Any) -> Ask:
    """A call of the newer revision."""
    asked = connecting.enveloped({"name": name, "arguments": {}, **given})
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
    return Ask(message, (*_head("tools/call"), ("mcp-name", name)))


def listed(**given: Any) -> Ask:
    """A list of the newer revision."""
    asked = connecting.enveloped(given)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": asked}
    return Ask(message, _head("tools/list"))


def changes() -> Iterator[Change]:
    """What can be another in a request."""
    yield from (changed(id=id) for id in IDS)
    yield from (told(progressToken=token) for token in TOKENS)
    yield from (told(**{KEY_META: key}) for key in KEYS)
    yield from (told(**more) for more in TOLD)
    yield from (asked(**more) for more in MORE)
    yield from (asked(_meta=other) for other in METAS)
    yield from (asked(name=name) for name in NAMES)
    yield from (asked(arguments=arguments) for arguments in ARGUMENTS)
    yield from (asked(cursor=cursor) for cursor in CURSORS)
    yield from (asked("_meta"), asked("name"), asked("arguments"))
    yield from (changed(params=other) for other in PARAMS)
    yield from (changed(jsonrpc=version) for version in ("1.0", None, 2, 2.0))
    yield from (changed(method=method) for method in METHODS)
    yield from (changed(x=1), changed(result={}), changed(error={}))
    yield from (changed(name) for name in ("jsonrpc", "id", "method", "params"))
    yield from (headed(headers) for headers in HEADERS)
    yield from (doubled(name) for name in DOUBLED)


def bodies() -> Iterator[Change]:
    """What Python would not write."""
    yield from (replaced(raw) for raw in RAW)
    yield from (inside(form) for form in AROUND)
    yield from (respelled(b'"id": 1', b'"id": ' + id) for id in WRITTEN_IDS)
    yield respelled(b'"params": {', b'"params": {"_meta": {}, ')
    yield written(lambda body: body[:-1])
    yield written(lambda body: body.decode().encode("utf-16"))


def replaced(raw: bytes) -> Change:
    """Something else."""
    return written(lambda _: raw)


def inside(form: bytes) -> Change:
    """The message, with more around it."""
    return written(lambda body: form.replace(b"%b", body))


def respelled(text: bytes, other: bytes) -> Change:
    """A part in other words."""
    return written(lambda body: body.replace(text, other))


def written(write: Callable[[bytes], bytes]) -> Change:
    """Other bytes."""
    return lambda ask: replace(ask, raw=write(ask.body))


def changed(*without: str, **members: Any) -> Change:
    """Other members of the message."""
    return lambda ask: replace(ask, message=_other(ask.message, without, members))


def asked(*without: str, **given: Any) -> Change:
    """Other parameters; a name is said in the header as well."""

    def change(ask: Ask) -> Ask:
        params = ask.message.get("params")
        if not isinstance(params, dict):
            return ask
        made = changed(params=_other(params, without, given))(ask)
        if not isinstance(given.get("name"), str) or "mcp-name" not in dict(ask.headers):
            return made
        return headed({"mcp-name": given["name"]})(made)

    return change


def told(**more: Any) -> Change:
    """More in `_meta`."""

    def change(ask: Ask) -> Ask:
        params = ask.message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        return asked(_meta={**meta, **more})(ask) if isinstance(meta, dict) else ask

    return change


def headed(headers: Mapping[str, str | None]) -> Change:
    """Other headers; None leaves one out."""

    def change(ask: Ask) -> Ask:
        kept = [pair for pair in ask.headers if pair[0] not in headers]
        more = [(name, text) for name, text in headers.items() if text is not None]
        return replace(ask, headers=(*kept, *more))

    return change


def doubled(name: str) -> Change:
    """One header twice."""

    def change(ask: Ask) -> Ask:
        return replace(
            ask, headers=(*ask.headers, *(pair for pair in ask.headers if pair[0] == name))
        )

    return change


@pytest.mark.requirement("SEC-58", "SEC-60", "SEC-62")
async def test_a_request_is_answered_alike_whichever_way_it_goes(ways: Ways) -> None:
    """One thing is another at a time."""
    statuses = set()
    for plain in (call(), listed()):
        for change in (changed(), *changes(), *bodies()):
            statuses.add((await ways.check(change(plain))).status_code)

    assert statuses >= {200, 202, 400, 403, 406, 413, 421}
    assert ways.short > 100, "many went the short way"


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    plain=st.deferred(lambda: st.sampled_from([call(), call(CREATE, arguments=TRIP), listed()])),
    some=st.deferred(lambda: st.lists(st.sampled_from([*changes()]), min_size=2, max_size=5)),
    body=st.deferred(lambda: st.none() | st.sampled_from([*bodies()])),
)
@pytest.mark.requirement("SEC-58", "SEC-60", "SEC-62")
async def test_a_request_that_is_odd_in_many_ways_is_answered_alike(
    ways: Ways, plain: Ask, some: list[Change], body: Change | None
) -> None:
    ask = plain
    for change in some:
        ask = change(ask)

    await ways.check(body(ask) if body is not None else ask)


@pytest.mark.requirement("SEC-58")
async def test_the_older_revision_finds_no_frame_of_the_newer_one(ways: Ways) -> None:
    session = await begun(ways.mcp, ways.token)
    of_old = headed({"mcp-protocol-version": OLD, "mcp-session-id": session})
    for ask in (call(), call(CREATE, arguments=TRIP), listed()):
        plain = asked("_meta")(ask)
        for old in (of_old(ask), of_old(plain), headed({"mcp-session-id": session})(ask)):
            alone = await ways.long(old)
            shapes.frames.forget()
            await ways.post(call())
            await ways.post(listed())
            after = await ways.post(_keyed(old, "short"))
            assert after.status_code == alone.status_code
            assert _headers(after) == _headers(alone)
            assert _settled(after) == _settled(alone)


@pytest.mark.requirement("SEC-60", "SEC-62")
@pytest.mark.parametrize(("login", "language"), [("alice", "en"), ("fiona", "zh-CN")])
async def test_every_command_answers_alike_in_every_language(
    ways: Ways, login: str, language: str
) -> None:
    acme = ways.mcp.world.acme
    db.transact_now(_speak, acme[login], language)
    ways.token = connecting.token(acme, acme[login])
    tools = (await ways.check(listed())).json()["result"]["tools"]

    for tool in tools:
        example = tool["_meta"]["assent/exampleInput"]
        for capabilities in WORKING[::2]:
            ask = call(tool["name"], arguments=example)
            await ways.check(told(**{CAPABILITIES: capabilities})(ask))

    assert len(tools) > 10
    assert ways.short > len(tools)


@pytest.mark.requirement("SEC-62", "SEC-64")
@pytest.mark.parametrize("capabilities", WORKING)
async def test_a_day_of_work_is_answered_alike(
    ways: Ways, desk: Desk, capabilities: dict[str, Any]
) -> None:
    """Each way has reports of its own; amounts, dates, changes and repeats are told alike."""
    days = [
        await _day(send, told(**{CAPABILITIES: capabilities})) for send in (ways.long, ways.either)
    ]

    assert len(days[0]) == len(days[1])
    for long, short in zip(*days, strict=True):
        assert short == long
    assert ways.short > 10


@pytest.mark.requirement("SEC-58", "SEC-51")
async def test_what_may_not_be_is_told_alike(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    acme = ways.mcp.world.acme
    create = call(CREATE, arguments=TRIP)
    for scopes in (*((each,) for each in Scope), connecting.EVERYTHING):
        ways.token = connecting.token(acme, acme["bob"], scopes)
        for ask in (listed(), listed(cursor="x"), call(), create, call("nothing.of.the_kind")):
            await ways.check(ask)

    for ask, rule in ((call(), "call"), (listed(), "session"), (create, "write"), (create, "call")):
        answers = []
        for send in (ways.long, ways.either):
            limited(monkeypatch)
            await send(ask)
            limited(monkeypatch, **{rule: "1/minute"})
            shapes.frames.forget() if send == ways.long else None
            answers.append([await ways.post(_keyed(ask, str(number))) for number in range(3)])
            db.transact_now(_go_on, acme["bob"])
        for long, short in zip(*answers, strict=True):
            assert (short.status_code, _headers(short)) == (long.status_code, _headers(long))
            assert _settled(short) == _settled(long)


async def _day(send: Callable[[Ask], Any], able: Change) -> list[Any]:
    answers = []

    async def run(code: str, key: str = "", **arguments: Any) -> Any:
        ask = able(call(code, arguments=arguments))
        answer = await send(told(**{KEY_META: f"{key}-@way"})(ask) if key else ask)
        answers.append([answer.status_code, _headers(answer), _settled(answer)])
        return answer.json().get("result", {}).get("structuredContent", {})

    made = await run(CREATE, "trip", **TRIP)
    await run(CREATE, "trip", **TRIP)
    await run(CREATE, "trip", **{**TRIP, "title": "Another"})
    report = {"targetRecordId": made["record"]["id"]}
    change = {**report, "operationType": "UPDATE"}
    line = {"spentOn": "2026-10-02", "category": "meals", "description": "北京 \u2028", **change}
    await run("expense.report.get", **report)
    await run("expense.report.update", **change, title="October")
    await run("expense.report.update", **change, title="October")
    await run("expense.report.update", **change, title="")
    await run("expense.line.add", **line, amountMinor=4_200)
    await run("expense.line.add", **line, amountMinor=4_200.0)
    await run("expense.line.add", **line, amountMinor=1e3)
    await run("expense.line.add", **line, amountMinor=EXACT)
    await run("expense.line.add", **line, amountMinor=100, receiptNumber="R-1", receiptIssuer="餐")
    await run("expense.report.get", **report)
    await run("expense.report.approve", **change)
    await run("expense.report.submit", **change)
    await run("expense.report.remind", **change, message="Please have a look")
    await run("expense.report.recall", **change)
    await run("expense.report.discard", **report, operationType="DELETE")
    await run("expense.report.get", **report)
    await run("expense.budget.get", period="2026-10")
    return answers


def _other(
    members: Mapping[str, Any], without: tuple[str, ...], more: Mapping[str, Any]
) -> dict[str, Any]:
    return {name: part for name, part in {**members, **more}.items() if name not in without}


def _head(method: str) -> tuple[tuple[str, str], ...]:
    return (
        ("host", ORIGIN.partition("//")[2]),
        ("accept", ACCEPT),
        ("content-type", JSON),
        ("mcp-protocol-version", NEW),
        ("mcp-method", method),
    )


def _keyed(ask: Ask, way: str) -> Ask:
    """With a key of its own for each way, where it has one: else the second is a repeat."""
    return replace(ask, raw=ask.body.replace(b"@way", way.encode()))


def _mate(ask: Ask) -> Ask | None:
    """A request of the same shape, as far as that goes, that the SDK answers well."""
    params = ask.message.get("params")
    if not isinstance(params, dict):
        return None
    kept = {"_meta": params["_meta"]} if "_meta" in params else {}
    if ask.message.get("method") == "tools/call":
        kept |= {"name": READ, "arguments": {}}
    headers = tuple(
        (name, READ if name == "mcp-name" and text == params.get("name") else text)
        for name, text in ask.headers
    )
    made = {"jsonrpc": "2.0", "id": "mate", "method": ask.message.get("method"), "params": kept}
    return _keyed(Ask(made, headers), "mate")


def _headers(answer: httpx2.Response) -> Mapping[str, str]:
    return {name: "" if name in OWN else text for name, text in answer.headers.items()}


def _settled(answer: httpx2.Response) -> Any:
    """A body with nothing of its own but what was asked for."""
    lines = (
        answer.text.splitlines() if "event-stream" in answer.headers.get("content-type", "") else []
    )
    try:
        said = json.loads(lines[1].removeprefix("data: ") if lines else answer.text)
    except ValueError:
        return answer.content
    result = said.get("result")
    if isinstance(result, dict) and "structuredContent" in result and not result.get("isError"):
        text = result["content"][0]["text"]
        assert json.loads(text) == result["structuredContent"]
        content = [{**result["content"][0], "text": ""}, *result["content"][1:]]
        said = {**said, "result": {**result, "content": content}}
    names: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"#{len(names)}")

    text = re.sub(r"\b[0-9A-HJKMNP-TV-Z]{26}\b|EXP-\d+", named, json.dumps(_masked(said)))
    return [json.loads(text), type(said.get("id"))]


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: sorted(part) if name == "timings" else 0 if name in NUMBERED else _masked(part)
            for name, part in value.items()
        }
    return [_masked(part) for part in value] if isinstance(value, list) else value


def _entries(session: Session) -> int:
    return session.exec(select(func.count()).select_from(AuditEntry)).one()


def _go_on(work: Work, user: User) -> None:
    for row in work.session.exec(select(Delegation).where(Delegation.user_id == user.id)):
        row.paused_at = None
        work.session.add(row)


def _speak(work: Work, user: User, language: str) -> None:
    row = work.session.get_one(User, (user.tenant_id, user.id))
    row.locale = language
    work.session.add(row)
