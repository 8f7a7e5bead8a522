"""Requests made up from the description of the API, by three callers, with ids of the others in it.

Whatever is sent: no fault of ours, an answer as it is described, and nothing of anybody else.
`ASSENT_TEST_EXAMPLES=1000` makes up that many for each operation.
"""

import asyncio
import os
import re
from collections import Counter
from typing import Any

import httpx2
import hypothesis.strategies as st
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks
from sqlmodel import Session, select
from structlog.testing import capture_logs

from app.kernel import db, rates
from app.packs.expenses.models import Report
from tests.api.others import CREATE, DISCARD, Identity, strange, three, unknown
from tests.people import World

EXAMPLES = int(os.environ.get("ASSENT_TEST_EXAMPLES", "24"))
CHECKS: list[Any] = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
KINDS = {"approvalId": "approval", "callId": "call", "seq": "seq", "cmdCode": "command"}
STREAM = "/v1/events"  # has no end; tests/api/test_events.py
ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
INPUTS: tuple[dict[str, Any], ...] = (
    {"targetRecordId": "·", "operationType": "UPDATE", "title": "Mine"},
    {"targetRecordId": "·", "operationType": "DELETE"},
    {"targetRecordId": "·", "operationType": "UPDATE"},
    {"targetRecordId": "·"},
)
CALLED = ("expense.report.update", DISCARD, "expense.report.submit", "expense.report.get", CREATE)


@pytest.mark.requirement("CMD-7", "CMD-8", "CMD-F18", "UI-26", "SEC-48", "SEC-T14")
def test_no_made_up_request_breaks_anything_or_reads_what_is_anothers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates.Rates, "hit", lambda *_: None)  # thousands a minute are meant here
    described = world.app.openapi()
    everybody = three(world)
    before = db.read_now(versions)
    seen: Counter[str] = Counter()
    with asyncio.Runner() as runner, capture_logs():  # drawing a traceback takes seconds
        for found in schemathesis.openapi.from_dict(described).get_all_operations():
            assert isinstance(found, Ok), found
            operation = found.ok()
            if operation.path != STREAM:
                attack(operation, everybody, runner, seen)

    after = db.read_now(versions)
    assert {id: after.get(id) for id in before} == before, "nobody else changed it"
    assert seen["strange"] > EXAMPLES
    assert {"200", "404", "422"} <= set(seen), seen


def attack(
    operation: Any, everybody: tuple[Identity, ...], runner: asyncio.Runner, seen: Counter[str]
) -> None:
    """Many requests to one operation."""
    cases = st.one_of(
        operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
        if operation.path_parameters or operation.query or operation.headers or operation.body
        else st.nothing(),
    )

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize="ASSENT_TEST_EXAMPLES" not in os.environ,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate),
    )
    @given(case=cases, who=st.sampled_from(everybody), data=st.data())
    def ask(case: Any, who: Identity, data: st.DataObject) -> None:
        named = feed(case, who, everybody, data)
        answer = send(runner, case, who)
        seen[str(answer.status_code)] += 1
        case.validate_response(answer, checks=CHECKS)
        faults = [each.word for each in everybody if each is not who and each.word in answer.text]
        assert faults == [], (who.name, answer.text)
        if named:
            seen["strange"] += 1
            kinds = {name: unknown(kind) for name, kind in named.items()}
            nobodys = send(runner, replaced(case, kinds), who)
            assert told(answer) == told(nobodys), (who.name, named)

    ask()


def feed(
    case: Any, who: Identity, everybody: tuple[Identity, ...], data: st.DataObject
) -> dict[str, str]:
    """Put ids into a request; the kind of each that is another's, by its place."""
    strangers: dict[str, str] = {}
    kinds = [name for name in KINDS if name in (case.path_parameters or {})]
    for name in kinds:
        whose = data.draw(st.sampled_from(("theirs", "own", "made up")))
        chosen = ids_of(KINDS[name], whose, who, everybody)
        if chosen:
            case.path_parameters[name] = data.draw(st.sampled_from(chosen))
            if whose == "theirs":
                strangers[name] = KINDS[name]
    if case.method == "POST" and not strangers and data.draw(st.booleans()):
        strangers |= feed_call(case, who, everybody, data)
    if "userId" in (case.query or {}) and data.draw(st.booleans()):
        others = [each.user.id for each in everybody if each.tenant_id != who.tenant_id]
        case.query["userId"] = data.draw(st.sampled_from(others))
        strangers["userId"] = "user"
    return strangers


def feed_call(
    case: Any, who: Identity, everybody: tuple[Identity, ...], data: st.DataObject
) -> dict[str, str]:
    """Make it a call of a real command about somebody's report."""
    case.path_parameters["cmdCode"] = data.draw(st.sampled_from(CALLED))
    whose = data.draw(st.sampled_from(("theirs", "theirs", "own")))
    target = data.draw(st.sampled_from(ids_of("report", whose, who, everybody)))
    sent = data.draw(st.sampled_from(INPUTS))
    case.headers = {**(case.headers or {}), "Idempotency-Key": f"k{data.draw(st.integers(0, 9))}"}
    if whose == "own":  # nothing of theirs may change either: a rehearsal
        case.body = {"input": {**sent, "targetRecordId": target}, "preview": True}
        return {}
    if data.draw(st.integers(0, 3)) == 0:
        approval = data.draw(st.sampled_from(ids_of("approval", "theirs", who, everybody)))
        case.body = {"approvalId": approval}
        return {"approvalId": "approval"}
    case.body = {"input": {**sent, "targetRecordId": target}}
    return {"targetRecordId": "report"}


def ids_of(kind: str, whose: str, who: Identity, everybody: tuple[Identity, ...]) -> list[str]:
    if whose == "made up":
        return []
    return strange(who, everybody, kind) if whose == "theirs" else who.things[kind]


def replaced(case: Any, ids: dict[str, str]) -> Any:
    """The same request about what nobody has."""
    for name, id in ids.items():
        if name in (case.path_parameters or {}):
            case.path_parameters[name] = id
        elif name == "userId":
            case.query[name] = id
        elif name == "approvalId":
            case.body = {"approvalId": id}
        else:
            case.body = {**case.body, "input": {**case.body["input"], name: id}}
    return case


def send(runner: asyncio.Runner, case: Any, who: Identity) -> httpx2.Response:
    """Send a request as one of the three."""
    kwargs = case.as_transport_kwargs(base_url=str(who.client.base_url).rstrip("/"))
    known = {"method", "url", "headers", "params", "data", "json", "files", "cookies"}
    made = requests.Request(**{name: kwargs[name] for name in known & set(kwargs)}).prepare()
    given = {"accept", "authorization", "cookie", "x-csrf-token", "host", "user-agent"}
    headers = {
        name: str(value)
        for name, value in made.headers.items()
        if name.lower() not in given | {"content-length"}
    }
    return runner.run(
        who.client.request(
            str(made.method), str(made.url), content=_raw(made.body), headers=headers
        )
    )


def _raw(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else bytes(body or b"")


def told(answer: httpx2.Response) -> tuple[int, str]:
    """What an answer says, without the ids in it."""
    return answer.status_code, ULID.sub("·", answer.text)


def versions(session: Session) -> dict[str, int]:
    """Every report, and how often it was changed."""
    return {report.id: report.version for report in session.exec(select(Report))}
