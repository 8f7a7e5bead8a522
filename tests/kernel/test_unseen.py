"""What nobody sees: in names there is none of it, and alone it is nothing."""

import pytest

from app.kernel import unseen

PLAIN = (
    "Alice Wang 王爱丽",
    "José",
    "Jose\u0301",
    "O'Neil-Smith (x)",
    "日本\u3000語",
    "नमस्ते",
    "علي",
    "👍🏽",
    "❤️ Team",
    "👨‍👩‍👧 Family",
    "1️⃣ first",
)
TRICKS = {
    "right to left": "Ali\u202ece",
    "isolates": "\u2066Alice\u2069",
    "zero width space": "Ali\u200bce",
    "joiner between letters": "Ali\u200dce",
    "non-joiner": "Ali\u200cce",
    "byte order mark": "\ufeffAlice",
    "soft hyphen": "Ali\u00adce",
    "word joiner": "Ali\u2060ce",
    "grapheme joiner": "Ali\u034fce",
    "tag": "Alice\U000e0041",
    "variation of a letter": "Alice\ufe0f",
    "variation of an ideograph": "王\U000e0101",
    "text style": "❤\ufe0e",
    "style twice": "❤\ufe0f\ufe0f",
    "style of a digit": "1\ufe0f2",
    "other space": "Alice\u00a0Wang",
    "thin space": "Alice\u2009Wang",
    "line": "Alice\nWang",
    "tab": "Alice\tWang",
    "filler": "\u3164",
    "empty pattern": "\u2800",
    "accent on nothing": " \u0301Alice",
    "private": "Alice\ue000",
    "nothing": "",
}


@pytest.mark.requirement("UI-60")
@pytest.mark.parametrize("text", PLAIN)
def test_what_is_seen_as_it_is_is_plain(text: str) -> None:
    assert unseen.is_plain(text)
    assert unseen.is_seen(text)


@pytest.mark.requirement("UI-60")
@pytest.mark.parametrize("text", TRICKS.values(), ids=TRICKS)
def test_what_could_pass_for_another_is_not_plain(text: str) -> None:
    assert not unseen.is_plain(text)


@pytest.mark.parametrize("text", ["", " \n", "\u200b\u2060", "\u202e ", "\u3164\u2800", "\ufe0f"])
def test_of_what_nobody_sees_there_is_nothing_to_see(text: str) -> None:
    assert not unseen.is_seen(text)
