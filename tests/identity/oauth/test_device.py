"""Devices: a code typed elsewhere, compared, confirmed and used once (SEC-16)."""

import asyncio
import re
import threading
from typing import Any

import pytest

from app.identity.oauth.grants import DeviceGrant
from app.kernel import db
from tests.clock import Clock
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import DEVICE, OFFLINE, Flow


@pytest.fixture
def device_id(flow: Flow) -> str:
    client_id, _ = flow.register(name="TV", grant_types=[DEVICE, "refresh_token"], redirect_uris=[])
    return client_id


async def begin(flow: Flow, client_id: str, **more: Any) -> dict[str, Any]:
    form = {"client_id": client_id, "scope": OFFLINE, "resource": flow.resource("v1"), **more}
    answered = await flow.http.post("/oauth/device_authorization", data=form)
    assert answered.status_code == 200, answered.text
    found: dict[str, Any] = answered.json()
    return found


async def poll(flow: Flow, client_id: str, device_code: str, **more: Any) -> Any:
    form = {"grant_type": DEVICE, "device_code": device_code, "client_id": client_id, **more}
    return await flow.token(form)


async def decide(flow: Flow, user_code: str, decision: str | None = "allow") -> Any:
    form = {"user_code": user_code} | ({"decision": decision} if decision else {})
    return await flow.world.client(flow.alice).post("/oauth/device", data=form)


@pytest.mark.requirement("SEC-16", "SEC-12")
async def test_a_device_is_let_in_after_its_code_was_compared(
    clock: Clock,
    flow: Flow,
    device_id: str,
) -> None:
    begun = await begin(flow, device_id)
    linked = await flow.world.client(flow.alice).get(
        begun["verification_uri_complete"].removeprefix(flow.origin)
    )
    pending = await poll(flow, device_id, begun["device_code"])

    compared = await decide(flow, begun["user_code"].lower().replace("-", " "), None)
    clock.move(seconds=6)
    still = await poll(flow, device_id, begun["device_code"])
    allowed = await decide(flow, begun["user_code"])
    clock.move(seconds=6)
    answered = await poll(flow, device_id, begun["device_code"])

    assert (begun["expires_in"], begun["interval"]) == (600, 5)
    assert begun["verification_uri"] == f"{flow.origin}/oauth/device"
    letters = begun["user_code"].replace("-", "")
    assert len(letters) == 8
    assert set(letters) <= set("BCDFGHJKLMNPQRSTVWXZ")
    assert begun["user_code"] in linked.text
    name = re.compile(r"\bTV\b")  # the letters may stand in a code
    assert not name.search(linked.text), "a link alone shows and decides nothing"
    assert begun["user_code"] in compared.text
    assert name.search(compared.text)
    assert pending.json()["error"] == still.json()["error"] == "authorization_pending"
    assert allowed.status_code == 200
    assert "is connected" in allowed.text
    assert answered.status_code == 200, answered.text
    assert (await flow.me(answered.json()["access_token"])).json()["login"] == "alice"
    assert (await flow.refresh(device_id, answered.json()["refresh_token"])).status_code == 200


@pytest.mark.requirement("SEC-16")
async def test_a_device_that_polls_too_fast_is_told_to_wait_longer(
    clock: Clock,
    flow: Flow,
    device_id: str,
) -> None:
    begun = await begin(flow, device_id)

    answers = []
    for wait_s in (0, 4, 6, 11):
        clock.move(seconds=wait_s)
        answers.append((await poll(flow, device_id, begun["device_code"])).json()["error"])

    assert answers == ["authorization_pending", "slow_down", "slow_down", "slow_down"]
    clock.move(seconds=25)
    assert (await poll(flow, device_id, begun["device_code"])).json()["error"] == (
        "authorization_pending"
    )


@pytest.mark.requirement("SEC-18", "SEC-20", "SEC-16")
async def test_of_three_polls_at_once_one_gets_tokens(
    flow: Flow, device_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await begin(flow, device_id)
    await decide(flow, begun["user_code"])
    if not db.is_sqlite():  # which has one writer; here all have checked before one takes
        together = threading.Barrier(3, timeout=60)
        save = DeviceGrant.save_token

        def wait_then_save(self: DeviceGrant, token: dict[str, Any]) -> None:
            together.wait()
            save(self, token)

        monkeypatch.setattr(DeviceGrant, "save_token", wait_then_save)

    answers = await asyncio.gather(*(poll(flow, device_id, begun["device_code"]) for _ in range(3)))

    assert sorted(answer.status_code for answer in answers) == [200, 400, 400]
    (family,) = db.read_now(f.families)
    assert family.revoked_why == "reuse"


@pytest.mark.requirement("SEC-16", "SEC-15")
async def test_a_no_is_final(flow: Flow, device_id: str) -> None:
    before = db.read_now(f.delegations)
    begun = await begin(flow, device_id)

    denied = await decide(flow, begun["user_code"], "deny")
    later = await decide(flow, begun["user_code"])
    answered = await poll(flow, device_id, begun["device_code"])

    assert "was not let in" in denied.text
    assert later.status_code == 422
    assert answered.json()["error"] == "access_denied"
    assert db.read_now(f.delegations) == before


@pytest.mark.requirement("SEC-16")
async def test_a_code_lives_ten_minutes(
    clock: Clock,
    flow: Flow,
    device_id: str,
) -> None:
    begun = await begin(flow, device_id)

    clock.move(minutes=10)
    typed = await decide(flow, begun["user_code"])
    answered = await poll(flow, device_id, begun["device_code"])

    assert typed.status_code == 422
    assert answered.json()["error"] == "expired_token"


@pytest.mark.requirement("SEC-16")
async def test_five_wrong_codes_close_the_form_for_ten_minutes(
    clock: Clock,
    flow: Flow,
    device_id: str,
) -> None:
    begun = await begin(flow, device_id)
    browser, other = flow.world.client(flow.alice), flow.world.client(flow.alice)

    async def guess(code: str, who: Any = browser) -> int:
        return int((await who.post("/oauth/device", data={"user_code": code})).status_code)

    wrong = [await guess("BBBB-BBBB") for _ in range(5)]
    closed = await guess(begun["user_code"])
    elsewhere = await guess(begun["user_code"], other)
    clock.move(minutes=10, seconds=1)
    again = await begin(flow, device_id)

    assert wrong == [422] * 5
    assert closed == 429
    assert elsewhere == 200, "others are not locked out"
    assert await guess(again["user_code"]) == 200


@pytest.mark.requirement("SEC-16", "SEC-18")
async def test_a_device_code_belongs_to_its_client(flow: Flow, device_id: str) -> None:
    other_id, _ = flow.register(name="Other", grant_types=[DEVICE], redirect_uris=[])
    coder_id, _ = flow.register(name="Coder")
    begun = await begin(flow, device_id)
    await decide(flow, begun["user_code"])

    theirs = await poll(flow, other_id, begun["device_code"])
    unregistered = await poll(flow, coder_id, begun["device_code"])
    unknown = await poll(flow, device_id, "x")
    elsewhere = await poll(flow, device_id, begun["device_code"], resource=flow.resource("mcp"))
    started = await flow.http.post("/oauth/device_authorization", data={"client_id": coder_id})

    assert theirs.json()["error"] == unregistered.json()["error"] == "unauthorized_client"
    assert unknown.json()["error"] == "invalid_grant"
    assert elsewhere.json()["error"] == "invalid_target"
    assert started.json()["error"] == "unauthorized_client"
    assert db.read_now(f.families) == []


@pytest.mark.requirement("SEC-16", "SEC-17")
async def test_a_device_asks_for_scopes_and_resources_that_exist(
    flow: Flow, device_id: str
) -> None:
    url = "/oauth/device_authorization"

    scope = await flow.http.post(url, data={"client_id": device_id, "scope": "openid"})
    resource = await flow.http.post(url, data={"client_id": device_id, "resource": "x"})
    query = await flow.http.post(f"{url}?client_id={device_id}")
    unknown = await flow.http.post(url, data={"client_id": "nobody"})

    assert scope.json()["error"] == "invalid_scope"
    assert resource.json()["error"] == "invalid_target"
    assert query.status_code == 400
    assert unknown.json()["error"] == "invalid_client"


@pytest.mark.requirement("SEC-13", "SEC-16")
async def test_a_tenants_device_is_let_in_by_its_people_alone(flow: Flow, device_id: str) -> None:
    begun = await begin(flow, device_id)

    answered = await flow.world.client(flow.world.globex["gus"]).post(
        "/oauth/device", data={"user_code": begun["user_code"], "decision": "allow"}
    )

    assert answered.status_code == 422


@pytest.mark.requirement("SEC-51")
async def test_an_address_gets_thirty_codes_a_minute_whatever_clients_it_names(
    flow: Flow, device_id: str
) -> None:
    names = [*(f"made-up-{number}" for number in range(30)), device_id]

    answers = [
        await flow.http.post("/oauth/device_authorization", data={"client_id": name})
        for name in names
    ]

    assert {answer.status_code for answer in answers[:30]} == {401}
    assert answers[30].status_code == 429
    assert int(answers[30].headers["retry-after"]) >= 1
