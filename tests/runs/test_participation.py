"""Whether an agent takes part in what is said in a group: the first rule that fits decides."""

from typing import Any

import pytest

from app.aun.models import Message
from app.kernel import db
from app.runs.participation import Verdict, judge
from app.runs.states import SenderKind
from tests.runs.agents import Office

OWN = "stock.assent.localhost"


@pytest.mark.requirement("RUN-71")
@pytest.mark.parametrize(
    ("payload", "kind", "policy", "verdict"),
    [
        ({}, SenderKind.PERSON, "quiet", Verdict.PARTICIPATE),
        ({"mentions": [{"aid": OWN}]}, SenderKind.AGENT, "quiet", Verdict.PARTICIPATE),
        ({"mentions": [{"scope": "all"}]}, SenderKind.PEER, "quiet", Verdict.PARTICIPATE),
        ({"mentions": [{"aid": "else.where"}]}, SenderKind.AGENT, "quiet", Verdict.SILENT),
        ({"text": "@stock"}, SenderKind.AGENT, "quiet", Verdict.SILENT),
        ({}, SenderKind.AGENT, "open", Verdict.PARTICIPATE),
        ({}, SenderKind.PEER, "model", Verdict.WAIT),
    ],
)
def test_the_first_rule_that_fits_decides(
    payload: dict[str, Any], kind: SenderKind, policy: str, verdict: Verdict
) -> None:
    assert judge(payload, kind, OWN, policy) == verdict


@pytest.mark.requirement("RUN-71")
@pytest.mark.parametrize("how", ["reply_to", "quote"])
async def test_an_answer_to_the_agents_own_words_always_reaches_it(
    office: Office, how: str
) -> None:
    group = office.group(agents=("stock", "expenses"))
    own = office.say_in(group, "stock", "What do you think?")
    sent_as = db.read_now(
        lambda session: session.get_one(Message, (office.tenant_id, own)).message_id
    )
    office.say_in(group, "expenses", "This", **{how: {"message_id": sent_as}})
    office.say_in(group, "expenses", "That", **{how: {"message_id": "another"}})

    await office.hear()

    assert office.fates()[1:] == [("queued", None), ("archived", "not_for_me")]


@pytest.mark.requirement("RUN-71")
async def test_an_open_agent_hears_everybody(office: Office) -> None:
    office.publish(participation="open")
    group = office.group(agents=("stock", "expenses"))
    office.say_in(group, "expenses")

    await office.hear()

    assert office.fates() == [("queued", None)]
