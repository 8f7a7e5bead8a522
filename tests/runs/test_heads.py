"""Who reads along outside: the linked client that asked, while it is linked."""

import pytest

from app.identity.models import PeerLink
from app.runs import heads, inputs
from tests.clock import Clock
from tests.runs.agents import Office


@pytest.mark.requirement("RUN-97")
async def test_a_linked_client_reads_what_is_thought_of_its_message_until_it_is_unlinked(
    office: Office, clock: Clock
) -> None:
    office.outsider("tom", linked_to="alice")
    office.say("tom")
    run = await office.begun()
    await inputs.admit_first(run)

    await heads.look(run)
    assert run.viewer_aid == office.aid("tom")

    office.force(PeerLink, (office.tenant_id, office.aid("tom")), revoked_at=clock.now)
    await heads.look(run)
    assert run.viewer_aid is None


async def test_who_is_hosted_reads_the_stream_and_a_stranger_nothing(office: Office) -> None:
    office.outsider("tina")
    for who in ("alice", "tina"):
        office.say(who)
        run = await office.begun()
        await inputs.admit_first(run)

        await heads.look(run)

        assert run.viewer_aid is None
        office.end(run.claim)
