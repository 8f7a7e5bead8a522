"""Foreign text as HTML: what stays of it, and what never does."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.aun.markdown import ATTRIBUTES, TAGS, html_of, words_of

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<script>alert(1)</script>",
    '<form action="/x"><input name=a></form>',
    "<base href=//evil.example>",
    "<style>*{display:none}</style>",
    '<div hx-get="/x" hx-trigger="load">',
    '<hx-partial hx-target="#x">a</hx-partial>',
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "<javascript:alert(1)>",
    "![x](https://evil.example/pixel.png)",
    '[x](https://a.example "\\" onmouseover=alert(1)")',
    '```js" onmouseover="alert(1)\ncode\n```',
    "<iframe src=//evil.example></iframe>",
]


def _tags(html: str) -> list[tuple[str, str]]:
    return re.findall(r"<([a-zA-Z][a-zA-Z0-9-]*)((?:\s[^>]*)?)>", html)


def _is_inert(html: str) -> bool:
    for tag, attributes in _tags(html):
        names = set(re.findall(r'([a-zA-Z:-]+)="', attributes))
        if tag not in TAGS or not names <= ATTRIBUTES.get(tag, set()) | {"rel", "target"}:
            return False
        for href in re.findall(r'href="([^"]*)"', attributes):
            if not re.match(r"(?i)(https?|mailto):", href):
                return False
    return True


@pytest.mark.requirement("SEC-52", "UI-56", "CON-83", "CON-84")
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_written_in_a_message_is_alive(text: str) -> None:
    assert _is_inert(html_of(text)), html_of(text)


@pytest.mark.requirement("UI-56")
@given(text=st.text(alphabet=st.sampled_from("<>\"'&=[]()!`#*_~|\n jsavcriptonehx:/-@")))
def test_no_text_is_alive(text: str) -> None:
    assert _is_inert(html_of(text))


@pytest.mark.requirement("UI-58", "CON-85", "CON-68")
@pytest.mark.parametrize("text", ["test<test", "a < b && c > d", "&lt;", "<think>half"])
def test_text_is_shown_as_typed(text: str) -> None:
    shown = re.sub(r"<[^>]*>", "", html_of(text)).strip()
    unescaped = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert unescaped == text


@pytest.mark.parametrize("text", ["a < b && c > d", "one  two", "&lt;", "<b>no</b>", "<a x>"])
def test_the_words_of_plain_text_are_the_text(text: str) -> None:
    assert words_of(html_of(text)) == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("**Now**, un*believ*able: `A4`.", "Now, unbelievable: A4."),
        ("# Stock\nlow\n\n- A4\n- A5", "Stock low A4 A5"),
        ("| Item | Level |\n|---|---|\n| A4 | 40 |", "Item Level A4 40"),
        ("```python\nif a: b()\n```", "if a: b()"),
        ('[mail](mailto:a@b.example "a > b < c") ~~me~~', "mail me"),
    ],
)
def test_the_words_of_a_message_have_no_marks(text: str, words: str) -> None:
    assert words_of(html_of(text)) == words


@pytest.mark.requirement("UI-56", "UI-57", "UI-59")
def test_what_people_write_is_rendered() -> None:
    html = html_of(
        "# Title\n\n**bold** ~~gone~~ one\ntwo\n\n- a\n- b\n\n3. three\n\n"
        "| a | b |\n|--:|---|\n| 1 | 2 |\n\n"
        "```python\ndef f(): return 1\n```\n\n"
        "[link](https://xn--e1afmkfd.example/x) ![cat](https://img.example/c.png)"
    )

    assert "<h4>Title</h4>" in html, "below the page's own headings"
    assert "<strong>bold</strong>" in html
    assert "<s>gone</s>" in html
    assert "one<br>" in html
    assert '<ol start="3">' in html
    assert '<code class="language-python"><span class="tok-k">def</span>' in html
    assert 'rel="noopener noreferrer nofollow ugc"' in html
    assert 'target="_blank"' in html
    assert 'title="xn--e1afmkfd.example"' in html
    assert "image: cat (img.example)</a>" in html
    assert "<img" not in html
