"""Pages speak the viewer's language, in the viewer's zone, and never let foreign text be markup."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
import time_machine
from starlette.requests import Request
from starlette.responses import Response

from app.aun import markdown
from app.console import flash, markup, view
from app.console.view import draw, render
from app.console.viewer import Viewer, viewing
from tests.console.pages import ALICE, application, templates, visitor

NOON = datetime(2026, 11, 25, 6, 2, 3, tzinfo=UTC)
SHANGHAI = Viewer(time_zone="Asia/Shanghai")
CHINESE = Viewer(time_zone="Asia/Shanghai", language="zh-CN")


@pytest.mark.requirement("UI-97")
@pytest.mark.parametrize(
    ("viewer", "today", "expected"),
    [
        (SHANGHAI, datetime(2026, 11, 25, 10, tzinfo=UTC), "14:02"),
        (SHANGHAI, datetime(2026, 11, 25, 16, 30, tzinfo=UTC), "25 Nov 14:02"),  # 26th there
        (CHINESE, datetime(2026, 11, 27, tzinfo=UTC), "11月25日 14:02"),
        (SHANGHAI, datetime(2027, 1, 1, tzinfo=UTC), "25 Nov 2026 14:02"),
        (CHINESE, datetime(2027, 1, 1, tzinfo=UTC), "2026年11月25日 14:02"),
        (Viewer(), datetime(2026, 11, 25, 10, tzinfo=UTC), "06:02"),
        (Viewer(time_zone="No/Such"), datetime(2026, 11, 25, 10, tzinfo=UTC), "06:02"),
    ],
)
def test_a_time_is_said_as_people_say_it_there(
    viewer: Viewer, today: datetime, expected: str
) -> None:
    with time_machine.travel(today, tick=False), viewing(viewer):
        said = markup.moment(NOON)

    assert said == (
        f'<time datetime="2026-11-25T06:02:03Z" title="2026-11-25 06:02:03 UTC">{expected}</time>'
    )


@pytest.mark.requirement("UI-97")
def test_a_day_is_the_day_it_is_where_the_reader_is() -> None:
    late = datetime(2026, 11, 25, 23, 0, tzinfo=UTC)
    with time_machine.travel(NOON, tick=False), viewing(SHANGHAI):
        assert markup.day(late) == '<time datetime="2026-11-26">26 Nov</time>'
        assert markup.day(date(2025, 3, 1)) == '<time datetime="2025-03-01">1 Mar 2025</time>'
        assert markup.zone_offset() == "UTC+08:00"


@pytest.mark.requirement("UI-97")
@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(1.24, "1.2 s"), (59.94, "59.9 s"), (272, "4:32"), (7509, "2:05:09")],
)
def test_a_duration_is_short(seconds: float, expected: str) -> None:
    assert markup.duration(seconds) == expected


@pytest.mark.requirement("UI-97")
def test_long_durations_count_days_in_both_languages() -> None:
    with viewing(CHINESE):
        assert markup.duration(timedelta(days=3)) == "3天"
    assert markup.duration(timedelta(days=3, hours=5)) == "3 days"
    assert markup.number(1284) == "1,284"


@pytest.mark.requirement("UI-60")
@pytest.mark.parametrize(
    ("text", "chips"),
    [
        ("pay\u202efdp.exe", ["U+202E"]),
        ("a\u200bb\u2060c\ufeff", ["U+200B", "U+2060", "U+FEFF"]),
        ("\u2066x\u2069", ["U+2066", "U+2069"]),
        ("EXP\u00a02041", ["U+00A0"]),
        ("\u0301lone", ["U+0301"]),
        ("\u3164", ["U+3164"]),
        ("tag\U000e0041", ["U+E0041"]),
        ("caf\u0065\u0301, 報銷, Ωμέγα, ไทย", []),
    ],
)
def test_what_hides_in_a_name_is_drawn(text: str, chips: list[str]) -> None:
    drawn = str(markup.visible(text))

    assert [f"⟨{chip}⟩" in drawn for chip in chips] == [True] * len(chips)
    assert drawn.count("chip-invisible") == len(chips)
    assert drawn.startswith("<bdi>")


@pytest.mark.requirement("UI-58")
def test_foreign_text_is_never_markup() -> None:
    evil = "<img src=x onerror=alert(1)>\"'"
    with templates(
        _evil='<p title="{{ text }}">{{ text }} {{ text | visible }} {{ _("Sign in") }}</p>'
    ):
        drawn = draw("_evil.html", Viewer(), text=evil)

    assert "<img" not in drawn
    assert drawn.count("&lt;img") == 3


def test_a_name_nobody_gave_is_an_error_and_not_a_blank() -> None:
    with templates(_hole="{{ nobody_gave_this }}"), pytest.raises(Exception, match="nobody_gave"):
        draw("_hole.html", Viewer())


@pytest.mark.requirement("UI-96")
def test_a_page_is_in_the_viewer_s_language_theme_and_name() -> None:
    app = application(replace(ALICE, language="zh-CN", theme="dark"))

    @app.get("/page")
    async def page(request: Request) -> Response:
        return render(request, "page.html")

    with templates(page='{% extends "_shell.html" %}{% block content %}<h1>x</h1>{% endblock %}'):
        answer = visitor(app, **{"accept-language": "en"}).get("/page")

    assert '<html lang="zh-CN" data-theme="dark">' in answer.text
    assert "跳到正文" in answer.text
    assert 'content="token-of-the-session"' in answer.text
    assert answer.headers["content-language"] == "zh-CN"


def test_a_notice_is_shown_once_and_only_if_it_is_ours() -> None:
    app = application(ALICE)
    said = flash.notice("Fill this in.")

    @app.get("/page")
    async def page(request: Request) -> Response:
        return render(request, "page.html")

    with templates(page='{% extends "_shell.html" %}{% block content %}<h1>x</h1>{% endblock %}'):
        ours = visitor(app, cookie=f"flash={said.key}").get("/page")
        theirs = visitor(app, cookie="flash=Call+0800-EVIL").get("/page")

    assert "<p>Fill this in.</p>" in ours.text
    assert 'flash=""' in ours.headers["set-cookie"]
    assert "EVIL" not in theirs.text


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "https://evil.example", ""])
def test_a_redirect_stays_here(path: str) -> None:
    with pytest.raises(ValueError, match="not a path of ours"):
        flash.see_other(path)


def test_addresses_leave_out_what_says_nothing() -> None:
    assert view.url("/p", q="", page=None, role=["a", "b"], n=0) == "/p?role=a&role=b&n=0"
    assert view.url("/p", q=None) == "/p"


@pytest.mark.requirement("CON-83", "UI-58")
@pytest.mark.parametrize(
    "text",
    [
        '[x](mailto:a@b.example "<pre><img src=x onerror=alert(1)></pre>")',
        '[x](https:///nowhere "<pre><img src=x onerror=alert(1)></pre>")',
        "[x](mailto:<pre><img>)",
        "`<pre><img src=x onerror=alert(1)>`",
        "<pre><img src=x onerror=alert(1)></pre>",
    ],
)
def test_what_looks_like_code_in_a_message_gets_no_button_and_is_no_markup(text: str) -> None:
    with viewing(SHANGHAI):
        drawn = markup.cleaned(markdown.html_of(text))
        code = markup.cleaned(markdown.html_of("```\n<pre>\n```"))

    assert "<pre" not in drawn
    assert "<img" not in drawn
    assert "data-copy" not in drawn
    assert code.count("<pre data-copy-text>") == 1
    assert "&lt;pre&gt;" in code
