"""Administrators keep names for outside clients and shut clients out."""

import re

from app.kernel import db
from tests.aun import contact_rows
from tests.people import World

OTTO = "otto.assent.localhost"


async def test_an_administrator_reserves_names_and_shuts_clients_out(
    world: World,
) -> None:
    db.transact_now(contact_rows.contact, world.acme.id, "otto")
    here = "/admin/aun"
    async with world.client(world.acme["ada"]) as browser:
        assert OTTO in (await browser.get(here)).text
        assert OTTO not in (await browser.get(f"{here}?q=nobody")).text
        made = await browser.post(f"{here}/reservations", data={"name": "owen"})
        assert made.status_code == 303
        again = await browser.post(f"{here}/reservations", data={"name": "owen"})
        assert again.status_code == 422
        page = (await browser.get(here)).text
        kept = re.findall(rf"{here}/reservations/(\w+)/removal", page)
        assert "owen.assent.localhost" in page
        assert (await browser.post(f"{here}/reservations/{kept[0]}/removal")).status_code == 303
        assert "owen.assent.localhost" not in (await browser.get(here)).text

        one = f"{here}/contacts/{OTTO}"
        assert (await browser.get(one)).status_code == 200
        assert (await browser.get(f"{one}/block")).status_code == 200
        assert (await browser.post(f"{one}/block")).status_code == 303
        assert (await browser.post(f"{one}/block")).status_code == 409
        assert (await browser.get(f"{one}/block")).status_code == 200
        assert (await browser.post(f"{one}/unblock")).status_code == 303
    async with world.client(world.acme["bob"]) as browser:
        assert (await browser.get(here)).status_code == 403
        assert (await browser.post(f"{one}/block")).status_code == 403
