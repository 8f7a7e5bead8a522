"""Both languages are complete, and no text of a template escapes translation (UI-96)."""

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from jinja2 import nodes

from app.console.view import TEMPLATES, environment
from app.kernel.i18n import LANGUAGES, po_files

ROOT = TEMPLATES.parent
KEYWORDS = {
    "_": None,
    "N_": None,
    "gettext": None,
    "ngettext": (1, 2),
    "pgettext": ((1, "c"), 2),
}
SPOKEN = ("title", "alt", "placeholder", "aria-label", "aria-description", "aria-roledescription")
ATTRIBUTE = re.compile(rf'(?!{"|".join(SPOKEN)})\b[a-z-]+="[^"]*"')
PLACEHOLDER = re.compile(r"%\((\w+)\)[sd]")
TRANSLATIONS = [tag for tag in LANGUAGES if tag != "en"]


@cache
def extracted() -> dict[tuple[str | None, str], str]:
    """(context, text) → where it is first said."""
    found: dict[tuple[str | None, str], str] = {}
    for folder in (ROOT / "app", TEMPLATES):
        for file, line, message, _, context in extract_from_dir(
            folder,
            [("**.py", "python"), ("**.html", "jinja2")],
            {"**.html": {"trimmed": "true", "silent": "false"}},
            keywords=KEYWORDS,
        ):
            first = message if isinstance(message, str) else message[0]
            found.setdefault((context, first), f"{folder.name}/{file}:{line}")
    return found


def translations(tag: str) -> dict[tuple[str | None, str], list[str]]:
    """What the catalogues of a language say; a fuzzy or empty entry says nothing."""
    said: dict[tuple[str | None, str], list[str]] = {}
    for path in po_files(tag):
        with path.open("rb") as file:
            for message in read_po(file, locale=tag.replace("-", "_")):
                if not message.id:
                    continue
                first = message.id if isinstance(message.id, str) else message.id[0]
                strings = (
                    [message.string]
                    if isinstance(message.string, str)
                    else list(message.string or ())
                )
                if strings and all(strings) and not message.fuzzy:
                    said[message.context, first] = [str(one) for one in strings]
    return said


@pytest.mark.requirement("UI-96")
@pytest.mark.parametrize("tag", TRANSLATIONS)
def test_every_text_is_translated(tag: str) -> None:
    said = translations(tag)
    missing = {
        text: where for (context, text), where in extracted().items() if (context, text) not in said
    }

    assert len(extracted()) > 50, "else this proves nothing"
    assert missing == {}


@pytest.mark.requirement("UI-96")
@pytest.mark.parametrize("tag", TRANSLATIONS)
def test_a_translation_names_the_same_facts_as_its_source(tag: str) -> None:
    differing = [
        text
        for (_, text), strings in translations(tag).items()
        for string in strings
        if not set(PLACEHOLDER.findall(string)) <= set(PLACEHOLDER.findall(text)) | {"num"}
    ]

    assert differing == []


@pytest.mark.requirement("UI-96")
@pytest.mark.parametrize(
    "name", sorted(path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.html"))
)
def test_no_template_holds_text_outside_a_translation(name: str) -> None:
    reader = Text()
    reader.feed("".join(template_data(name)))

    assert reader.found == []


class Text(HTMLParser):
    """Letters that a reader would read: text between tags, and attributes that are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        said = ATTRIBUTE.sub("", data)  # a macro may write attributes alone
        if re.search(r"[^\W\d_]", said):
            self.found.append(said.strip())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found += [
            f"{name}={value}"
            for name, value in attributes
            if name in SPOKEN and value and re.search(r"[^\W\d_]", value.replace("\ufffc", ""))
        ]


def template_data(name: str) -> Iterator[str]:
    """The literal parts of a template, expressions replaced by one character that is no letter."""
    tree = environment.parse((TEMPLATES / name).read_text(encoding="utf-8"))
    unread = {
        id(output)
        for block in tree.find_all(nodes.Block)
        if block.name == "body_class"
        for output in block.find_all(nodes.Output)
    }
    for output in tree.find_all(nodes.Output):
        if id(output) in unread:
            continue
        for node in output.nodes:
            yield node.data if isinstance(node, nodes.TemplateData) else "\ufffc"
