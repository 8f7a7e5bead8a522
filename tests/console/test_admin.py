"""The overview counts what is there, and shows the end of the audit chain to whoever may see it."""

from app.audit import queries
from app.kernel import db
from tests.people import World


async def test_the_overview_counts_and_shows_where_the_chain_stands(world: World) -> None:
    page = await world.client(world.acme["olga"]).get("/admin")

    head = db.read_now(queries.head, world.acme.id)
    assert head is not None
    assert head.hash in page.text
    assert "<strong>5</strong><span>People who can sign in</span>" in page.text
    assert ("SQLite" if db.is_sqlite() else "PostgreSQL") in page.text


async def test_who_may_not_read_the_trail_does_not_see_its_end(world: World) -> None:
    page = await world.client(world.acme["ada"]).get("/admin")

    assert page.status_code == 200
    assert "Audit trail" not in page.text


async def test_it_is_for_those_who_may_see_the_system(world: World) -> None:
    refused = [
        (await world.client(world.acme[login]).get("/admin")).status_code
        for login in ("axel", "alice")
    ]

    assert refused == [403, 403]
