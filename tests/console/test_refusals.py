"""A refusal in words: a page, or a fragment for htmx; the other doors keep their own."""

from urllib.parse import quote

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.console import refusals
from app.console.viewer import Viewer
from app.identity.errors import SignInRequired
from app.kernel.errors import AppError, Busy, Conflict, NotFound, PermissionDenied, TooMany
from tests.console.pages import ALICE, application, is_page, visitor


class StepUp(AppError):
    reason = "step_up"
    status = 401


RAISED: dict[str, Exception] = {
    "conflict": Conflict(),
    "forbidden": PermissionDenied(),
    "often": TooMany(retry_after_s=75),
    "busy": Busy(),
    "mine": NotFound(),
    "broken": RuntimeError("hidden cause"),
    "session": SignInRequired(),
    "step_up": StepUp(),
}


def refusing(viewer: Viewer | None = ALICE) -> FastAPI:
    app = application(viewer)

    @app.get("/{kind}")
    async def refuse(kind: str) -> Response:
        raise RAISED.get(kind) or NotFound()

    @app.get("/number/{n}")
    async def number(n: int, page: int = 1) -> Response:
        return Response(str(n + page))

    return app


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("conflict", 409, "It has changed meanwhile. Look at it again."),
        ("forbidden", 403, "Your roles do not allow this."),
        ("often", 429, "You can try again in 1:15."),
        ("mine", 404, "There is nothing here, or it is not yours to see."),
        ("number/1?page=x", 422, "This value does not do."),
    ],
)
def test_a_refusal_is_a_page_in_words(kind: str, status: int, words: str) -> None:
    answer = visitor(refusing()).get(f"/{kind}")

    assert answer.status_code == status
    assert words in answer.text
    assert answer.text.count("<h1>") == 1
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.requirement("UI-26")
def test_what_does_not_exist_and_what_is_not_yours_look_the_same() -> None:
    browser = visitor(refusing())

    unknown, foreign, unroutable, nowhere = (
        browser.get(path).text.replace(path, "·").replace(quote(path, safe=""), "·")
        for path in ("/unknown", "/mine", "/number/none", "/no/such/route")
    )

    assert unknown == foreign == unroutable == nowhere, "but for the address that was asked for"


@pytest.mark.requirement("UI-96")
def test_it_is_said_in_the_reader_s_language() -> None:
    answer = visitor(refusing(None), **{"accept-language": "zh-CN,zh;q=0.9"}).get("/forbidden")

    assert '<html lang="zh-CN"' in answer.text
    assert "您的角色不允许此操作。" in answer.text


def test_htmx_gets_a_fragment_for_the_alerts() -> None:
    answer = visitor(refusing(), **{"hx-request": "true"}).get("/conflict")

    assert answer.status_code == 409
    assert answer.headers["hx-retarget"] == "#alerts"
    assert answer.text.lstrip().startswith('<div id="refusal"')
    assert "<html" not in answer.text


def test_waiting_is_said_to_programs_too() -> None:
    browser = visitor(refusing())

    assert browser.get("/often").headers["retry-after"] == "75"
    assert browser.get("/busy").headers["retry-after"] == "1"


@pytest.mark.requirement("UI-11")
def test_a_fault_of_ours_does_not_tell_its_cause() -> None:
    answer = visitor(refusing()).get("/broken")

    assert answer.status_code == 500
    assert "The fault is ours" in answer.text
    assert "hidden cause" not in answer.text


def test_a_method_that_is_not_taken_says_which_are() -> None:
    answer = visitor(refusing()).post("/conflict")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET"
    assert "does not take that kind of request" in answer.text


@pytest.mark.requirement("SEC-34")
def test_who_is_not_signed_in_is_led_there_but_never_from_a_post_or_a_fragment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refusals, "_leads", {})
    browser = visitor(refusing(None))

    page = browser.get("/session")
    fragment = browser.get("/session", headers={"hx-request": "true"})

    assert (page.status_code, page.headers["location"]) == (303, "/sign-in")
    assert fragment.status_code == 401
    assert 'href="/sign-in"' in fragment.text


def test_a_page_may_take_a_refusal_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_leads", {})

    async def confirm(request: Request, refused: AppError) -> Response | None:
        return None if refusals.is_htmx(request) else Response("confirm", status_code=401)

    refusals.lead(StepUp, confirm)
    browser = visitor(refusing())

    assert browser.get("/step_up").text == "confirm"
    assert 'id="refusal"' in browser.get("/step_up", headers={"hx-request": "true"}).text


def test_the_other_doors_keep_their_own_words() -> None:
    app = FastAPI(openapi_url=None)

    async def problem(request: Request, error: Exception) -> Response:
        return JSONResponse({"reason": getattr(error, "reason", "?")}, status_code=418)

    app.add_exception_handler(AppError, problem)
    refusals.install(app, is_page)

    @app.get("/v1/thing")
    @app.get("/thing")
    async def refuse() -> Response:
        raise Conflict

    browser = visitor(app)

    assert browser.get("/v1/thing").json() == {"reason": "conflict"}
    assert "<h1>" in browser.get("/thing").text
