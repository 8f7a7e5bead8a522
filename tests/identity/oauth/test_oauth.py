"""The pages: consent, shown every time, bound to the session, and never an open redirect."""

import re
from typing import Any

import pytest

from app.identity import agents as agent_units
from app.identity import signing_keys
from app.identity.models import Agent
from app.identity.oauth import clients
from app.kernel import db
from app.kernel.db import Work
from tests.clock import Clock
from tests.identity.oauth import flow as f
from tests.identity.oauth.flow import CALLBACK, OFFLINE, READS, Flow, Pkce

WEB = "https://desk.example/cb"


@pytest.mark.requirement("SEC-15")
async def test_the_page_says_who_asks_for_what_and_until_when(clock: Clock, flow: Flow) -> None:
    client_id, _ = flow.register(name="Desk <b>x</b>", redirect_uris=[WEB])

    page = await flow.authorize(
        flow.request(client_id, Pkce.new(), redirect_uri=WEB, scope=OFFLINE)
    )

    assert page.status_code == 200
    assert "Desk &lt;b&gt;x&lt;/b&gt;" in page.text
    for said in (
        "desk.example",
        "Alice Wang 王爱丽",
        "Acme 贸易",
        "alice",
        "Carry out commands in your name",
        "Stay connected while you are away",
        "Registered by an administrator of yours",
        'datetime="2026-05-31"',
    ):
        assert said in page.text, said
    assert "program on your own computer" not in page.text
    form = page.text[page.text.index('action="/oauth/consent"') :]
    fields = set(re.findall(r'name="(\w+)"', form[: form.index("</form>")]))
    assert fields == {"_csrf", "request", "decision"}, "the parameters stay on the server"


@pytest.mark.requirement("SEC-15")
async def test_a_loopback_address_is_warned_about(flow: Flow) -> None:
    client_id, _ = flow.register()

    page = await flow.authorize(flow.request(client_id, Pkce.new()))

    assert "program on your own computer" in page.text
    assert "127.0.0.1:7777" in page.text


@pytest.mark.requirement("SEC-15", "SEC-44", "SEC-45")
async def test_the_page_may_send_its_form_to_the_client_and_is_never_framed(flow: Flow) -> None:
    client_id, _ = flow.register(redirect_uris=[WEB])

    page = await flow.authorize(flow.request(client_id, Pkce.new(), redirect_uri=WEB))

    policy = page.headers["content-security-policy"]
    assert "form-action 'self' https://desk.example;" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["cross-origin-opener-policy"] == "unsafe-none"
    assert page.headers["cache-control"] == "no-store"


@pytest.mark.requirement("SEC-15")
async def test_the_answer_carries_code_state_and_issuer(flow: Flow) -> None:
    client_id, _ = flow.register(redirect_uris=[CALLBACK + "?a=b"])
    browser = flow.world.client(flow.alice)
    page = await flow.authorize(
        flow.request(client_id, Pkce.new(), redirect_uri=CALLBACK + "?a=b", state="x&y=z é"),
        browser,
    )

    answered = await flow.consent(page, browser)

    answer = f.answer_of(answered)
    assert answered.status_code == 303
    assert answered.headers["location"].startswith(CALLBACK + "?a=b&")
    assert answer.keys() == {"a", "code", "state", "iss"}
    assert (answer["state"], answer["iss"]) == ("x&y=z é", flow.origin)
    assert "identity.consent.give" in db.read_now(f.actions)


@pytest.mark.requirement("SEC-15")
async def test_a_no_goes_back_as_access_denied_and_leaves_nothing(flow: Flow) -> None:
    client_id, _ = flow.register()
    before = db.read_now(f.delegations)
    browser = flow.world.client(flow.alice)
    page = await flow.authorize(flow.request(client_id, Pkce.new()), browser)

    answered = await flow.consent(page, browser, "deny")

    answer = f.answer_of(answered)
    assert (answer["error"], answer["state"], answer["iss"]) == (
        "access_denied",
        "s-1",
        flow.origin,
    )
    assert db.read_now(f.delegations) == before
    assert db.read_now(f.agents) == []
    assert "identity.consent.refuse" in db.read_now(f.actions)


@pytest.mark.requirement("SEC-11", "SEC-15")
async def test_consent_makes_the_agent_once_and_widens_the_delegation(flow: Flow) -> None:
    client_id, _ = flow.register()

    await flow.tokens(client_id, scope="catalog.read")
    await flow.tokens(client_id, scope="commands.read")
    await flow.tokens(client_id, user=flow.world.acme["bob"])

    (agent,) = db.read_now(f.agents)
    assert (agent.kind, agent.client_id, agent.name) == ("external", client_id, "Desk")
    of_alice = [
        row
        for row in db.read_now(f.delegations)
        if row.agent_id == agent.id and row.user_id == flow.alice.id
    ]
    assert [row.scopes for row in of_alice] == [["catalog.read", "commands.read"]]
    releases = db.read_now(agent_units.releases, agent)
    assert [(row.number, row.content["model"]) for row in releases] == [(1, None)]


@pytest.mark.requirement("SEC-15", "SEC-P10")
async def test_every_client_and_every_redirect_is_asked_about_anew(flow: Flow) -> None:
    client_id, _ = flow.register(redirect_uris=[CALLBACK, WEB])
    other_id, _ = flow.register(name="Other")
    await flow.tokens(client_id)

    again = await flow.authorize(flow.request(client_id, Pkce.new()))
    elsewhere = await flow.authorize(flow.request(client_id, Pkce.new(), redirect_uri=WEB))
    other = await flow.authorize(flow.request(other_id, Pkce.new()))

    assert [page.status_code for page in (again, elsewhere, other)] == [200, 200, 200]


@pytest.mark.requirement("SEC-18", "SEC-15")
async def test_a_request_is_answered_once_in_its_session_and_in_time(
    clock: Clock, flow: Flow
) -> None:
    client_id, _ = flow.register()
    browser, other = flow.world.client(flow.alice), flow.world.client(flow.alice)
    page = await flow.authorize(flow.request(client_id, Pkce.new()), browser)

    in_other = await flow.consent(page, other)
    first = await flow.consent(page, browser)
    second = await flow.consent(page, browser)
    late_page = await flow.authorize(flow.request(client_id, Pkce.new()), browser)
    clock.move(minutes=10)
    late = await flow.consent(late_page, browser)

    assert first.status_code == 303
    assert [answer.status_code for answer in (in_other, second, late)] == [409, 409, 409]
    assert all("location" not in answer.headers for answer in (in_other, second, late))


@pytest.mark.requirement("SEC-15", "SEC-34", "SEC-2")
async def test_consent_takes_the_persons_own_page(flow: Flow) -> None:
    client_id, _ = flow.register()
    token = await flow.access_token()
    browser = flow.world.client(flow.alice)
    page = await flow.authorize(flow.request(client_id, Pkce.new()), browser)
    form = {"request": f.request_id(page), "decision": "allow"}

    no_token = await browser.post("/oauth/consent", data=form, headers={"X-CSRF-Token": "x"})
    cross_site = await browser.post(
        "/oauth/consent", data=form, headers={"Sec-Fetch-Site": "same-site"}
    )
    bearer = await flow.http.post(
        "/oauth/consent", data=form, headers={"Authorization": f"Bearer {token}"}
    )
    both = await browser.post(
        "/oauth/consent", data=form, headers={"Authorization": f"Bearer {token}"}
    )
    extra = await browser.post("/oauth/consent", data={**form, "scope": "audit.read"})
    odd = await browser.post("/oauth/consent", data={**form, "decision": "approve"})
    stranger = await flow.world.anonymous().get(
        "/oauth/authorize", params=flow.request(client_id, Pkce.new())
    )

    assert [answer.status_code for answer in (no_token, cross_site, bearer, both)] == [
        403,
        403,
        403,
        400,
    ]
    assert (extra.status_code, odd.status_code) == (422, 422)
    assert stranger.status_code in {303, 401}
    assert "desk.example" not in stranger.headers.get("location", "")


UNREGISTERED = (
    {"redirect_uri": "https://evil.example/cb"},
    {"redirect_uri": "http://127.0.0.1:7777/callback/"},
    {"redirect_uri": "http://127.0.0.1:7777/callback#x"},
    {"redirect_uri": "http://127.0.0.1:7777/callback?x=1"},
    {"redirect_uri": "http://127.0.0.1.evil.example:7777/callback"},
    {"redirect_uri": "http://127.0.0.1:7777@evil.example/callback"},
    {"redirect_uri": "http://evil.example\\@127.0.0.1:7777/callback"},
    {"redirect_uri": "http://localhost:7777/callback"},
    {"redirect_uri": "https://127.0.0.1:7777/callback"},
    {"redirect_uri": "http://127.0.0.1:7777/%63allback"},
    {"redirect_uri": "http://127.0.0.1:99999/callback"},
    {"redirect_uri": "HTTP://127.0.0.1:7777/callback"},
    {"redirect_uri": "//evil.example/callback"},
    {"redirect_uri": "javascript:alert(1)"},
    {"redirect_uri": "http://127.0.0.1:7777/callback\r\nX: y"},
    {"redirect_uri": 'http://127.0.0.1:7777/cállback "<>'},
    {"client_id": "nobody"},
    {"client_id": None},
    {"client_id": "\u202e'\"<>\x00"},
)


@pytest.mark.parametrize("broken", [{}, {"response_type": "token"}], ids=["sound", "implicit"])
@pytest.mark.requirement("SEC-14", "SEC-20", "SEC-P22")
async def test_what_is_not_registered_is_a_page_and_never_a_redirect(
    flow: Flow, broken: dict[str, str]
) -> None:
    client_id, _ = flow.register()

    for changed in UNREGISTERED:
        case: dict[str, Any] = {**changed, **broken}
        answered = await flow.authorize(flow.request(client_id, Pkce.new(), **case))

        assert answered.status_code == 400, case
        assert "location" not in answered.headers, case
        assert "text/html" in answered.headers["content-type"], case


@pytest.mark.requirement("SEC-14")
async def test_repeated_ids_and_redirects_are_pages(flow: Flow) -> None:
    client_id, _ = flow.register()
    sound = list(flow.request(client_id, Pkce.new()).items())

    two_redirects = await flow.authorize([*sound, ("redirect_uri", CALLBACK)])
    two_clients = await flow.authorize([*sound, ("client_id", client_id)])

    assert two_redirects.status_code == two_clients.status_code == 400


MISTAKES = (
    ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": "code token"}, "unsupported_response_type"),
    ({"response_type": "code id_token"}, "unsupported_response_type"),
    ({"response_type": None}, "unsupported_response_type"),
    ({"response_type": '"<é>'}, "unsupported_response_type"),
    ({"response_mode": "fragment"}, "invalid_request"),
    ({"scope": "openid"}, "invalid_scope"),
    ({"scope": "commands.approve"}, "invalid_scope"),
    ({"scope": "admin é"}, "invalid_scope"),
    ({"resource": "http://other.example/mcp"}, "invalid_target"),
    ({"resource": "http://localhost:8000/mcp/"}, "invalid_target"),
    ({"prompt": "none"}, "interaction_required"),
    ({"request": "eyJ"}, "request_not_supported"),
    ({"request_uri": "http://169.254.169.254/"}, "request_not_supported"),
)


@pytest.mark.requirement("SEC-12", "SEC-15", "SEC-17", "SEC-20", "SEC-P22")
async def test_other_mistakes_go_back_to_the_client_with_the_issuer(
    flow: Flow,
) -> None:
    client_id, _ = flow.register()

    for changed, error in MISTAKES:
        answered = await flow.authorize(flow.request(client_id, Pkce.new(), **changed))

        assert answered.status_code == 303, (changed, answered.text)
        assert answered.headers["location"].startswith(CALLBACK + "?"), changed
        answer = f.answer_of(answered)
        told = (answer["error"], answer["state"], answer["iss"])
        assert told == (error, "s-1", flow.origin), changed


@pytest.mark.requirement("SEC-17")
async def test_two_resources_are_no_target(flow: Flow) -> None:
    client_id, _ = flow.register()
    sound = list(flow.request(client_id, Pkce.new()).items())

    answered = await flow.authorize([*sound, ("resource", flow.resource("v1"))])
    repeated = await flow.authorize([*sound, ("scope", READS)])

    assert f.answer_of(answered)["error"] == "invalid_target"
    assert f.answer_of(repeated)["error"] == "invalid_request"


@pytest.mark.parametrize(
    ("registered", "asked"),
    [
        (CALLBACK, "http://127.0.0.1:1/callback"),
        (CALLBACK, "http://127.0.0.1/callback"),
        ("http://[::1]/cb", "http://[::1]:4000/cb"),
        ("http://localhost/cb?x=1", "http://localhost:4000/cb?x=1"),
        ("com.example.app:/cb", "com.example.app:/cb"),
        (WEB, WEB),
    ],
)
@pytest.mark.requirement("SEC-14")
async def test_on_loopback_the_port_is_free_and_else_the_string_is_exact(
    flow: Flow, registered: str, asked: str
) -> None:
    client_id, _ = flow.register(redirect_uris=[registered])
    browser = flow.world.client(flow.alice)

    page = await flow.authorize(flow.request(client_id, Pkce.new(), redirect_uri=asked), browser)
    answered = await flow.consent(page, browser)

    assert page.status_code == 200
    assert answered.headers["location"].startswith(asked)


@pytest.mark.requirement("SEC-13")
async def test_a_tenants_client_is_unknown_to_people_of_another(flow: Flow) -> None:
    client_id, _ = flow.register()

    mine = await flow.authorize(flow.request(client_id, Pkce.new()))
    theirs = await flow.authorize(
        flow.request(client_id, Pkce.new()), flow.world.client(flow.world.globex["gus"])
    )

    assert (mine.status_code, theirs.status_code) == (200, 400)


@pytest.mark.requirement("SEC-31")
async def test_a_client_that_was_blocked_meanwhile_gets_no_code(flow: Flow) -> None:
    client_id, _ = flow.register()
    browser = flow.world.client(flow.alice)
    page = await flow.authorize(flow.request(client_id, Pkce.new()), browser)

    db.transact_now(_block, flow.world.person(flow.world.acme["ada"]), client_id)
    answered = await flow.consent(page, browser)

    assert answered.status_code == 400
    assert "location" not in answered.headers


@pytest.mark.requirement("SEC-11")
async def test_an_agent_an_administrator_disabled_is_not_asked_about(flow: Flow) -> None:
    client_id, _ = flow.register()
    await flow.tokens(client_id)
    (agent,) = db.read_now(f.agents)

    db.transact_now(_disable, flow.world.person(flow.world.acme["ada"]), agent)
    answered = await flow.authorize(flow.request(client_id, Pkce.new()))

    assert answered.status_code == 409


@pytest.mark.requirement("SEC-45", "SEC-T45")
async def test_a_request_that_waits_survives_a_restart(flow: Flow, opened: str) -> None:
    client_id, _ = flow.register()
    pkce = Pkce.new()
    browser = flow.world.client(flow.alice)
    page = await flow.authorize(flow.request(client_id, pkce), browser)

    db.close()
    signing_keys.close()
    db.open(opened)
    signing_keys.prepare()
    answered = await flow.consent(page, browser)

    code = f.answer_of(answered)["code"]
    assert (await flow.redeem(client_id, code, pkce)).status_code == 200


@pytest.mark.requirement("SEC-51")
async def test_an_address_that_asks_too_often_waits(flow: Flow) -> None:
    client_id, _ = flow.register()
    browser = flow.world.client(flow.alice)

    answers = [
        await flow.authorize(flow.request(client_id, Pkce.new(), scope="no"), browser)
        for _ in range(31)
    ]

    assert {answer.status_code for answer in answers[:30]} == {303}
    assert answers[30].status_code == 429


def _block(work: Work, actor: Any, client_id: str) -> None:
    clients.block(work, actor, clients.own(work.session, actor.tenant_id, client_id))


def _disable(work: Work, actor: Any, agent: Agent) -> None:
    agent_units.disable(work, actor, agent_units.one(work.session, agent.tenant_id, agent.id))
