"""What the sign-in page refuses before anybody is known."""

import pytest

from app.kernel import rates
from tests.people import World
from tests.signing_in import hidden


@pytest.mark.requirement("SEC-51")
async def test_a_network_that_asks_for_challenges_without_end_is_told_to_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = rates.Rates({**rates.DEFAULTS, "ceremony": "3/minute"})
    monkeypatch.setattr(rates, "of_process", lambda: few)

    async with world.anonymous() as browser:
        token = hidden(await browser.get("/sign-in"), "_csrf")
        form = {"_csrf": token}
        answers = [await browser.post("/sign-in/passkey/options", data=form) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1].headers["retry-after"]
