"""What the server and its doors say about themselves, and who may read it from where."""

import pytest

from app.kernel import settings
from app.kernel.settings import Settings
from tests.identity.oauth.flow import Flow


@pytest.mark.requirement("SEC-12", "SEC-13", "SEC-8")
async def test_the_server_says_what_it_does_and_nothing_else(flow: Flow) -> None:
    answered = await flow.http.get("/.well-known/oauth-authorization-server")

    said = answered.json()
    assert answered.headers["content-type"] == "application/json"
    assert answered.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answered.headers
    assert said["issuer"] == flow.origin
    assert said["authorization_endpoint"] == f"{flow.origin}/oauth/authorize"
    assert said["code_challenge_methods_supported"] == ["S256"]
    assert said["response_types_supported"] == ["code"]
    assert said["authorization_response_iss_parameter_supported"] is True
    assert said["client_id_metadata_document_supported"] is True
    assert set(said["grant_types_supported"]) == {
        "authorization_code",
        "refresh_token",
        "urn:ietf:params:oauth:grant-type:device_code",
        "urn:ietf:params:oauth:grant-type:token-exchange",
    }
    assert "registration_endpoint" not in said
    assert set(said["scopes_supported"]) == {
        *("catalog.read", "commands.read", "commands.invoke", "events.read", "audit.read"),
        *("aun.message", "offline_access"),
    }
    assert (await flow.http.get("/.well-known/openid-configuration")).status_code == 404


@pytest.mark.parametrize("door", ["v1", "mcp", "a2a", "aun"])
@pytest.mark.requirement("SEC-26", "SEC-12")
async def test_each_door_says_who_makes_its_tokens(flow: Flow, door: str) -> None:
    answered = await flow.http.get(f"/.well-known/oauth-protected-resource/{door}")

    said = answered.json()
    assert said["resource"] == flow.resource(door)
    assert said["authorization_servers"] == [flow.origin]
    assert said["bearer_methods_supported"] == ["header"]
    assert said["scopes_supported"]
    assert answered.headers["access-control-allow-origin"] == "*"


@pytest.mark.requirement("SEC-26")
async def test_there_is_no_other_door(flow: Flow) -> None:
    answered = await flow.http.get("/.well-known/oauth-protected-resource/admin")

    assert answered.status_code == 404


@pytest.mark.requirement("SEC-45")
async def test_pages_of_listed_origins_may_ask_for_tokens(
    flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, other = "https://app.example", "https://evil.example"
    monkeypatch.setattr(settings, "current", lambda: Settings(cors_origins=[listed]))

    may = await flow.http.options("/oauth/token", headers={"Origin": listed})
    may_not = await flow.http.options("/oauth/token", headers={"Origin": other})
    answered = await flow.http.post(
        "/oauth/token", data={"grant_type": "x"}, headers={"Origin": listed}
    )
    documents = await flow.http.options("/oauth/jwks", headers={"Origin": other})

    assert may.headers["access-control-allow-origin"] == listed
    assert "access-control-allow-origin" not in may_not.headers
    assert answered.headers["access-control-allow-origin"] == listed
    assert "access-control-allow-credentials" not in answered.headers
    assert documents.headers["access-control-allow-origin"] == "*"
