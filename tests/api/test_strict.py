"""No route of programs ignores a parameter: a filter misspelt is told, and narrows nothing."""

import pytest

from app.api import strict
from app.kernel import db, rates
from tests.people import World
from tests.security import every_route

NO_END = "/v1/events"


@pytest.mark.requirement("CMD-7")
async def test_a_parameter_that_nobody_knows_is_refused_at_every_route(world: World) -> None:
    things = every_route.make(world, world.acme["olga"])
    olga = world.client(world.acme["olga"])
    known = {route.path: set(strict.names(route.dependant)) for route in every_route.routes()}
    before = db.read_now(every_route.rows)
    wrong, tried = [], 0

    for ask in every_route.asks(world, things):
        if not ask.template.startswith("/v1/"):
            continue
        tried += 1
        rates.of_process.cache_clear()
        answer = await olga.request(ask.method, f"{ask.path}?unheardOf=1&unheardOf=2")
        told = answer.json().get("errors", []) if answer.status_code == 422 else []
        if [each["pointer"] for each in told] != ["unheardOf"]:
            wrong.append(f"{ask}: {answer.status_code}")
        if ask.template == NO_END:
            continue
        for name in known[ask.template]:
            answer = await olga.request(ask.method, f"{ask.path}?{name}=")
            if "There is no such parameter" in answer.text:
                wrong.append(f"{ask}: {name} is not known")

    assert wrong == []
    assert tried >= 15, "else this proves nothing"
    assert db.read_now(every_route.rows) == before
    assert known["/v1/runs"] == {"agentId", "state", "cursor"}
    assert {"from", "user", "modelVersion"} <= known["/v1/audit"]
