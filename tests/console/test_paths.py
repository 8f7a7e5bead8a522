"""Where a redirect may lead: nowhere but to our own pages (SEC-46)."""

import pytest

from app.console import paths
from tests.people import World
from tests.signing_in import PASSWORD, give_password, send

OWN = ["/", "/settings", "/settings?x=1&y=%2F", "/a/b.c", "/a%2fb", "/人", "/a?next=//evil", "/.x"]
FOREIGN = [
    "",
    "settings",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\r\nLocation: https://evil.example",
    "/%0d%0a\r\nx",
    " //evil.example",
    " /settings",
    "https://evil.example",
    "https:evil.example",
    "https:/evil.example",
    "http://localhost:8001/",
    "http://localhost:8000@evil.example/",
    "http://evil.example#@localhost:8000/",
    "//localhost:8001/",
    "//localhost:8000",
    "javascript:alert(1)",
    "data:text/html,x",
    "/..//evil.example",
    "/x/..//evil.example",
    "/x/../..//evil.example",
    "/.//evil.example",
    "/./\\evil.example",
    "/x\\..\\..\\evil",
    "?next=x",
    "#x",
    ".//evil",
    "../x",
    "/\x00",
    "/\x7f",
    "/\u2028x\n",
    "/a b",
    "ftp://x",
    "mailto:x",
    "//[::1]/",
    "http://[",
    "//%5cevil",
    "\u2215\u2215evil",
    "///",
    "//",
    "/\\",
    "/\\/evil",
    "HTTPS://EVIL",
    "hTtP:evil",
    "blob:x",
    "view-source:/",
    "https:///evil.example",
    "https:\\\\evil.example",
    "http:////evil",
    "//evil.example/..",
    "//evil.example%2f@localhost:8000",
    "//evil\u3002example",
    "/" + "a" * 2_000,
]


@pytest.mark.requirement("SEC-T23", "SEC-46")
@pytest.mark.parametrize("path", OWN)
def test_a_path_of_ours_is_followed(path: str) -> None:
    assert paths.own(path) == path


@pytest.mark.requirement("SEC-T23", "SEC-46")
@pytest.mark.parametrize("path", FOREIGN)
def test_everything_else_is_the_start_page(path: str) -> None:
    assert paths.own(path) == "/"


@pytest.mark.requirement("SEC-T23")
async def test_sign_in_leads_to_no_other_site(world: World) -> None:
    give_password(world.acme["alice"])
    for path in ("//evil.example", "/\\evil.example", "/%5cevil.example", "https:evil"):
        async with world.anonymous() as browser:
            page = await browser.get("/sign-in", params={"next": path})
            assert "evil" not in page.text or path.startswith("/%5c")
            entered = await send(
                browser, "/sign-in", tenant="acme", login="alice", password=PASSWORD, next=path
            )
            assert entered.headers["location"] in {"/", "/%5cevil.example"}
            again = await browser.get("/sign-in", params={"next": path})
            assert again.headers["location"] in {"/", "/%5cevil.example"}


@pytest.mark.requirement("SEC-T23")
async def test_a_change_of_language_leads_to_no_other_site(world: World) -> None:
    async with world.anonymous() as browser:
        for path in FOREIGN[2:20]:
            answer = await browser.post("/look", data={"language": "en", "back": path})
            assert answer.headers.get("location", "/") == "/", path
