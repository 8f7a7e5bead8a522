"""Which language and theme a reader gets, and how a browser keeps them before sign-in."""

import pytest
from starlette.requests import Request
from starlette.responses import Response

from app.console.language import choose
from app.console.pages import look
from app.console.view import render
from tests.console.pages import application, templates, visitor

SAME_ORIGIN = {"sec-fetch-site": "same-origin"}


@pytest.mark.requirement("UI-96")
@pytest.mark.parametrize(
    ("user", "cookie", "accept", "tenant", "chosen"),
    [
        ("en", "zh-CN", "zh", "zh-CN", "en"),
        (None, "zh-CN", "en", "en", "zh-CN"),
        (None, None, "fr, zh-TW;q=0.8, en;q=0.3", "en", "zh-CN"),
        (None, "xx", "fr", "zh-CN", "zh-CN"),
        (None, None, "fr", None, "en"),
        (None, None, ";;,q=,", None, "en"),
    ],
)
def test_the_setting_comes_first_then_cookie_browser_tenant_english(
    user: str | None, cookie: str | None, accept: str, tenant: str | None, chosen: str
) -> None:
    assert choose(user=user, cookie=cookie, accept=accept, tenant=tenant) == chosen


def test_a_choice_before_sign_in_is_kept_and_the_page_comes_back() -> None:
    app = application()
    app.include_router(look.router)

    @app.get("/door")
    async def door(request: Request) -> Response:
        return render(request, "door.html")

    browser = visitor(app, **SAME_ORIGIN)
    with templates(door='{% extends "_entry.html" %}{% block content %}<h1>x</h1>{% endblock %}'):
        assert '<html lang="en" data-theme="system">' in browser.get("/door").text

        answer = browser.post("/look", data={"language": "zh-CN", "theme": "dark", "back": "/door"})
        page = browser.get(answer.headers["location"]).text

    assert answer.status_code == 303
    assert '<html lang="zh-CN" data-theme="dark">' in page


@pytest.mark.parametrize("back", ["//evil.example/x", "https://evil.example", "/\\evil.example"])
def test_the_way_back_is_one_of_ours(back: str) -> None:
    app = application()
    app.include_router(look.router)

    answer = visitor(app, **SAME_ORIGIN).post("/look", data={"language": "en", "back": back})

    assert answer.headers["location"] == "/"


@pytest.mark.parametrize("form", [{"language": "xx"}, {"theme": "pink"}, {"user": "1"}])
def test_nothing_else_is_kept(form: dict[str, str]) -> None:
    app = application()
    app.include_router(look.router)

    answer = visitor(app, **SAME_ORIGIN).post("/look", data=form)

    assert answer.status_code == 422
    assert "set-cookie" not in answer.headers


@pytest.mark.requirement("SEC-34")
@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_another_site_changes_nothing_here(site: str) -> None:
    app = application()
    app.include_router(look.router)

    answer = visitor(app, **{"sec-fetch-site": site}).post("/look", data={"language": "zh-CN"})

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
