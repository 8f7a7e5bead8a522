"""Up or not, and the numbers."""

import httpx2
import pytest

from app.kernel import db
from tests.people import World

pytestmark = pytest.mark.requirement("SEC-88")


async def test_health_says_up_or_not_and_nothing_else(world: World) -> None:
    async with world.anonymous() as anybody:
        answers = [await anybody.get(path) for path in ("/healthz", "/readyz")]

    assert [(answer.status_code, answer.text) for answer in answers] == [(200, "ok")] * 2


async def test_a_server_without_its_database_is_up_and_not_ready(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy.exc import OperationalError

    async def gone(*_: object) -> None:
        raise OperationalError("SELECT secret", {}, Exception("no such host db.internal"))

    monkeypatch.setattr(db, "read", gone)
    async with world.anonymous() as anybody:
        health = await anybody.get("/healthz")
        ready = await anybody.get("/readyz")

    assert health.status_code == 200
    assert (ready.status_code, ready.text) == (503, "not ready")


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("192.0.2.7", {}, 404),
        ("127.0.0.1", {"X-Forwarded-For": "192.0.2.7"}, 404),
        ("127.0.0.1", {"Forwarded": "for=192.0.2.7"}, 404),
    ],
)
async def test_numbers_are_for_this_machine_alone(
    world: World, address: str, headers: dict[str, str], status: int
) -> None:
    transport = httpx2.ASGITransport(app=world.app, client=(address, 1234))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8000") as peer:
        answer = await peer.get("/metrics", headers=headers)

    assert answer.status_code == status


async def test_no_number_names_a_user_a_tenant_or_a_record(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(world.acme["ada"]) as browser:
        assert (await browser.get(f"/admin/users/{alice.id}")).status_code == 200

    transport = httpx2.ASGITransport(app=world.app, client=("127.0.0.1", 1234))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8000") as peer:
        numbers = (await peer.get("/metrics")).text

    assert '/admin/users/{user_id}"' in numbers
    assert alice.id not in numbers
    assert alice.tenant_id not in numbers


async def test_the_api_document_describes_the_platform_and_names_no_tenant(world: World) -> None:
    async with world.anonymous() as anybody:
        document = (await anybody.get("/openapi.json")).text

    assert "/v1/me" in document
    assert world.acme.id not in document
    assert "acme" not in document.lower()
