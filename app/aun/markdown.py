"""Text of strangers as HTML: rendered once, when a message is stored (console.md, 4.3).

Nothing written in a message makes a browser ask for anything, run anything, or look like a part of
the page: no raw HTML, no images, no ids, no styles, and links of three schemes only.
"""

import re
from collections.abc import Sequence
from functools import cache
from html import escape, unescape
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound

SCHEMES = {"http", "https", "mailto"}
TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre"),
    *("code", "em", "strong", "del", "s", "a", "table", "thead", "tbody", "tr", "th", "td", "span"),
}
ATTRIBUTES = {
    "a": {"href", "title"},
    "ol": {"start"},
    "th": {"align"},
    "td": {"align"},
    "code": {"class"},
    "span": {"class"},
}
_INLINE = "code|em|strong|del|s|a|span"
_MARK = re.compile(rf"</?(?:{_INLINE})(?: [^<>]*)?>")
_TAG = re.compile(r"<[^<>]*>")  # in text and in attributes nh3 writes `&lt;` and `&gt;`
LOWERED = 3  # levels: the page's own headings end above
LOWEST = 6
LONGEST_COLOURED = 100_000  # characters of one block of code
CODE_CLASS = "tok-"


def html_of(text: str) -> str:
    """Markdown as HTML that can stand in any page, in a block of its own."""
    return _cleaner().clean(_markdown().render(text))


def words_of(rendered: str) -> str:
    """What a rendered text says, without its marks: for a line of preview."""
    return " ".join(unescape(_TAG.sub(" ", _MARK.sub("", rendered))).split())


@cache
def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
    made.enable(["table", "strikethrough"]).disable("entity")  # shown as typed
    made.validateLink = _is_fine  # type: ignore[method-assign]
    return made


@cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_kept,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow ugc",
        set_tag_attribute_values={"a": {"target": "_blank"}},
        strip_comments=True,
    )


def _kept(tag: str, attribute: str, value: str) -> str | None:
    if attribute != "class":
        return value
    classes = [each for each in value.split() if _is_known_class(tag, each)]
    return " ".join(classes) or None


def _is_known_class(tag: str, name: str) -> bool:
    if tag == "code":
        return name.startswith("language-")
    short = name.removeprefix(CODE_CLASS)
    return name.startswith(CODE_CLASS) and short.isalnum() and len(short) <= 3


def _is_fine(url: str) -> bool:
    try:
        return urlsplit(url.strip()).scheme.lower() in SCHEMES
    except ValueError:
        return False


class _Renderer(RendererHTML):
    """Images are links, headings are lower, code has colours, links name their host."""

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """`image: <alt> (<host>)`: a browser asks for nothing by itself."""
        token = tokens[idx]
        source = str(token.attrGet("src") or "")
        alt = self.renderInlineAsText(token.children or [], options, env)
        words = f"image: {alt} ({host_of(source)})" if host_of(source) else f"image: {alt}"
        if not _is_fine(source):
            return escape(words)
        return f'<a href="{escape(source)}">{escape(words)}</a>'

    def heading_open(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Any) -> str:
        """Below the headings of the page."""
        return f"<{_lowered(tokens[idx].tag)}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Any) -> str:
        """Likewise."""
        return f"</{_lowered(tokens[idx].tag)}>\n"

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """With its host as a title, as it is read by machines."""
        token = tokens[idx]
        if host := host_of(str(token.attrGet("href") or "")):
            token.attrSet("title", host)
        return self.renderToken(tokens, idx, options, env)

    def fence(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Any) -> str:
        """With colours, as far as the language is known."""
        token = tokens[idx]
        language = token.info.split()[0] if token.info.split() else ""
        name = escape(language[:40]) if language.replace("-", "").isalnum() else ""
        attribute = f' class="language-{name}"' if name else ""
        return f"<pre><code{attribute}>{_coloured(token.content, language)}</code></pre>\n"


def host_of(url: str) -> str:
    """The host of a web address; one with letters beyond ASCII in punycode (UI-59)."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        return host if host.isascii() else host.encode("idna").decode()
    except (ValueError, UnicodeError):
        return ""


def _lowered(tag: str) -> str:
    return f"h{min(LOWEST, int(tag[1:]) + LOWERED)}"


def _coloured(code: str, language: str) -> str:
    if len(code) > LONGEST_COLOURED:
        return escape(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False) if language else TextLexer()
    except ClassNotFound:
        lexer = TextLexer()
    formatter: Any = HtmlFormatter(nowrap=True, classprefix=CODE_CLASS)
    out = StringIO()
    formatter.format(lexer.get_tokens(code), out)
    return out.getvalue()
