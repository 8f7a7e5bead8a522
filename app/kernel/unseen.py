"""Characters that nobody sees: those that hide, turn others round, or look like nothing.

What is drawn of others shows them (UI-60); a name that people set has none, so that no name passes
for another.
"""

import unicodedata

INVISIBLE = {"Cf", "Cc", "Cs", "Co", "Zl", "Zp"}
BLANKS = {  # look like a space or nothing
    *(0x00A0, 0x034F, 0x115F, 0x1160, 0x1680, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
    *range(0x180B, 0x1810),
}
SELECTORS = {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}  # variations of the one before
JOINER, EMOJI_STYLE, KEYCAP = "\u200d", "\ufe0f", "\u20e3"
KEYS = "0123456789#*"


def hides(before: str, character: str) -> bool:
    """Whether a character is not seen, or not as what it is, after the one `before` it."""
    category = unicodedata.category(character)
    if category in INVISIBLE or ord(character) in BLANKS:
        return character not in "\n\t"
    if category == "Zs":
        return character not in " \u3000"
    return category in {"Mn", "Me"} and unicodedata.category(before)[0] not in "LMN"


def is_seen(text: str) -> bool:
    """Whether there is anything to see in a text."""
    return any(
        not character.isspace() and ord(character) not in SELECTORS and not hides("x", character)
        for character in text
    )


def is_plain(text: str) -> bool:
    """Whether all of a name is seen as what it is; emoji may be joined and styled as emoji are."""
    framed = f" {text} "
    around = zip(framed, framed[1:], framed[2:], strict=False)
    return is_seen(text) and not any(
        (hides(before, each) or each in "\n\t" or ord(each) in SELECTORS)
        and not _is_of_emoji(before, each, after)
        for before, each, after in around
    )


def _is_of_emoji(before: str, each: str, after: str) -> bool:
    if each == EMOJI_STYLE:
        return _is_pictured(before) or (before in KEYS and after == KEYCAP)
    if each == KEYCAP:
        return before == EMOJI_STYLE
    if each == JOINER:
        return (_is_pictured(before) or before == EMOJI_STYLE) and _is_pictured(after)
    return False


def _is_pictured(character: str) -> bool:
    """Whether it is drawn as a picture: an emoji, or its colour of skin."""
    return unicodedata.category(character) in {"So", "Sk"} and ord(character) > 0x7F
