"""Groups at the console: made, managed, filtered for agents, and left."""

import re

import httpx2
import pytest

from app.aun import rpc
from tests.console.test_conversations import aid, me, messages
from tests.people import World


async def made(browser: httpx2.AsyncClient, *members: str) -> str:
    """The path of a new group."""
    form = {"name": "Close 结账", "description": "What is open", "members": list(members)}
    answer = await browser.post("/conversations/groups", data=form)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


@pytest.mark.requirement("UI-7")
async def test_an_agent_hears_what_mentions_it_and_the_page_says_so(world: World) -> None:
    alice, bob, stock = world.acme["alice"], world.acme["bob"], world.acme.agents["stock"]
    async with world.client(alice) as hers, world.client(bob) as his:
        offered = (await hers.get("/conversations/new/group")).text
        agent_aid = re.findall(r'value="(stock[^"]*)"', offered)[0]
        path = await made(hers, aid(bob), agent_aid)
        look = {"name": "Close", "visibility": "private", "join_mode": "approval"}
        look |= {"question": "Why?", "mention_mode": "mention-only"}
        assert (await hers.post(f"{path}/settings", data=look)).status_code == 303
        assert (await his.post(f"{path}/settings", data=look)).status_code == 403
        await hers.post(f"{path}/messages", data={"text": "for people", "client_id": "c-1"})
        for_it = {"text": f"@{stock.name} list", "client_id": "c-2"}
        await hers.post(f"{path}/messages", data=for_it)
        await his.post(f"{path}/messages", data={"text": "@all hear", "client_id": "c-3"})

        page = (await his.get(path)).text
        assert page.count(f"not delivered to {stock.name} (not mentioned)") == 1
        assert len(messages(page)) == 3
        assert "ignored" not in page
        assert "Why?" in (await hers.get(f"{path}/settings")).text


async def test_members_come_by_code_invitation_and_request_and_go(world: World) -> None:
    people = world.acme
    async with (
        world.client(people["alice"]) as owner,
        world.client(people["bob"]) as bob,
        world.client(people["axel"]) as axel,
    ):
        path = await made(owner)
        assert (await bob.get(path)).status_code == 404
        await owner.post(f"{path}/invite-codes", data={"max_uses": "1"})
        shown = (await owner.get(f"{path}/settings")).text
        code = re.findall(r"data-copy-text>([^<]+)<", shown)[0]
        joined = await bob.post("/conversations/memberships", data={"code": code})
        assert joined.headers["location"] == path
        used = await axel.post("/conversations/memberships", data={"code": code})
        assert used.status_code >= 400

        found = (await owner.get(f"{path}/members?q=axel")).text
        assert f'value="{aid(people["axel"])}"' in found
        await owner.post(f"{path}/members", data={"aid": aid(people["axel"])})
        role = {"aid": aid(people["bob"]), "role": "admin"}
        await owner.post(f"{path}/members/role", data=role)
        assert "administrator" in (await axel.get(f"{path}/members")).text
        gone = await bob.post(f"{path}/members/removal", data={"aid": aid(people["axel"])})
        assert gone.status_code == 303
        assert (await axel.get(path)).status_code == 404

        assert (await owner.post(f"{path}/departure")).status_code == 409, "an owner stays"
        handed = await owner.post(f"{path}/owner", data={"aid": aid(people["bob"])})
        assert handed.status_code == 303
        assert "Leave" in (await owner.get(f"{path}/departure")).text
        assert (await owner.post(f"{path}/departure")).headers["location"] == "/conversations"
        assert (await owner.get(path)).status_code == 404
        assert "Dissolve" in (await bob.get(f"{path}/dissolution")).text
        assert (await bob.post(f"{path}/dissolution")).status_code == 303
        late = await bob.post(f"{path}/messages", data={"text": "x", "client_id": "c-9"})
        assert late.status_code == 409
        assert "dissolved" in late.text
        revoked = {"code": code}
        assert (await bob.post(f"{path}/invite-codes/revocation", data=revoked)).status_code == 409


async def test_an_invitation_is_taken_or_declined_in_the_list(world: World) -> None:
    alice, bob, axel = (world.acme[login] for login in ("alice", "bob", "axel"))
    async with world.client(alice) as hers, world.client(bob) as his, world.client(axel) as third:
        path = await made(hers)
        listed = await rpc.invoke(me(alice), "group.list_my", {})
        group_id = listed["items"][0]["group_id"]
        for who in (bob, axel):
            invited = {"group_id": group_id, "aid": aid(who)}
            await rpc.invoke(me(alice), "group.invite_member", invited)
        for browser, verdict, status in ((his, "accept", 200), (third, "decline", 404)):
            page = (await browser.get("/conversations")).text
            assert "You are invited into the group" in page
            action = re.findall(r'action="(/conversations/invitations/\w+)"', page)[0]
            assert (await browser.post(action, data={"verdict": verdict})).status_code == 303
            assert (await browser.get(path)).status_code == status


async def test_a_wish_to_join_is_answered(world: World) -> None:
    alice, bob = world.acme["alice"], world.acme["bob"]
    async with world.client(alice) as hers, world.client(bob) as his:
        path = await made(hers)
        look = {"name": "Open", "visibility": "public", "join_mode": "approval"}
        await hers.post(f"{path}/settings", data=look | {"mention_mode": "disabled"})
        [group] = (await rpc.invoke(me(bob), "group.search", {"query": "Open"}))["items"]
        wish = {"group_id": group["group_id"], "message": "I close the books"}
        await rpc.invoke(me(bob), "group.request_join", wish)
        assert "I close the books" in (await hers.get(f"{path}/settings")).text
        answer = {"aid": aid(bob), "verdict": "accept"}
        assert (await hers.post(f"{path}/join-requests", data=answer)).status_code == 303
        assert (await his.get(path)).status_code == 200
