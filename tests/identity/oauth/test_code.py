"""Code and PKCE: what a client gets for a consent, once."""

import asyncio
import threading
from typing import Any

import pytest

from app.identity.oauth.grants import CodeGrant
from app.kernel import db
from tests.clock import Clock
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import CALLBACK, OFFLINE, Flow, Pkce


@pytest.mark.requirement("SEC-12")
async def test_a_person_lets_an_application_act_and_it_gets_a_token(flow: Flow) -> None:
    client_id, _ = flow.register()
    pkce = Pkce.new()

    code = await flow.code(client_id, pkce, resource=flow.resource("v1"))
    answered = await flow.redeem(client_id, code, pkce)

    assert answered.status_code == 200, answered.text
    assert answered.headers["cache-control"] == "no-store"
    assert answered.json().keys() == {"access_token", "token_type", "expires_in", "scope"}
    assert (await flow.me(answered.json()["access_token"])).json()["login"] == "alice"


@pytest.mark.requirement("SEC-19")
async def test_grants_run_in_one_transaction_off_the_event_loop(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_id, _ = flow.register()
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce)
    seen = []
    save = CodeGrant.save_token

    def note_then_save(self: CodeGrant, token: dict[str, Any]) -> None:
        seen.append(threading.current_thread())
        save(self, token)
        if len(seen) == 1:
            raise RuntimeError("the power fails")

    monkeypatch.setattr(CodeGrant, "save_token", note_then_save)
    failed = await flow.redeem(client_id, code, pkce)
    again = await flow.redeem(client_id, code, pkce)

    assert failed.status_code == 500
    assert again.status_code == 200, "what failed left nothing, the code is still good"
    assert len(db.read_now(f.families)) == 1
    assert threading.current_thread() not in seen


GRANTS = (
    "client_credentials",
    "password",
    "implicit",
    "",
    "código",
)


@pytest.mark.requirement("SEC-12")
async def test_no_other_grant_exists(flow: Flow) -> None:
    client_id, secret = flow.register(secret=True)

    for grant in GRANTS:
        answered = await flow.token(
            {"grant_type": grant, "username": "alice", "password": "x", "scope": f.READS},
            auth=(client_id, str(secret)),
        )

        assert answered.status_code == 400, grant
        assert answered.json()["error"] in {"unsupported_grant_type", "invalid_request"}, grant


UNCHALLENGED = (
    {"code_challenge": None, "code_challenge_method": None},
    {"code_challenge": None},
    {"code_challenge_method": None},
    {"code_challenge_method": "plain"},
    {"code_challenge": "short"},
)


@pytest.mark.parametrize("secret", [False, True])
@pytest.mark.requirement("SEC-12", "SEC-20")
async def test_there_is_no_code_without_a_challenge_by_s256(flow: Flow, secret: bool) -> None:
    client_id, _ = flow.register(secret=secret)

    for wrong in UNCHALLENGED:
        answered = await flow.authorize(flow.request(client_id, Pkce.new(), **wrong))

        assert answered.status_code == 303, wrong
        assert f.answer_of(answered)["error"] == "invalid_request", wrong


@pytest.mark.parametrize("secret", [False, True])
@pytest.mark.requirement("SEC-20")
async def test_a_code_opens_to_the_verifier_of_its_challenge_alone(
    flow: Flow, secret: bool
) -> None:
    client_id, shown = flow.register(secret=secret)
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce)

    missing = await flow.redeem(client_id, code, pkce, secret=shown, code_verifier=None)
    other = await flow.redeem(
        client_id, code, pkce, secret=shown, code_verifier=Pkce.new().verifier
    )
    challenge = await flow.redeem(client_id, code, pkce, secret=shown, code_verifier=pkce.challenge)
    right = await flow.redeem(client_id, code, pkce, secret=shown)

    assert missing.json()["error"] == "invalid_request"
    assert other.json()["error"] == challenge.json()["error"] == "invalid_grant"
    assert right.status_code == 200, "and the wrong ones did not use it up"


@pytest.mark.requirement("SEC-18", "SEC-20")
async def test_of_four_that_redeem_a_code_at_once_one_gets_tokens_and_those_end(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_id, _ = flow.register()
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce, resource=flow.resource("v1"), scope=OFFLINE)
    if not db.is_sqlite():  # which has one writer; here all four have checked before one takes
        together = threading.Barrier(4, timeout=60)
        save = CodeGrant.save_token

        def wait_then_save(self: CodeGrant, token: dict[str, Any]) -> None:
            together.wait()
            save(self, token)

        monkeypatch.setattr(CodeGrant, "save_token", wait_then_save)

    answers = await asyncio.gather(*(flow.redeem(client_id, code, pkce) for _ in range(4)))

    won = [answer for answer in answers if answer.status_code == 200]
    assert len(won) == 1
    assert {answer.json()["error"] for answer in answers if answer not in won} == {"invalid_grant"}
    (family,) = db.read_now(f.families)
    assert family.revoked_why == "reuse"
    assert (await flow.me(won[0].json()["access_token"])).status_code == 401
    assert "identity.token.reuse" in db.read_now(f.actions)


@pytest.mark.requirement("SEC-18")
async def test_a_code_that_comes_back_ends_what_it_gave(flow: Flow) -> None:
    client_id, _ = flow.register()
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce, scope=OFFLINE)
    first = await flow.redeem(client_id, code, pkce)

    again = await flow.redeem(client_id, code, pkce)
    refreshed = await flow.refresh(client_id, first.json()["refresh_token"])

    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert refreshed.json()["error"] == "invalid_grant"
    assert db.read_now(f.actions).count("identity.token.reuse") == 1


@pytest.mark.requirement("SEC-18")
async def test_a_stranger_with_a_used_code_ends_nothing(flow: Flow) -> None:
    client_id, _ = flow.register()
    other_id, _ = flow.register(name="Other")
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce)
    await flow.redeem(client_id, code, pkce)

    theirs = await flow.redeem(other_id, code, pkce)
    guessed = await flow.redeem(client_id, code, Pkce.new())

    assert theirs.json()["error"] == guessed.json()["error"] == "invalid_grant"
    (family,) = db.read_now(f.families)
    assert family.revoked_at is None


@pytest.mark.requirement("SEC-18")
async def test_a_code_lives_a_minute(clock: Clock, flow: Flow) -> None:
    client_id, _ = flow.register()
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce)

    clock.move(seconds=60)
    answered = await flow.redeem(client_id, code, pkce)

    assert answered.json()["error"] == "invalid_grant"
    assert db.read_now(f.families) == []


@pytest.mark.requirement("SEC-14", "SEC-20")
async def test_a_code_is_redeemed_with_the_redirect_uri_it_was_sent_to(flow: Flow) -> None:
    other = "https://desk.example/cb"
    client_id, _ = flow.register(redirect_uris=[CALLBACK, other])
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce)

    missing = await flow.redeem(client_id, code, pkce, redirect_uri=None)
    wrong = await flow.redeem(client_id, code, pkce, redirect_uri=other)

    assert missing.json()["error"] == wrong.json()["error"] == "invalid_grant"


@pytest.mark.requirement("SEC-17")
async def test_the_resource_of_the_code_is_the_one_audience(flow: Flow) -> None:
    client_id, _ = flow.register()
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce, resource=flow.resource("a2a"))

    other = await flow.redeem(client_id, code, pkce, resource=flow.resource("mcp"))
    unknown = await flow.redeem(client_id, code, pkce, resource=f"{flow.origin}/admin")
    several = await flow.redeem(
        client_id, code, pkce, resource=[flow.resource("a2a"), flow.resource("a2a")]
    )
    same = await flow.redeem(client_id, code, pkce, resource=flow.resource("a2a"))

    assert {answer.json()["error"] for answer in (other, unknown, several)} == {"invalid_target"}
    assert f.claims_of(same.json()["access_token"])["aud"] == flow.resource("a2a")


@pytest.mark.requirement("SEC-17")
async def test_nothing_asked_means_reading_by_way_of_mcp(flow: Flow) -> None:
    client_id, _ = flow.register()

    answered = await flow.tokens(client_id, scope=None, resource=None)

    claims = f.claims_of(answered["access_token"])
    assert (claims["aud"], claims["scope"]) == (flow.resource("mcp"), f.READS)
    assert answered["scope"] == f.READS


@pytest.mark.requirement("SEC-20")
async def test_a_client_has_one_way_to_say_who_it_is(flow: Flow) -> None:
    confidential, secret = flow.register(secret=True)
    public, _ = flow.register(name="Public")
    pkce = Pkce.new()
    code = await flow.code(confidential, pkce)

    without = await flow.redeem(confidential, code, pkce)
    in_form = await flow.redeem(confidential, code, pkce, client_secret=secret)
    wrong = await flow.redeem(confidential, code, pkce, secret="wrong")
    mixed = await flow.redeem(public, code, pkce, secret=None, client_secret="x")
    two = await flow.token(
        {"grant_type": "authorization_code", "code": code, "client_id": public},
        auth=(confidential, str(secret)),
    )
    unknown = await flow.redeem("nobody", code, pkce)
    right = await flow.redeem(confidential, code, pkce, secret=secret)

    for refused in (without, in_form, wrong, mixed, two, unknown):
        assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
        assert refused.headers["www-authenticate"].startswith("Basic")
    bodies = {refused.text for refused in (without, wrong, unknown)}
    assert len(bodies) == 1, "an unknown client and a wrong secret look alike"
    assert right.status_code == 200


ODD_HEADERS = (
    "Basic",
    "Basic !!!",
    "Basic w7/Dvw==",
    "Basic bm9jb2xvbg==",
    "Bearer x",
    "Digest x",
)


@pytest.mark.requirement("SEC-20")
async def test_an_odd_authorization_header_is_an_unknown_client(flow: Flow) -> None:
    form = {"grant_type": "authorization_code", "code": "x"}
    for header in ODD_HEADERS:
        answered = await flow.token(form, headers={"Authorization": header})

        assert (answered.status_code, answered.json()["error"]) == (401, "invalid_client"), header


@pytest.mark.requirement("SEC-20")
async def test_parameters_of_a_token_request_come_in_the_form_alone(flow: Flow) -> None:
    client_id, _ = flow.register()
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce)
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": pkce.verifier,
    }

    by_query = await flow.http.post(f"/oauth/token?client_id={client_id}", data=form)
    by_json = await flow.http.post("/oauth/token", json={**form, "client_id": client_id})
    by_parts = await flow.http.post(
        "/oauth/token", data={**form, "client_id": client_id}, files={"x": b""}
    )
    twice = await flow.token({**form, "client_id": [client_id, client_id]})
    large = await flow.token({**form, "client_id": client_id, "pad": "x" * 70_000})
    by_get = await flow.http.get("/oauth/token")

    assert (by_query.status_code, by_query.json()["error"]) == (400, "invalid_request")
    assert by_json.status_code == by_parts.status_code == 415
    assert (twice.status_code, twice.json()["error"]) == (400, "invalid_request")
    assert large.status_code == 413
    assert by_get.status_code == 405


@pytest.mark.requirement("SEC-20")
async def test_a_client_endpoint_reads_no_cookie(flow: Flow) -> None:
    client_id, secret = flow.register(secret=True)
    pkce = Pkce.new()
    code = await flow.code(client_id, pkce)
    browser = flow.world.client(flow.alice)

    answered = await browser.post(
        "/oauth/token",
        data={
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": pkce.verifier,
        },
        auth=(client_id, str(secret)),
    )

    assert answered.status_code == 200


@pytest.mark.requirement("SEC-51")
async def test_a_client_that_asks_too_often_is_told_when_to_come_back(flow: Flow) -> None:
    client_id, _ = flow.register()

    answers = [await flow.refresh(client_id, "x") for _ in range(61)]

    assert [answer.status_code for answer in answers[:60]] == [400] * 60
    assert answers[60].status_code == 429
    assert int(answers[60].headers["retry-after"]) >= 1


@pytest.mark.requirement("SEC-51")
async def test_clients_with_a_secret_behind_one_address_do_not_slow_each_other_down(
    flow: Flow,
) -> None:
    form = {"grant_type": "refresh_token", "refresh_token": "x"}

    loud = [
        await flow.http.post("/oauth/token", data=form, auth=("loud", "secret")) for _ in range(61)
    ]
    other = await flow.http.post("/oauth/token", data=form, auth=("other", "secret"))

    assert [answer.status_code for answer in loud] == [401] * 60 + [429]
    assert other.status_code == 401


@pytest.mark.requirement("SEC-20", "SEC-P27", "SEC-P28")
async def test_stored_settings_decide_which_flows_a_client_has(flow: Flow) -> None:
    client_id, _ = flow.register(grant_types=[f.DEVICE], redirect_uris=[])
    other_id, _ = flow.register(grant_types=["authorization_code"])
    host = {"client_session_host": "http://169.254.169.254/"}

    page = await flow.authorize(
        flow.request(client_id, Pkce.new(), skip_logout="true", restart="true")
    )
    refreshed = await flow.refresh(other_id, "x", **host, grant_types="refresh_token")

    assert page.status_code == 400
    assert refreshed.json()["error"] == "unauthorized_client"
