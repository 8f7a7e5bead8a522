"""Rules every template keeps; they are read, not rendered, except where it says so."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import nodes

from app.console import view
from app.console.view import TEMPLATES, environment
from app.console.viewer import Viewer, viewing

PATHS = sorted(TEMPLATES.rglob("*.html"))
SOURCES = {
    path.relative_to(TEMPLATES).as_posix(): re.sub(
        r"\{#.*?#\}", "", path.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    for path in PATHS
}
NOT_USED = {
    "hx-boost": r"\bhx-boost\b",
    "hx-on": r"\bhx-on\b",
    "hx-vals with script": r"hx-vals=.js:",
    "trigger filter": r"hx-trigger=\"[^\"]*\[",
    "hx-confirm": r"\bhx-confirm\b",
    "hx-swap-oob": r"\bhx-swap-oob\b",
    "hx-select-oob": r"\bhx-select-oob\b",
    "hx-preserve": r"\bhx-preserve\b",
    ":inherited": r"hx-[\w-]+:inherited",
    "extension": r"\bhx-ext\b",
    "style attribute": r"<[^>]*\sstyle=",
    "style element": r"<style\b",
    "handler attribute": r"<[^>]*\son[a-z]+=",
    "javascript link": r"javascript:",
    "raw text": r"\|\s*safe\b",
    "autoescape off": r"\{%-?\s*autoescape\s+false",
}


class Markers(HTMLParser):
    """Scripts without a source, and ids written twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inline_scripts = 0
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        self.inline_scripts += tag == "script" and "src" not in named
        if named.get("id"):
            self.ids.append(str(named["id"]))


@pytest.mark.requirement("UI-53", "UI-107")
@pytest.mark.parametrize("what", NOT_USED)
def test_no_template_uses(what: str) -> None:
    assert len(SOURCES) > 10, "else this proves nothing"
    assert [name for name, source in SOURCES.items() if re.search(NOT_USED[what], source)] == []


@pytest.mark.requirement("UI-53", "UI-107")
@pytest.mark.parametrize("name", SOURCES)
def test_no_template_has_an_inline_script(name: str) -> None:
    markers = Markers()
    markers.feed(re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "", SOURCES[name], flags=re.DOTALL))

    assert markers.inline_scripts == 0


@pytest.mark.requirement("UI-53")
def test_history_is_touched_by_filter_forms_alone() -> None:
    pushing = [
        name
        for name, source in SOURCES.items()
        for tag in re.findall(r"<[a-z]+[^>]*hx-push-url[^>]*>", source)
        if not (tag.startswith("<form") and "hx-get" in tag)
    ]

    assert pushing == []


@pytest.mark.requirement("UI-52")
def test_htmx_is_configured_in_one_place_and_as_written() -> None:
    config = (
        """<meta name="htmx-config" content='{"includeIndicatorCSS":false,"prefix":"","""
        """"noSwap":[204,304,"5xx"],"history":"reload"}'>"""
    )

    assert [name for name, source in SOURCES.items() if "htmx-config" in source] == ["_base.html"]
    assert config in SOURCES["_base.html"]


@pytest.mark.requirement("UI-107")
@pytest.mark.parametrize("name", [name for name in SOURCES if view.is_fragment(name)])
def test_each_partial_compiles_and_its_macros_stand_alone(name: str) -> None:
    with viewing(Viewer()):
        template = environment.get_template(name)
        source = SOURCES[name]

    if "{% macro" in source and "{% extends" not in source:
        assert str(template.module).strip() == "", "a file of macros draws nothing itself"
    imports = {
        str(node.template.value)
        for node in environment.parse(source).find_all(nodes.FromImport)
        if isinstance(node.template, nodes.Const)
    }
    assert all((TEMPLATES / one).is_file() for one in imports)


@pytest.mark.requirement("SEC-35")
@pytest.mark.parametrize("name", SOURCES)
def test_every_form_that_posts_carries_the_token(name: str) -> None:
    forms = re.findall(
        r"<form\b[^>]*method=\"post\".*?</form>", SOURCES[name], flags=re.DOTALL | re.IGNORECASE
    )
    bare = [form[:80] for form in forms if "_csrf" not in form and 'action="/look"' not in form]

    assert bare == []


@pytest.mark.requirement("UI-90")
@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_a_page_brings_at_most_one_first_heading(path: Path) -> None:
    source = SOURCES[path.relative_to(TEMPLATES).as_posix()]
    headings = len(re.findall(r"<h1\b", source)) + len(
        re.findall(r"\bl\.head\(|\bf\.ask\(", source)
    )

    is_page = not path.name.startswith("_")
    branches = len(re.findall(r"\{%-?\s*(?:else|elif)\b", source))
    assert headings <= 1 + branches if is_page else True
