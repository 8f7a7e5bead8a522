"""The page of a run, and a run in its conversation: thoughts, calls, ends, and who sees them."""

import re

import pytest
from sqlmodel import select

from app.access import standing
from app.aun.models import Message
from app.console.live import drawing, regions
from app.console.live.rendering import Hearer
from app.console.viewer import Viewer
from app.kernel import clock, db, event_log
from app.kernel.db import Work
from app.kernel.event_log import Position
from app.kernel.feed import News
from app.kernel.streams import Passing
from app.runs import told
from app.runs.run_models import Run, ToolCall
from tests.console import run_stage
from tests.console.run_rows import RunRows
from tests.console.run_stage import Stage
from tests.people import World

THOUGHT = "Three drafts; the October one is meant."


def usual(rows: RunRows) -> None:
    """It heard a message, thought, called, and said nothing."""
    rows.begin()
    message = rows.work.session.exec(
        select(Message).where(Message.conversation_id == rows.conversation_id)
    ).first()
    assert message is not None
    rows.hear(message, state="completed", settled_at=rows.at)
    rows.think(THOUGHT)
    rows.call("read_record", result={"outcome": "done", "result": {"total": 3}})
    rows.call(
        "expense.report.submit",
        state="failed",
        stage="state_check",
        reason="state_changed",
        public_error="It was submitted already.",
        timings={"load": 1},
    )
    rows.become("completed", tokens_used=1_280)


def log_of(page: str) -> str:
    """The transcript of a conversation's page."""
    return page.partition('id="messages"')[2].partition('id="outbox"')[0]


@pytest.mark.requirement("UI-5", "UI-10", "UI-12", "CON-67")
async def test_a_run_stands_between_the_messages_of_its_person_alone(world: World) -> None:
    alice, bob = world.acme["alice"], world.acme["bob"]
    async with world.client(alice) as hers, world.client(bob) as his:
        stage = await run_stage.opened(world, hers)
        run_id = stage.run(usual)
        await hers.post(f"{stage.path}/messages", data={"text": "Later", "client_id": "c-2"})

        page = log_of((await hers.get(stage.path)).text)

        assert page.index("Hello") < page.index(THOUGHT) < page.index("Later")
        assert page.index(THOUGHT) < page.index("Refused at state_check") < page.index("Later")
        assert "Finished without a message" in page
        assert f'href="/runs/{run_id}"' in page
        assert ">used<" in page, "what became of her message"
        places = [float(each) for each in re.findall(r'<li[^>]* data-seq="([\d.]+)"', page)]
        assert places == sorted(places)
        assert len(set(places)) == len(places)
        older = await hers.get(f"{stage.path}?before=1", headers={"HX-Request": "true"})
        assert THOUGHT not in older.text

        assert (await his.get(f"/runs/{run_id}")).status_code == 404
        for query in ("Three drafts", "October"):
            found = await hers.get("/conversations/new", params={"q": query})
            assert THOUGHT not in found.text


@pytest.mark.requirement("UI-12", "RUN-113", "UI-11", "UI-26")
async def test_the_page_of_a_run_tells_it_in_order_and_thoughts_to_few(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        run_id = stage.run(usual)
        page = (await hers.get(f"/runs/{run_id}")).text
        assert "Round 1" in page
        assert page.index("Hello") < page.index("Turn 1") < page.index(THOUGHT)
        assert "state_check" in page
        assert "It was submitted already." in page

    async with world.client(world.acme["axel"]) as auditor:
        page = (await auditor.get(f"/runs/{run_id}")).text
        assert THOUGHT in page
        assert "Hello" not in page, "the messages stay theirs"
    async with world.client(world.acme["ada"]) as administrator:
        page = (await administrator.get(f"/runs/{run_id}")).text
        assert "Turn 1" in page
        assert THOUGHT not in page
        assert "Thoughts are for the person it works for" in page
    for login, company in (("bob", world.acme), ("gina", world.globex)):
        async with world.client(company[login]) as other:
            unknown = await other.get(f"/runs/{'0' * 26}")
            theirs = await other.get(f"/runs/{run_id}")
            assert theirs.status_code == unknown.status_code == 404


ENDS = {
    "completed": (None, "Finished without a message"),
    "canceled": ("by_user", "Stopped by Alice"),
    "interrupted": ("steps", "Interrupted: it used all its steps"),
    "outcome_unknown": (None, "Outcome unknown: somebody has to look"),
    "failed": ("model_auth", "Failed: the model gave no answer"),
    "suspended": (None, "Waiting for a message"),
}


@pytest.mark.requirement("UI-10", "UI-86")
@pytest.mark.parametrize("state", ENDS)
async def test_the_six_ends_stay_six(world: World, state: str) -> None:
    reason, words = ENDS[state]
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)

        def play(rows: RunRows) -> None:
            rows.begin(cancel_requested_by=stage.alice_id)
            rows.think(THOUGHT)
            if state == "suspended":
                rows.wait("message")
            else:
                rows.become(state, reason=reason)

        run_id = stage.run(play)
        pages = [(await hers.get(path)).text for path in (stage.path, f"/runs/{run_id}")]

    for page in pages:
        assert words in page
        others = {said for name, (_, said) in ENDS.items() if name != state}
        assert not any(other in page for other in others)
        assert ("Stop</button>" in page) is (state == "suspended")
    is_red = "badge-danger" in pages[1].partition('class="run-state"')[2].partition("</div>")[0]
    assert is_red is (state == "failed")


@pytest.mark.requirement("UI-10", "CON-56")
async def test_a_run_that_was_asked_to_stop_is_stopping_until_it_has(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        run_id = stage.run(
            lambda rows: rows.begin(
                cancel_requested_at=clock.now(), cancel_requested_by=stage.alice_id
            )
        )
        pages = [(await hers.get(path)).text for path in (stage.path, f"/runs/{run_id}")]

    for page in pages:
        assert "Stopping…" in page
        assert "Stopped" not in page
        assert "Stop</button>" not in page, "once is enough"


@pytest.mark.requirement("UI-9")
@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"state": "queued", "run_id": None, "accepted_at": None}, "queued"),
        ({"state": "queued", "hold": "approval", "accepted_at": None}, "waits for a decision"),
        ({"state": "accepted"}, "accepted"),
        ({"state": "completed"}, "used"),
        ({"state": "canceled"}, "not finished: the run was stopped"),
        ({"state": "dropped", "reason": "context_reset"}, "dropped: the agent&#39;s memory"),
    ],
)
async def test_a_message_says_what_became_of_it(
    world: World, row: dict[str, str | None], words: str
) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        message = stage.newest()
        stage.run(lambda rows: rows.begin().hear(message, **row))

        page = (await hers.get(stage.path)).text
        chip = page.partition(f'id="message-{message.id}-input"')[2].partition("</div>")[0]

        assert words in chip
        assert ("send again" in chip) is (row["state"] == "canceled")
        assert "/withdrawal" not in chip, "nothing is asked for"
        if row["state"] == "canceled":
            again = (await hers.get(f"{stage.path}?again={message.id}")).text
            assert "Hello</textarea>" in again
        foreign = await hers.get(f"{stage.path}?again={'0' * 26}")
        assert foreign.status_code == 404


@pytest.mark.requirement("UI-9", "UI-69")
async def test_a_message_behind_a_request_offers_to_withdraw_it(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        message = stage.newest()

        def play(rows: RunRows) -> None:
            rows.begin()
            rows.hear(message, state="queued", hold="approval", run_id=None, accepted_at=None)
            rows.wait("approval")

        run_id = stage.run(play)
        page = (await hers.get(stage.path)).text
        chip = page.partition(f'id="message-{message.id}-input"')[2].partition("</div>")[0]

        assert "waits for a decision" in chip
        assert f'action="/runs/{run_id}/withdrawal"' in chip
        assert (await hers.post(f"/runs/{run_id}/withdrawal")).status_code == 303
        state = db.read_now(lambda s: s.get_one(Run, (world.acme.id, run_id)).state)
        assert state in {"suspended", "queued"}, "it goes on, and reads"


@pytest.mark.requirement("UI-9", "RUN-9")
async def test_a_person_chooses_between_now_and_after_this_run(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        for mode, wanted in (("follow_up", "follow_up"), ("steering", None)):
            data = {"text": mode, "client_id": f"c-{mode}", "input_mode": mode}
            assert (await hers.post(f"{stage.path}/messages", data=data)).status_code == 303
            assert (stage.newest().payload or {}).get("input_mode") == wanted
        data = {"text": "x", "client_id": "c-x", "input_mode": "at_once"}
        assert (await hers.post(f"{stage.path}/messages", data=data)).status_code == 422


# --- live ---


async def frames(stage: Stage, login: str, since: int) -> list[str]:
    """What the stream of somebody gets of what was logged after `since`."""
    world = stage.world
    person = world.person(world.acme[login])
    rights = await db.read(standing.rights, person)
    assert rights is not None
    position = await db.read(event_log.newest, world.acme.id)
    found = await db.read(event_log.since, world.acme.id, position.epoch, since)
    assert isinstance(found, list)
    hearer = Hearer(person, "en", "UTC", rights.aid)
    news = [News(Position(position.epoch, each.seq), each) for each in found if rights.allow(each)]
    drawn = [(await drawing.of_news(each, hearer)).decode() for each in news]
    return [each for each in drawn if each]


def tell(work: Work, run_id: str, tenant_id: str) -> None:
    """Everything the loop would say of a run and its newest call."""
    run = work.session.get_one(Run, (tenant_id, run_id))
    told.run(work, run)
    told.turn(work, run, 1, "t")
    told.usage(work, run)
    calls = select(ToolCall).where(ToolCall.run_id == run_id)
    for call in work.session.exec(calls).all():
        told.call(work, run, call)


@pytest.mark.requirement("UI-12", "RUN-80", "UI-34", "UI-35")
async def test_the_stream_brings_a_run_to_its_person_and_to_auditors(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
    run_id = stage.run(usual)
    since = (await db.read(event_log.newest, world.acme.id)).seq

    await db.transaction(tell, run_id, world.acme.id)

    alice = await frames(stage, "alice", since)
    joined = "".join(alice)
    region = f"[data-region=&#39;conversation:{stage.conversation_id}&#39;]"
    assert f'hx-target="{region}" hx-swap="beforeend"' in joined
    assert THOUGHT in joined
    assert f'hx-target="#run-{run_id}-strip" hx-swap="delete"' in joined
    assert f'id="run-{run_id}-end"' in joined
    for frame in alice:
        made = set(re.findall(r' id="([\w-]+)"', frame))
        targets = set(re.findall(r'hx-target="#([\w-]+)"', frame))
        replaced = set(re.findall(r'hx-target="#([\w-]+)" hx-swap="outer', frame))
        assert not made & (targets - replaced), "nothing addresses what its own frame makes"

    axel = "".join(await frames(stage, "axel", since))
    assert THOUGHT in axel
    assert region not in axel, "a conversation is its members'"
    for login in ("bob", "ada"):
        assert not await frames(stage, login, since)


def spoken(rows: RunRows, message: Message) -> None:
    """It said something by a call, could not say another thing, and closed without a word."""
    rows.begin()
    rows.think(THOUGHT, input_tokens=0, output_tokens=0)
    rows.say(message, rows.call("send_message", result={"outcome": "done"}).id)
    rows.think(THOUGHT)
    rows.call("send_message", state="failed", public_error="Nobody is there.")
    rows.think("")
    rows.become("completed")


@pytest.mark.requirement("UI-5", "UI-12", "CON-12")
async def test_what_a_call_said_is_not_shown_twice(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers, "**EXP-41** is paid")
        run_id = stage.run(lambda rows: spoken(rows, stage.newest()))
        since = (await db.read(event_log.newest, world.acme.id)).seq

        page = log_of((await hers.get(stage.path)).text)
        await db.transaction(tell_turns, run_id, world.acme.id)
        told_live = "".join(await frames(stage, "alice", since))

        lines = re.findall(r'<li id="turn-.*?</li>', page, re.DOTALL)
        assert [each.count('class="tool"') for each in lines] == [0, 1, 0]
        assert "Nobody is there." in lines[1]
        assert [" hidden>" in each for each in lines] == [False, False, True]
        live = re.findall(r'<li id="turn-.*?</li>', told_live, re.DOTALL)
        assert [re.sub(r"(\s|data: )+", " ", each) for each in live] == [
            re.sub(r"(\s|data: )+", " ", each) for each in lines
        ], "a reload shows the same"

        whole = (await hers.get(f"/runs/{run_id}")).text
        assert whole.count('class="tool"') == 2
        assert "**" not in whole.partition('class="run-said"')[2].partition("</p>")[0]
        assert "EXP-41 is paid" in whole
        assert "0 in, 0 out" not in whole
        assert "1,200 in, 80 out" in whole
        assert "0 tokens" not in whole, "nothing was used"


def tell_turns(work: Work, run_id: str, tenant_id: str) -> None:
    """What the loop says of three turns."""
    run = work.session.get_one(Run, (tenant_id, run_id))
    for number in (1, 2, 3):
        told.turn(work, run, number, "t")


@pytest.mark.requirement("RUN-80", "UI-36")
async def test_an_attempt_gets_its_room_before_its_text(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as hers:
        stage = await run_stage.opened(world, hers)

    def play(rows: RunRows) -> None:
        rows.begin()
        rows.turn = 1
        thought_id = rows.ask(attempt=1, state="cut", fragment="I was about")
        rows.ask(attempt=2, thought_id=thought_id, state="started", ended_at=None, finish=None)

    run_id = stage.run(play)
    began = told.Began(
        tenant_id=world.acme.id,
        user_id=alice.id,
        run_id=run_id,
        conversation_id=stage.conversation_id,
        turn=1,
        thought_id="t",
        attempt=2,
    )
    hearer = Hearer(world.person(alice), "en", "UTC")
    other = Hearer(world.person(world.acme["axel"]), "en", "UTC")

    frame = (await drawing.of_passing(Passing(began), hearer)).decode()

    [node] = set(re.findall(r'<div id="(thought-\w{26}-2-text)"[^>]*data-streaming></div>', frame))
    assert "I was about" in frame
    assert "data-streaming>I was about" not in frame
    assert "Thinking…" in frame
    assert node.replace("-2-", "-1-") in frame
    assert await drawing.of_passing(Passing(began), other) == b""


@pytest.mark.requirement("UI-46", "CON-12")
async def test_a_redraw_shows_the_work_where_it_stood(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as hers:
        stage = await run_stage.opened(world, hers)
        stage.run(usual)
        run_id = stage.run(lambda rows: rows.begin(state="suspended"))
        page = (await hers.get(stage.path)).text
    person = world.person(alice)
    reader = Viewer(tenant_id=world.acme.id, language="en")
    asked = regions.asked(
        person,
        [
            f"conversation:{stage.conversation_id}@0.500000123",
            f"strips:{stage.conversation_id}",
            f"run:{run_id}",
        ],
    )

    _, html = await db.read(regions.draw, reader, asked)

    assert re.findall(r'data-seq="[\d.]+"', log_of(page)) == [
        each
        for each in re.findall(r'data-seq="[\d.]+"', html.partition("</hx-partial>")[0])
        if each
    ]
    assert html.count(f'id="run-{run_id}-strip"') == page.count(f'id="run-{run_id}-strip"') == 1
    stranger = world.person(world.acme["bob"])
    theirs = regions.asked(stranger, [f"strips:{stage.conversation_id}", f"run:{run_id}"])
    _, html = await db.read(regions.draw, reader, theirs)
    assert run_id not in html.replace(f"run:{run_id}", "")


# --- stopping ---


@pytest.mark.requirement("RUN-113", "RUN-69", "UI-10", "CON-53", "CON-56")
async def test_stop_ends_what_waits_at_once_and_asks_what_works(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        waiting = stage.run(lambda rows: rows.begin(state="suspended"))
        stopped = await hers.post(
            f"/runs/{waiting}/cancellation", data={"shown_in": "conversation"}
        )
        assert stopped.headers["location"] == stage.path
        assert db.read_now(lambda s: s.get_one(Run, (world.acme.id, waiting)).state) == "canceled"
        assert "Stopped by Alice" in (await hers.get(stage.path)).text

        working = stage.run(lambda rows: rows.begin(claim_token="t", claimed_by="worker"))
        path = f"/runs/{working}/cancellation"
        htmx = {"HX-Request": "true"}
        strip = (await hers.post(path, data={"shown_in": "conversation"}, headers=htmx)).text
        assert f'id="run-{working}-strip"' in strip
        assert "Stopping…" in strip
        head = (await hers.post(path, headers=htmx)).text
        assert f'id="run-{working}-head"' in head
        assert "Stopped" not in head

        again = await hers.post(f"/runs/{waiting}/cancellation", follow_redirects=True)
        assert "The run is over already." in again.text


@pytest.mark.requirement("RUN-113", "RUN-69", "UI-26")
async def test_a_run_is_stopped_by_its_person_and_by_administrators_alone(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
    run_id = stage.run(lambda rows: rows.begin(state="suspended"))
    path = f"/runs/{run_id}/cancellation"

    for login, status in (("bob", 404), ("axel", 403)):
        async with world.client(world.acme[login]) as other:
            assert (await other.post(path)).status_code == status
            assert (await other.post(f"/runs/{run_id}/withdrawal")).status_code == 404
            if login == "axel":
                assert "Stop</button>" not in (await other.get(f"/runs/{run_id}")).text
    assert db.read_now(lambda s: s.get_one(Run, (world.acme.id, run_id)).state) == "suspended"

    async with world.client(world.acme["ada"]) as administrator:
        assert "Stop</button>" in (await administrator.get(f"/runs/{run_id}")).text
        assert (await administrator.post(path)).status_code == 303
    run = db.read_now(lambda s: s.get_one(Run, (world.acme.id, run_id)))
    assert (run.state, run.reason) == ("canceled", "by_user")
    async with world.client(world.acme["alice"]) as hers:
        assert "Stopped by Ada" in (await hers.get(stage.path)).text
        late = await hers.post(f"/runs/{run_id}/withdrawal")
        assert late.status_code == 409
